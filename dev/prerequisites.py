"""Programs taken from the machine: found, else installed (Debian as root), else named in one line."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from dev.console import say
from dev.errors import DevError
from dev.node.cgroups import ROOT as CONTROL_GROUPS

JAVA_VERSIONS = (17, 21)
OLDEST_NATIVE_JAVA = 21
JVM_DIRECTORY = Path("/usr/lib/jvm")
# Where Debian's package and the plugins' own archive put them.
NETWORK_PLUGIN_DIRECTORIES = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
NETWORK_PLUGINS = ("bridge", "host-local", "loopback")
# Program -> its package in Debian, for a node.
NODE_PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "iptables": "iptables",
    "nft": "nftables",
    "conntrack": "conntrack",
    "socat": "socat",
    "ethtool": "ethtool",
}
# What its images are made with.
IMAGE_PACKAGES = {"podman": "podman", "mmdebstrap": "mmdebstrap"}
NETWORK_PLUGIN_PACKAGE = "containernetworking-plugins"
# From 1.21 on `go` fetches by itself the toolchain that go.mod names.
OLDEST_GO = (1, 21)
OLDEST_NODE = 18
DEBIAN_RELEASE = Path("/etc/debian_version")
# Another that installs something is waited for.
APT_OPTIONS = ("-qq", "-o", "DPkg::Lock::Timeout=300")
APT_TIMEOUT_SECONDS = 900

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime.

    Attributes:
        executable: the `java` command.
        version: major version.
        description: what it tells of itself, down to the build.
    """

    executable: Path
    version: int
    description: str


@dataclass(frozen=True, slots=True)
class NodeTools:
    """What makes a machine a node.

    Attributes:
        containerd: the container runtime; its other programs are beside it.
        network_plugins: directory of the plugins that give pods a network.
    """

    containerd: Path
    network_plugins: Path


def java() -> Java:
    """Return a Java 17 or 21: from `JAVA_HOME`, the PATH or the machine's JVM directory, in this order."""
    return _require(_find_java, "Java 17 or 21", "to run the Pulsar brokers", "default-jdk-headless")


def native_java() -> Java:
    """Return a Java 21 or newer, the oldest there is: from `JAVA_HOME`, the PATH or the machine's JVM directory."""
    return _require(
        lambda: oldest_native(filter(None, map(_java_at, _java_candidates()))),
        f"Java {OLDEST_NATIVE_JAVA} or newer",
        "to run the brokers of Pulsar 5",
        f"openjdk-{OLDEST_NATIVE_JAVA}-jdk-headless",
    )


def oldest_native(found: Iterable[Java]) -> Java | None:
    """Return the oldest of these that runs Pulsar 5, the first of several; None if there is none.

    Pulsar is built and tested with the oldest that it runs on.
    """
    return min(
        (java for java in found if java.version >= OLDEST_NATIVE_JAVA), key=lambda java: java.version, default=None
    )


def go() -> Path:
    """Return a `go` command able to fetch the toolchain that `kube/go.mod` asks for."""
    return _require(_find_go, "go 1.21 or newer", "to build the Kubernetes programs", "golang")


def maven() -> Path:
    """Return the `mvn` command."""
    return _require(lambda: on_path("mvn"), "mvn", "to fetch the Pulsar jars", "maven")


def openssl() -> Path:
    """Return the `openssl` command."""
    return _require(lambda: on_path("openssl"), "openssl", "to make certificates", "openssl")


def faketime() -> Path:
    """Return the `faketime` command."""
    return _require(lambda: on_path("faketime"), "faketime", "to start a broker whose clock is wrong", "faketime")


