"""Pulsar 5 runs on the oldest Java from 21 on; without one a single line says what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev import prerequisites
from dev.errors import DevError
from dev.prerequisites import Java, oldest_native


def java(version: int, place: str = "x") -> Java:
    return Java(Path(place), version, f"openjdk {version}")


@pytest.mark.parametrize(
    ("versions", "chosen"),
    [([17, 25, 21], 21), ([25, 26], 25), ([25], 25), ([17], None), ([], None)],
)
def test_the_oldest_that_suits_is_chosen(versions: list[int], chosen: int | None) -> None:
    found = oldest_native(map(java, versions))
    assert (found.version if found else None) == chosen


def test_the_first_of_several_of_a_version_is_chosen() -> None:
    assert oldest_native([java(21, "first"), java(21, "second")]) == java(21, "first")


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(prerequisites, "JVM_DIRECTORY", tmp_path)


NEEDED = "Java 21 or newer is needed to run the brokers of Pulsar 5: install it (Debian: apt-get install {})"
PACKAGE = "openjdk-21-jdk-headless"


@pytest.mark.usefixtures("no_java")
def test_without_one_the_package_is_named() -> None:
    with pytest.raises(DevError) as caught:
        prerequisites.native_java()
    assert str(caught.value) == NEEDED.format(PACKAGE)


@pytest.mark.usefixtures("no_java")
def test_where_the_package_is_not_to_be_had_it_is_told_what_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def install(package: str) -> None:
        raise DevError(f"apt-get install {package} failed: E: Unable to locate package")

    monkeypatch.setattr(prerequisites, "can_install", lambda: True)
    monkeypatch.setattr(prerequisites, "_install", install)
    with pytest.raises(DevError) as caught:
        prerequisites.native_java()
    failed = f"apt-get install {PACKAGE} failed: E: Unable to locate package"
    assert str(caught.value) == f"{NEEDED.format(PACKAGE)}; {failed}"


@pytest.mark.usefixtures("no_java")
def test_what_was_installed_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was looked for in vain before is looked for again."""

    def install(_package: str) -> None:
        program = tmp_path / "jdk" / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\necho 'openjdk version \"21.0.9\" 2025-10-21'\n")
        program.chmod(0o755)

    monkeypatch.setattr(prerequisites, "can_install", lambda: True)
    monkeypatch.setattr(prerequisites, "_install", install)
    assert prerequisites.native_java().version == 21
    assert prerequisites.java().version == 21
