"""The pages of the documentation, and the code in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[3]
_DOCS = ROOT / "docs"
# Written by long runs, which say what they ran, or generated from what they tell of and checked by `make lint`.
_GENERATED = ("evidence", "reference")
_GENERATED_PAGES = ("benchmarks.md", "hazards.md")


@dataclass(frozen=True, slots=True)
class Fence:
    """A block of code.

    Args:
        page: path of its page, from the root of the repository.
        line: its first line, counted from 1.
        language: what it is in; empty if the page does not say.
        heading: the last heading before it, as links name it; empty before the first one.
        text: the code.
    """

    page: str
    line: int
    language: str
    heading: str
    text: str

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return f"{self.page}:{self.line}"


def written_pages() -> list[Path]:
    """All pages that people write."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(_DOCS.rglob("*.md"))]
    return [page for page in pages if not _is_generated(page)]


def all_fences() -> list[Fence]:
    """The blocks of code of all pages that people write."""
    return [fence for page in written_pages() for fence in fences(page)]


def fences(page: Path) -> list[Fence]:
    """The blocks of code of a page, in lists, too."""
    return list(_fences(page.relative_to(ROOT).as_posix(), page.read_text()))


def inline_code(page: Path) -> list[str]:
    """What a page shows as code within its sentences."""
    parts = [child for token in _parse(page.read_text()) for child in token.children or ()]
    return [part.content for part in parts if part.type == "code_inline"]


def slug(heading: str) -> str:
    """The name of a heading in links, as GitHub makes it."""
    words = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def slugs(text: str) -> set[str]:
    """The names of all headings of a page."""
    tokens = _parse(text)
    return {slug(following.content) for token, following in pairwise(tokens) if token.type == "heading_open"}


def links(text: str) -> list[str]:
    """Where the links and pictures of a page lead."""
    parts = [child for token in _parse(text) for child in token.children or ()]
    found = [part.attrs.get("href") or part.attrs.get("src") for part in parts if part.type in ("link_open", "image")]
    return [str(target) for target in found if target]


def _fences(page: str, text: str) -> Iterator[Fence]:
    heading, tokens = "", _parse(text)
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = slug(tokens[number + 1].content)
        if token.type == "fence" and token.map:
            yield Fence(page, token.map[0] + 1, token.info.strip(), heading, token.content)


def _parse(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text)


def _is_generated(page: Path) -> bool:
    if not page.is_relative_to(_DOCS):
        return False
    place = page.relative_to(_DOCS)
    return place.parts[0] in _GENERATED or place.name in _GENERATED_PAGES
