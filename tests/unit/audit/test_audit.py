"""The audit of dependencies: what counts, what is asked, and what comes of answers of every kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dev.audit.__main__ import main
from dev.audit.advisories import Finding, Unreachable, findings
from dev.audit.inventory import Part, go_parts, image_parts, python_parts
from dev.audit.licences import PAGE, licence_of, licences_page

SHIPPED, OTHER = Part("pkg:pypi/a@1", "uv.lock", True), Part("pkg:golang/b@v1?x=y", "dev/go.mod", False)


def test_the_lock_and_the_modules_count_and_what_is_shipped_is_told_apart() -> None:
    python = {part.purl.partition("@")[0]: part.shipped for part in python_parts()}
    assert python["pkg:pypi/aiohttp"]
    assert python["pkg:pypi/yarl"], "what comes with something that is shipped is shipped, too"
    assert python["pkg:pypi/pyspark"]
    assert not python["pkg:pypi/pytest"]
    modules = list(go_parts())
    assert any(part.purl.startswith("pkg:golang/k8s.io/apiserver@v") for part in modules)
    assert not any(part.shipped for part in modules)
    assert not any(part.purl.endswith("@v0.0.0") for part in modules), "such a version was never published"


def test_of_a_module_that_is_replaced_the_replacement_counts(tmp_path: Path) -> None:
    (tmp_path / "dev" / "x").mkdir(parents=True)
    (tmp_path / "dev" / "x" / "go.mod").write_text(
        "module ours/x\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/a v0.0.0\n\tk8s.io/b v1.2.3 // indirect\n)\n\n"
        "require example.org/c v1.0.0\n\n"
        "replace (\n\tk8s.io/a => k8s.io/a v0.36.3\n)\n\nreplace example.org/c v1.0.0 => example.org/fork v1.0.1\n"
    )
    assert [part.purl for part in go_parts(tmp_path)] == [
        "pkg:golang/k8s.io/a@v0.36.3",
        "pkg:golang/k8s.io/b@v1.2.3",
        "pkg:golang/example.org/fork@v1.0.1",
    ]


def test_bills_of_images_count(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    bill = {"components": [{"purl": "pkg:deb/debian/zlib1g@1:1.2?arch=amd64"}, {"purl": "pkg:maven/a/b@1"}]}
    (tmp_path / "dist" / "x.cdx.json").write_text(json.dumps(bill))
    assert [part.purl for part in image_parts(tmp_path)] == [
        "pkg:deb/debian/zlib1g@1:1.2?arch=amd64",
        "pkg:maven/a/b@1",
    ]


def _answering(*results: Any) -> Any:
    def ask(path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        assert path == "/v1/querybatch"
        assert [one["package"]["purl"] for one in body["queries"]] == ["pkg:pypi/a@1", "pkg:golang/b@v1"]
        return {"results": list(results)}

    return ask


def test_what_is_known_is_told_and_fails_only_for_what_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    bad = {"vulns": [{"id": "GHSA-2"}, {"id": "GHSA-1"}]}
    assert main([], ask=_answering({}, bad), found=[SHIPPED, OTHER]) == 0
    assert "pkg:golang/b@v1?x=y (dev/go.mod, for work on it only): GHSA-1, GHSA-2" in capsys.readouterr().err
    assert main([], ask=_answering(bad, None), found=[SHIPPED, OTHER]) == 1
    assert "pkg:pypi/a@1 (uv.lock, shipped): GHSA-1, GHSA-2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("purl", "asked"),
    [
        ("pkg:deb/debian/zlib1g@1:1.2?arch=amd64&distro=debian-12&upstream=zlib", "pkg:deb/debian/zlib@1:1.2"),
        (
            "pkg:deb/debian/libgcc-s1@12.2.0-14%2Bdeb12u1?arch=amd64&upstream=gcc-12%4012.2.0-14%2Bdeb12u1",
            "pkg:deb/debian/gcc-12@12.2.0-14%2Bdeb12u1",
        ),
        ("pkg:deb/debian/bash@5.2?arch=amd64&distro=debian-12", "pkg:deb/debian/bash@5.2"),
        ("pkg:maven/a/b@1", "pkg:maven/a/b@1"),
    ],
)
def test_advisories_of_debian_are_about_source_packages(purl: str, asked: str) -> None:
    queries: list[Any] = []

    def ask(path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        queries.extend(body["queries"])
        return {"results": [{}]}

    assert findings([Part(purl, "dist/x.cdx.json", True)], ask) == []
    assert queries == [{"package": {"purl": asked}}]


def test_every_page_of_an_answer_is_read() -> None:
    pages = {None: {"next_page_token": "2"}, "2": {"vulns": [{"id": "GHSA-1"}], "next_page_token": "3"}, "3": {}}

    def ask(path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        (query,) = body["queries"]
        return {"results": [pages.pop(query.get("page_token"))]}

    assert findings([SHIPPED], ask) == [Finding(SHIPPED, ("GHSA-1",))]
    assert pages == {}


def test_where_nobody_answers_one_line_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    def ask(path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        raise Unreachable("the advisories cannot be read: no network")

    assert main([], ask=ask, found=[SHIPPED]) == 0
    assert main(["--online"], ask=ask, found=[SHIPPED]) == 2
    assert "not audited: the advisories cannot be read: no network" in capsys.readouterr().err


@pytest.mark.parametrize("answer", [{}, {"results": None}, {"results": []}, {"results": [{}]}])
def test_an_answer_that_lacks_parts_is_none(answer: dict[str, Any]) -> None:
    with pytest.raises(Unreachable):
        findings([SHIPPED, OTHER], lambda path, body: answer)


def test_every_licence_that_is_shipped_is_known_and_lets_us() -> None:
    """Licences that ask for the source of what is shipped with them would have to be looked at."""
    page = PAGE.read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in licences_page().splitlines() if line.startswith("| ") and "@" not in line]
    licences = {row[2].strip(" |") for row in rows if len(row) == 3} - {"licence"}
    assert "?" not in licences
    assert not any("GPL" in one for one in licences)
    assert licence_of("aiohttp").startswith("Apache-2.0")
    assert page.startswith("# Licences")
