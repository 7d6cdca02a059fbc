"""What the cache holds is complete, made once, and made again when its inputs change."""

import threading
import time
from pathlib import Path

import pytest

from dev.artifacts import KUBE_SOURCES, link_flags
from dev.cache import CACHE_VARIABLE, cache_root, content_key, ensure
from dev.errors import DevError


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))


def test_two_builders_at_once_build_once() -> None:
    builds: list[Path] = []
    results: list[Path] = []

    def build(into: Path) -> None:
        builds.append(into)
        time.sleep(0.3)
        (into / "program").write_text("complete")

    threads = [threading.Thread(target=lambda: results.append(ensure("kube", "k", build))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds) == 1
    assert [(result / "program").read_text() for result in results] == ["complete", "complete"]


def test_a_failed_build_leaves_nothing_and_is_tried_again() -> None:
    def fail(into: Path) -> None:
        (into / "half").touch()
        raise DevError("no network")

    with pytest.raises(DevError, match="no network"):
        ensure("kube", "k", fail)
    assert list((cache_root() / "kube").iterdir()) == []
    assert ensure("kube", "k", lambda into: (into / "program").touch()).joinpath("program").exists()


def test_what_a_killed_build_left_is_not_taken_over() -> None:
    leftover = cache_root() / "kube" / ".building-k"
    leftover.mkdir(parents=True)
    (leftover / "half").touch()
    built = ensure("kube", "k", lambda into: (into / "program").touch())
    assert [file.name for file in built.iterdir()] == ["program"]


def test_the_key_follows_content_name_and_facts(tmp_path: Path) -> None:
    file, renamed = tmp_path / "go.mod", tmp_path / "go.sum"
    file.write_text("a")
    renamed.write_text("a")
    keys = {content_key([file]), content_key([renamed]), content_key([file], "flag")}
    file.write_text("b")
    keys.add(content_key([file]))
    assert len(keys) == 4
    assert content_key([file]) == content_key([file])


def test_link_flags_tell_the_version_that_go_mod_pins() -> None:
    variable = "k8s.io/component-base/version.git"
    assert link_flags("require (\n\tk8s.io/kubernetes v1.36.3\n)\n") == (
        f"-s -w -X {variable}Version=v1.36.3 -X {variable}Major=1 -X {variable}Minor=36"
    )
    assert "Version=v" in link_flags((KUBE_SOURCES / "go.mod").read_text())


def test_go_mod_without_kubernetes_is_refused() -> None:
    with pytest.raises(DevError, match="requires no release"):
        link_flags("module x\n")
