"""The command line of the local cluster: `python -m dev up`, `down`, `status`, `run`, `build`, `image`, `demo`."""

import argparse
import importlib
import sys
import time
from pathlib import Path

from dev import artifacts, chart_tools, kind, prerequisites
from dev.access import existing_cluster
from dev.broker_settings import Profile, PulsarLine
from dev.cache import cache_root
from dev.console import say
from dev.documented_kinds import documented_kinds
from dev.e2e import Images, run_on_given, run_on_kind, run_on_node
from dev.errors import DevError
from dev.gitops_tool import gitops
from dev.images.bill import write_bill
from dev.images.command import make_images
from dev.images.engine import Engine
from dev.images.project import TARGETS
from dev.instance import LocalCluster, Shape, pulsar_java, pulsar_jvm
from dev.node.node import NodeArtifacts
from dev.promtool import promtool
from dev.run import run_with_cluster


def main() -> int:
    """Parse the command line, do what it says and return the exit code."""
    arguments = _parser().parse_args()
    try:
        code: int = arguments.action(arguments)
    except DevError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def up(arguments: argparse.Namespace) -> int:
    """Start an instance and tell where its kubeconfig and its environment file are."""
    if existing_cluster():
        say("nothing is started: KUBECONFIG and PULSAR_ADMIN_URL name an existing cluster (else unset them)")
        return 0
    cluster = LocalCluster(arguments.name, _shape(arguments))
    started = time.monotonic()
    cluster.start()
    say(f"instance {cluster.name} is up after {time.monotonic() - started:.1f} s")
    for line in cluster.shape.lines:
        java = pulsar_java(line)
        say(f"Pulsar {line} runs on Java {java.version}: {java.executable}")
    for name, value in cluster.environment().items():
        print(f"{name}={value}")
    print(f"logs: {cluster.logs}")
    print(f"to use it: . {cluster.environment_file}")
    if cluster.shape.node:
        print(f"in its network: {' '.join(cluster.command(['COMMAND']))}")
    return 0


def down(arguments: argparse.Namespace) -> int:
    """Stop one instance, or all."""
    clusters = LocalCluster.all() if arguments.all else [LocalCluster(arguments.name)]
    for cluster in clusters:
        cluster.stop(keep_data=arguments.keep_data)
        say(f"instance {cluster.name} is stopped; logs, if any: {cluster.logs}")
    return 0


