"""What the pages say is there: links, commands, modules, drawings."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.documentation.known_commands import problems
from tests.support.documentation.manifests import read_samples
from tests.support.documentation.pages import ROOT, all_fences, inline_code, links, slugs, written_pages

_PAGES = [*written_pages(), ROOT / "CHANGELOG.md"]
_SVG = "{http://www.w3.org/2000/svg}"
_TARGET = re.compile(r"(?m)^([a-z0-9-]+):")


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    """As GitHub follows them; mkdocs follows those of the site."""
    for target in links(page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} leads to nothing"
        if anchor and file.suffix == ".md":
            assert anchor in slugs(file.read_text()), f"{target}: there is no such heading"


def test_every_command_is_run_or_known_not_to_be() -> None:
    assert problems() == []


def test_all_yaml_is_a_manifest_or_known_not_to_be() -> None:
    samples = read_samples()
    assert samples.unknown == ()
    assert samples.unused == ()
    assert len(samples.manifests) > 20


def test_python_in_pages_can_be_read() -> None:
    for fence in all_fences():
        if fence.language == "python":
            compile(fence.text, fence.place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_what_sentences_tell_to_run_is_there(page: Path) -> None:
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text()))
    for code in inline_code(page):
        if told := re.match(r"make ([a-z][a-z0-9-]*)", code):
            assert told[1] in targets, f"there is no `{code}`"
        if told := re.match(r"(?:\S+/)?python -m ([\w.]+)", code):
            assert importlib.util.find_spec(told[1]), f"there is no module for `{code}`"


@pytest.mark.parametrize("drawing", sorted((ROOT / "docs" / "drawings").glob("*.svg")), ids=lambda file: file.name)
def test_drawings_say_what_they_show_and_load_nothing(drawing: Path) -> None:
    root = ElementTree.parse(drawing).getroot()
    assert root.get("role") == "img"
    for part in ("title", "desc"):
        assert (root.findtext(f"{_SVG}{part}") or "").strip()
    assert not re.search(r"(href|src)=|@import|url\((?!#)", drawing.read_text())
    shown = [page for page in _PAGES if f"drawings/{drawing.name}" in page.read_text()]
    assert shown, "no page shows it"
