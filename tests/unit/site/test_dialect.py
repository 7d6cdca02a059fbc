"""Pages as GitHub reads them, in mkdocs' dialect."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import markdown
import pytest
import yaml
from markdown_it import MarkdownIt

from dev.site.dialect import for_mkdocs

_ROOT = Path(__file__).parents[3]
_TAGS = {"a", "code", "em", "h1", "h2", "h3", "h4", "img", "li", "ol", "pre", "strong", "table", "td", "tr", "ul"}


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("text\n- one\n- two\n", "text\n\n- one\n- two\n"),
        ("1. one\n   more\n2. two\n", "1. one\n    more\n2. two\n"),
        ("- one\nlazily more\n", "- one\n    lazily more\n"),
        ("1. one:\n   ```yaml\n   a:\n     b: 1\n   ```\n   then\n", None),
        ("- one\n  - below\n    more\n- two\n", "- one\n\n    - below\n        more\n\n- two\n"),
        ("words\n| a | b |\n|---|---|\n| 1 | 2 |\n", "words\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"),
        ("words\n```\n- no list\n```\nwords\n", "words\n\n```\n- no list\n```\n\nwords\n"),
        ("# Title\n\nwords\n", "# Title\n\nwords\n"),
        ("- one\n\n  ```\n  code\n  ```\n- two\n", "- one\n\n    ```\n    code\n    ```\n\n- two\n"),
    ],
)
def test_what_mkdocs_reads_otherwise_is_written_for_it(written: str, wanted: str | None) -> None:
    if wanted is None:
        wanted = "1. one:\n\n    ```yaml\n    a:\n      b: 1\n    ```\n\n    then\n"
    assert for_mkdocs(written) == wanted
    assert for_mkdocs(wanted) == wanted, "what mkdocs understands already is left as it is"


@pytest.mark.parametrize(
    "text",
    [
        "- one\n  - below\n- two\n  - below two\n  - more\n- three\n",
        "1. one\n   - below\n2. two\n",
        "- one\n  - below\n    - further below\n  - more\n- two\n",
    ],
)
def test_lists_in_lists_end_where_they_end(text: str) -> None:
    assert _shape(markdown.markdown(for_mkdocs(text), extensions=_extensions())) == _shape(
        MarkdownIt("commonmark").render(text)
    )


@pytest.mark.parametrize("page", sorted((_ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_a_page_has_the_same_parts_as_github_sees(page: Path) -> None:
    text = page.read_text()
    as_github = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    as_mkdocs = markdown.markdown(for_mkdocs(text), extensions=_extensions())
    assert _parts(as_mkdocs) == _parts(as_github)


def _extensions() -> list[str]:
    known = yaml.safe_load((_ROOT / "mkdocs.yml").read_text())["markdown_extensions"]
    return [one for one in known if isinstance(one, str)]


def _shape(html: str) -> list[str]:
    return re.findall(r"</?(?:ul|ol|li)>", html)


def _parts(html: str) -> Counter[str]:
    return Counter(tag for tag in re.findall(r"<(\w+)[ >/]", html) if tag in _TAGS)