def status(_arguments: argparse.Namespace) -> int:
    """Show every instance with its processes."""
    for cluster in LocalCluster.all():
        running = ", ".join(f"{name} {pid}" for name, pid in cluster.running().items())
        print(f"{cluster.name}: {running or 'stopped, data kept'} ({cluster.directory})")
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Run a command against an instance of its own."""
    return run_with_cluster(arguments.command, _shape(arguments))


def clean(_arguments: argparse.Namespace) -> int:
    """Stop every instance and remove what it left, its logs too."""
    for cluster in LocalCluster.all():
        cluster.stop(keep_logs=False)
    LocalCluster.remove_leftovers()
    return 0


def build(arguments: argparse.Namespace) -> int:
    """Build or fetch what instances run."""
    print(f"Kubernetes programs: {artifacts.kube_programs()}")
    for line in PulsarLine:
        jvm = pulsar_jvm(cache_root(), line)
        print(f"jars of Pulsar {line}: {jvm.jars}")
        print(f"Java for them: {jvm.executable} {' '.join(jvm.options)}")
    print(f"kinds of others that the documentation shows: {documented_kinds()}")
    print(f"helm: {chart_tools.helm()}")
    print(f"promtool: {promtool()}")
    print(f"judges of GitOps tools: {gitops()}")
    print(f"kinds of others that the chart uses: {chart_tools.foreign_kinds()}")
    print(f"browser and node for tests of the console: {prerequisites.chromium()} {prerequisites.node()}")
    if arguments.node or arguments.spark:
        print(f"container runtime: {prerequisites.node_tools().containerd}")
        made = NodeArtifacts.made(spark=arguments.spark)
        print(f"node programs: {made.programs}")
        if made.spark:
            print(f"spark-operator: {made.spark.operator}")
            print(f"image of the pipeline: {made.spark.pipeline_image}")
    return 0


def image(arguments: argparse.Namespace) -> int:
    """Build the images and write what is in them."""
    return make_images(arguments.target or TARGETS, arguments.base, arguments.bills)


def bill(arguments: argparse.Namespace) -> int:
    """Write the bill of materials of an image."""
    print(f"{write_bill(Engine.found(), arguments.image, arguments.file)} things in {arguments.file}")
    return 0


def e2e(arguments: argparse.Namespace) -> int:
    """Run the end-to-end tests."""
    given, short = arguments.arguments, arguments.short
    if arguments.on == "kind":
        return run_on_kind(given, short=short, base=arguments.base, node_image=arguments.node_image)
    if arguments.on == "given":
        return run_on_given(given, Images.from_environment(), short=short)
    obstacle = prerequisites.node_obstacle()
    if arguments.where_possible and obstacle:
        say(f"end-to-end tests are left out, this machine can be no node: {obstacle}")
        return 0
    return run_on_node(given, short=short)


def kind_up(arguments: argparse.Namespace) -> int:
    """Make a cluster by kind with all that the quickstart needs."""
    return kind.up(arguments.base, arguments.node_image)


def kind_down(_arguments: argparse.Namespace) -> int:
    """Remove that cluster."""
    return kind.down()


def demo(arguments: argparse.Namespace) -> int:
    """Run the demonstration."""
    code: int = importlib.import_module("dev.demo").main(arguments.replicas, arguments.backend)
    return code


def _shape(arguments: argparse.Namespace) -> Shape:
    return Shape(
        brokers=arguments.brokers,
        profile=arguments.profile,
        node=arguments.node or arguments.spark,
        spark=arguments.spark,
        pulsar=arguments.pulsar,
        native=arguments.native,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dev", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    named = argparse.ArgumentParser(add_help=False)
    named.add_argument("--name", default="default", help="which instance (default: %(default)s)")
    shaped = argparse.ArgumentParser(add_help=False)
    shaped.add_argument("--brokers", type=int, choices=(0, 1, 2), default=1, help="number of brokers")
    shaped.add_argument("--node", action="store_true", help="with a real node that runs pods (as root)")
    shaped.add_argument("--spark", action="store_true", help="with a node and a spark-operator")
    shaped.add_argument(
        "--pulsar", type=PulsarLine, choices=list(PulsarLine), default=PulsarLine.FOUR, help="which Pulsar they are"
    )
    shaped.add_argument("--native", action="store_true", help="with a broker of Pulsar 5 beside them")
    shaped.add_argument("--profile", type=Profile, choices=list(Profile), default=Profile.ORDINARY)

    up_parser = commands.add_parser("up", parents=[named, shaped], help="start an instance")
    up_parser.set_defaults(action=up)
    down_parser = commands.add_parser("down", parents=[named], help="stop an instance")
    down_parser.add_argument("--all", action="store_true", help="stop every instance")
    down_parser.add_argument("--keep-data", action="store_true", help="for the next up of that name")
    down_parser.set_defaults(action=down)
    commands.add_parser("status", help="show instances and their processes").set_defaults(action=status)
    run_parser = commands.add_parser("run", parents=[shaped], help="run a command against its own instance")
    run_parser.add_argument("command", nargs="+", metavar="-- COMMAND")
    run_parser.set_defaults(action=run)
    commands.add_parser("clean", help="stop every instance and remove it with its logs").set_defaults(action=clean)
    build_parser = commands.add_parser("build", help="build and fetch what instances run")
    build_parser.add_argument("--node", action="store_true", help="also what a node is made of")
    build_parser.add_argument("--spark", action="store_true", help="also what runs SparkApplications on it")
    build_parser.set_defaults(action=build)
    image_parser = commands.add_parser("image", help="build the images of this tree, and tell what is in them")
    image_parser.add_argument("--target", action="append", choices=TARGETS, help="these only (default: all)")
    image_parser.add_argument("--base", metavar="IMAGE", help="`local` makes one here (default: the Dockerfile's)")
    image_parser.add_argument("--bills", type=Path, default=Path("dist"), help="where bills of materials go (dist)")
    image_parser.set_defaults(action=image)
    bill_parser = commands.add_parser("bill", help="write what is in an image that was built")
    bill_parser.add_argument("image")
    bill_parser.add_argument("file", type=Path)
    bill_parser.set_defaults(action=bill)
    based = argparse.ArgumentParser(add_help=False)
    based.add_argument("--base", metavar="IMAGE", help="of the images; `local` makes one (default: the Dockerfile's)")
    based.add_argument("--node-image", metavar="IMAGE", help="of kind's node (default: kind's own)")
    commands.add_parser("kind-up", parents=[based], help="a cluster by kind, ready for the quickstart").set_defaults(
        action=kind_up
    )
    commands.add_parser("kind-down", help="remove that cluster").set_defaults(action=kind_down)
    e2e_parser = commands.add_parser("e2e", parents=[based], help="run the end-to-end tests")
    e2e_parser.add_argument("--on", choices=("node", "kind", "given"), default="node", help="which cluster")
    e2e_parser.add_argument("--short", action="store_true", help="without what takes minutes")
    e2e_parser.add_argument("--where-possible", action="store_true", help="say so in a line where none can be had")
    e2e_parser.add_argument("arguments", nargs="*", metavar="-- ARGUMENTS", help="for pytest")
    e2e_parser.set_defaults(action=e2e)
    demo_parser = commands.add_parser("demo", help="run the demonstration")
    demo_parser.add_argument("--replicas", type=int, choices=(1, 2, 3), default=3, help="of the operator")
    demo_parser.add_argument("--backend", choices=("classic", "native"), default="classic", help="native on Pulsar 5")
    demo_parser.set_defaults(action=demo)
    return parser


if __name__ == "__main__":
    sys.exit(main())
