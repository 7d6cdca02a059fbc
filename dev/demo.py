"""`make demo`: a topic from manifest to split and merge, on a real API server and a real broker, in one go."""

import sys
import time

from rich.console import Console

from dev.access import existing_cluster
from dev.broker_settings import PulsarLine
from dev.demo_classic import ClassicDemo
from dev.demo_native import NativeDemo
from dev.demo_stage import Kubectl
from dev.errors import DevError
from dev.instance import LocalCluster, Shape


def main(replicas: int, backend: str) -> int:
    """Run a demonstration on a cluster of its own and return the exit code.

    Args:
        replicas: of the operator.
        backend: `native` for brokers of Pulsar 5, which split and merge themselves, else `classic`.
    """
    if existing_cluster():
        raise DevError("the demo brings its own cluster; unset KUBECONFIG and PULSAR_ADMIN_URL first")
    line, story = (PulsarLine.FIVE, NativeDemo) if backend == "native" else (PulsarLine.FOUR, ClassicDemo)
    console = Console(width=132, force_terminal=sys.stdout.isatty())
    started = time.monotonic()
    cluster = LocalCluster.private(Shape(pulsar=line))
    try:
        console.rule(f"a Kubernetes API server and a broker of Pulsar {line}")
        cluster.start()
        kubernetes, pulsar = cluster.kubernetes.access, cluster.pulsar.access
        console.print(
            f"API server {kubernetes.url}, broker {pulsar.admin_url}, up in {time.monotonic() - started:.0f} s"
        )
        kubectl = Kubectl(cluster.kubernetes.kubectl, kubernetes.kubeconfig)
        story(console, kubectl, pulsar).run(cluster.directory, replicas)
    finally:
        cluster.stop()
    console.rule(f"done in {time.monotonic() - started:.0f} s; everything is stopped and removed")
    return 0
