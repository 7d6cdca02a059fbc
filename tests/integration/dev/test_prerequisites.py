"""A missing program is named in one line that says what it is for and how to get it."""

from pathlib import Path

import pytest

from dev import prerequisites
from dev.errors import DevError
from dev.promtool import promtool


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_401"', 1),
        ("command not found", None),
    ],
)
def test_java_version_is_read_from_what_java_prints(output: str, version: int | None) -> None:
    assert prerequisites.java_version(output) == version


def test_java_used_is_one_that_pulsar_runs_on() -> None:
    java = prerequisites.java()
    assert java.version in prerequisites.JAVA_VERSIONS
    assert java.executable.exists()


def test_missing_program_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DevError) as caught:
        prerequisites.maven()
    message = str(caught.value)
    assert message == "mvn is needed to fetch the Pulsar jars: install it (Debian: apt-get install maven)"


def test_promtool_that_cannot_be_had_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only root may ask Debian for the package that it is taken out of."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(DevError) as caught:
        promtool()
    assert str(caught.value) == (
        "promtool is needed to try the chart's alerts: install it (Debian: apt-get install prometheus)"
    )


def test_go_too_old_to_fetch_its_toolchain_counts_as_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go version go1.19.8 linux/amd64\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DevError, match=r"go 1\.21 or newer is needed"):
        prerequisites.go()


def test_all_that_a_node_lacks_is_named_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(prerequisites, "NETWORK_PLUGIN_DIRECTORIES", (tmp_path,))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DevError) as caught:
        prerequisites.node_tools()
    assert str(caught.value) == (
        "a node needs more programs: install them (Debian: apt-get install containerd runc iproute2 util-linux iptables"
        " nftables conntrack socat ethtool containernetworking-plugins)"
    )


def test_a_node_without_root_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(DevError, match="a node needs root"):
        prerequisites.node_tools()


def test_what_is_in_the_way_of_a_node_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert prerequisites.node_obstacle() == "it takes root: networks, mounts and control groups are made"
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(prerequisites, "NETWORK_PLUGIN_DIRECTORIES", (tmp_path,))
    monkeypatch.setenv("PATH", str(tmp_path))
    obstacle = prerequisites.node_obstacle()
    assert obstacle is not None
    assert obstacle.endswith("ethtool containernetworking-plugins podman mmdebstrap")
