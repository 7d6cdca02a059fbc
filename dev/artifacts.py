"""What the local cluster runs, built from registries and cached: Kubernetes programs and Pulsar jars."""

import platform
import re
from collections.abc import Sequence
from pathlib import Path

from dev import prerequisites
from dev.cache import content_key, ensure
from dev.console import say
from dev.errors import DevError
from dev.go_modules import go_build
from dev.steps import run_step

SOURCES = Path(__file__).parent
KUBE_SOURCES = SOURCES / "kube"
POM = SOURCES / "pulsar" / "pom.xml"
NATIVE_POM = SOURCES / "pulsar" / "native-jars.pom.xml"
KUBE_PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
MULTI_CALL_BINARY = "kube"
# The same inputs give the same binary, whatever the path of the tree and the state of its repository.
BUILD_FLAGS = ("-trimpath", "-buildvcs=false")


def kube_programs() -> Path:
    """Return a directory with `etcd`, `kube-apiserver`, `kube-controller-manager` and `kubectl`.

    They are one binary under four names. The first build on a machine takes 6 to 8 minutes on two cores.
    """
    inputs = [KUBE_SOURCES / name for name in ("go.mod", "go.sum", "main.go")]
    flags = [*BUILD_FLAGS, "-ldflags", link_flags((KUBE_SOURCES / "go.mod").read_text())]
    key = content_key(inputs, *flags, platform.machine())
    return ensure("kube", key, lambda into: _build_kube(into, flags))


def pulsar_jars() -> Path:
    """Return a directory with the jars of the Pulsar version that `pulsar/pom.xml` names."""
    return ensure("pulsar", content_key([POM]), _fetch_pulsar)


def native_pulsar_jars() -> Path:
    """Return a directory with the jars of Pulsar 5, as `pulsar/native-jars.pom.xml` lists them."""
    return ensure("native-pulsar", content_key([NATIVE_POM]), _fetch_native_pulsar)


def link_flags(go_mod: str) -> str:
    """Return the linker flags that tell the programs the Kubernetes version `go.mod` requires."""
    version = re.search(r"^\s*k8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)$", go_mod, re.MULTILINE)
    if version is None:
        raise DevError(f"{KUBE_SOURCES / 'go.mod'} requires no release of k8s.io/kubernetes")
    variable = "k8s.io/component-base/version.git"
    values = {"Version": version[1], "Major": version[2], "Minor": version[3]}
    return " ".join(["-s", "-w", *(f"-X {variable}{name}={value}" for name, value in values.items())])


def _build_kube(into: Path, flags: Sequence[str]) -> None:
    program = into / MULTI_CALL_BINARY
    say("building the Kubernetes programs (once a machine; 6 to 8 minutes on two cores)")
    go_build("kube-build", KUBE_SOURCES, program, flags)
    for name in KUBE_PROGRAMS:
        (into / name).symlink_to(MULTI_CALL_BINARY)


def _fetch_pulsar(into: Path) -> None:
    say("fetching the Pulsar jars (once a machine; about a minute)")
    _copy_jars("pulsar-jars", POM, into, "dependency:copy-dependencies", "-DincludeScope=runtime")


def _fetch_native_pulsar(into: Path) -> None:
    say("fetching the jars of native Pulsar (once a machine; about a minute)")
    _copy_jars("native-pulsar-jars", NATIVE_POM, into, "dependency:copy")


def _copy_jars(step: str, pom: Path, into: Path, *arguments: str) -> None:
    maven = [str(prerequisites.maven()), "--quiet", "--batch-mode", "--file", str(pom)]
    run_step(step, [*maven, *arguments, f"-DoutputDirectory={into}"], directory=into)