def chromium() -> Path:
    """Return a Chromium, or Chrome, for tests of what people see."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return _require(
        lambda: next(filter(None, map(on_path, names)), None), "Chromium", "to test the gateway's console", "chromium"
    )


def node() -> Path:
    """Return a `node` command that has a test runner: 18 or newer."""
    return _require(_find_node, f"node {OLDEST_NODE} or newer", "to test the console's modules", "nodejs")


def ip() -> Path:
    """Return the `ip` command."""
    return _require(lambda: on_path("ip"), "ip", "to make networks", "iproute2")


def ipset() -> Path:
    """Return the `ipset` command."""
    return _require(lambda: on_path("ipset"), "ipset", "to enforce network policies", "ipset")


def mmdebstrap() -> Path:
    """Return the `mmdebstrap` command."""
    return _require(lambda: on_path("mmdebstrap"), "mmdebstrap", "to make images of Debian", "mmdebstrap")


def container_engine() -> Path:
    """Return `docker` if its daemon answers, else `podman`."""
    docker = on_path("docker")
    if docker is not None and _succeeds([str(docker), "version"]):
        return docker
    return _require(lambda: on_path("podman"), "Docker (running) or podman", "to build images", "podman")


def runc() -> Path:
    """Return the `runc` command."""
    return _require(lambda: on_path("runc"), "runc", "to run containers while images are built", "runc")


def node_obstacle() -> str | None:
    """Return in one line why this machine can be no node, or None if nothing is known to be in the way."""
    if os.geteuid() != 0:
        return "it takes root: networks, mounts and control groups are made"
    missing = _missing_node_packages() + [
        package for program, package in IMAGE_PACKAGES.items() if on_path(program) is None
    ]
    if missing and not can_install():
        return f"programs are missing that cannot be installed here: {' '.join(missing)}"
    if not _succeeds(["unshare", "--net", "--mount", "true"]):
        return "root may make no networks and mounts here, as in a container without privileges"
    # In version 1 each kind of them has a folder, and the one above may be read alone.
    if not any(os.access(folder, os.W_OK) for folder in (CONTROL_GROUPS, *CONTROL_GROUPS.glob("*/"))):
        return f"{CONTROL_GROUPS} cannot be written"
    return None


def node_tools() -> NodeTools:
    """Return what a node is made of. It takes root, and what is missing is installed together."""
    if os.geteuid() != 0:
        raise DevError("a node needs root: networks, mounts and control groups are made for it")
    missing = _missing_node_packages()
    if missing and can_install():
        _install(*missing)
        missing = _missing_node_packages()
    containerd, plugins = on_path("containerd"), _network_plugins()
    if missing or containerd is None or plugins is None:
        raise DevError(f"a node needs more programs: install them (Debian: apt-get install {' '.join(missing)})")
    return NodeTools(containerd, plugins)


def require_linux() -> None:
    """Refuse other systems at once: processes are told apart by /proc."""
    if not Path("/proc/self/stat").exists():
        raise DevError("the local cluster runs on Linux only (it reads /proc)")


def _require(find: Callable[[], Found | None], what: str, why: str, package: str) -> Found:
    found, obstacle = find(), ""
    if found is None and can_install():
        try:
            _install(package)
        except DevError as error:
            obstacle = f"; {error}"
        found = find()
    if found is None:
        raise DevError(f"{what} is needed {why}: install it (Debian: apt-get install {package}){obstacle}")
    return found


def _missing_node_packages() -> list[str]:
    missing = [package for program, package in NODE_PACKAGES.items() if on_path(program) is None]
    return missing if _network_plugins() else [*missing, NETWORK_PLUGIN_PACKAGE]


def _network_plugins() -> Path | None:
    for directory in NETWORK_PLUGIN_DIRECTORIES:
        if all(_executable(directory / plugin) for plugin in NETWORK_PLUGINS):
            return directory
    return None


def _executable(file: Path) -> Path | None:
    return file if os.access(file, os.X_OK) else None


def on_path(program: str) -> Path | None:
    """Return a program on the PATH."""
    found = shutil.which(program)
    return Path(found) if found else None


def _find_go() -> Path | None:
    program = on_path("go")
    if program is None:
        return None
    version = re.search(r"go(\d+)\.(\d+)", _output([str(program), "version"]))
    if version is None or (int(version[1]), int(version[2])) < OLDEST_GO:
        return None
    return program


def _find_node() -> Path | None:
    program = on_path("node")
    version = re.match(r"v(\d+)\.", _output([str(program), "--version"])) if program else None
    return program if version is not None and int(version[1]) >= OLDEST_NODE else None


def _find_java() -> Java | None:
    found = filter(None, map(_java_at, _java_candidates()))
    return next((java for java in found if java.version in JAVA_VERSIONS), None)


@cache
def _java_at(executable: Path) -> Java | None:
    description = _output([str(executable), "-version"])
    version = java_version(description)
    return None if version is None else Java(executable, version, description)


def _java_candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := on_path("java"):
        yield found
    yield from sorted(JVM_DIRECTORY.glob("*/bin/java"))


def java_version(output: str) -> int | None:
    """Return the major version that `java -version` tells in its output, or None if it tells none."""
    match = re.search(r'version "(\d+)', output)
    return int(match[1]) if match else None


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


def can_install() -> bool:
    """Return whether packages of Debian can be had here: as root, by apt-get."""
    return os.geteuid() == 0 and DEBIAN_RELEASE.exists() and shutil.which("apt-get") is not None


def _install(*packages: str) -> None:
    say(f"installing {' '.join(packages)} (apt-get)")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        done = subprocess.run(
            ["apt-get", *APT_OPTIONS, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=APT_TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise DevError(f"apt-get {' '.join(arguments)} failed: {last}")
