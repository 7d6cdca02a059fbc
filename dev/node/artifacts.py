"""The programs of a node, built from Go modules and cached: kubelet and its like, pause, what people add to it."""

import platform
import shutil
from collections.abc import Sequence
from pathlib import Path

from dev import prerequisites
from dev.artifacts import BUILD_FLAGS, link_flags
from dev.cache import content_key, ensure
from dev.console import say
from dev.go_modules import download_module, go_build

SOURCES = Path(__file__).parent
BINARIES = SOURCES / "binaries"
PAUSE = SOURCES / "pause"
POLICIES = SOURCES / "policies"
MULTI_CALL_BINARY = "node"
STRIPPED = (*BUILD_FLAGS, "-ldflags", "-s -w")
NODE_PROGRAMS = ("kubelet", "kube-proxy", "kube-scheduler", "coredns", "remove-pods")
SPARK_OPERATOR_MODULE = "github.com/kubeflow/spark-operator/v2"
SPARK_OPERATOR_VERSION = "v2.4.0"
SPARK_OPERATOR_SUM = "h1:Bo5rz5dlhqYEa7e/TLtUEVXDMNRotnVaQ4VLCyeLeOc="
SPARK_OPERATOR_CRDS = Path("charts") / "spark-operator-chart" / "crds"


def node_programs() -> Path:
    """Return a directory with the programs of `NODE_PROGRAMS`, which are one binary under several names."""
    inputs = [BINARIES / name for name in ("go.mod", "go.sum", "main.go")]
    flags = [*BUILD_FLAGS, "-ldflags", link_flags((BINARIES / "go.mod").read_text())]
    return ensure("node", content_key(inputs, *flags, platform.machine()), lambda into: _build_node(into, flags))


def pause_program() -> Path:
    """Return the program that holds the namespaces of a pod."""
    inputs = [PAUSE / name for name in ("go.mod", "main.go")]
    return ensure("pause", content_key(inputs, *BUILD_FLAGS, platform.machine()), _build_pause) / "pause"


def policy_enforcer() -> Path:
    """Return the program that enforces NetworkPolicies. It runs `ipset`, which is there from then on."""
    prerequisites.ipset()
    inputs = [POLICIES / name for name in ("go.mod", "go.sum", "main.go")]
    key = content_key(inputs, *STRIPPED, platform.machine())
    return ensure("policy-enforcer", key, _build_policy_enforcer) / "policy-enforcer"


def spark_operator() -> Path:
    """Return a directory with the program `spark-operator` and its custom resource definitions under `crds/`."""
    facts = (SPARK_OPERATOR_MODULE, SPARK_OPERATOR_VERSION, SPARK_OPERATOR_SUM, *BUILD_FLAGS, platform.machine())
    return ensure("spark-operator", content_key([], *facts), _build_spark_operator)


def _build_node(into: Path, flags: Sequence[str]) -> None:
    program = into / MULTI_CALL_BINARY
    say("building kubelet, kube-proxy, kube-scheduler and CoreDNS (once a machine; 3 to 8 minutes)")
    go_build("node-build", BINARIES, program, flags)
    for name in NODE_PROGRAMS:
        (into / name).symlink_to(MULTI_CALL_BINARY)


def _build_pause(into: Path) -> None:
    go_build("pause-build", PAUSE, into / "pause", STRIPPED)


def _build_policy_enforcer(into: Path) -> None:
    say("building what enforces network policies (once a machine; about a minute)")
    go_build("policy-enforcer-build", POLICIES, into / "policy-enforcer", STRIPPED)


def _build_spark_operator(into: Path) -> None:
    say(f"building the spark-operator {SPARK_OPERATOR_VERSION} (once a machine; 2 to 4 minutes)")
    module = download_module(f"{SPARK_OPERATOR_MODULE}@{SPARK_OPERATOR_VERSION}", SPARK_OPERATOR_SUM, into)
    # The module cache is read-only, and its replacements of modules count in a main module alone.
    source = into / "source"
    shutil.copytree(module, source, copy_function=shutil.copyfile)
    source.chmod(0o755)
    go_build("spark-operator-build", source, into / "spark-operator", STRIPPED, "./cmd/operator")
    shutil.copytree(source / SPARK_OPERATOR_CRDS, into / "crds", copy_function=shutil.copyfile)
    for directory in (source, *source.rglob("*/")):
        directory.chmod(0o755)
    shutil.rmtree(source)
