"""Pages as GitHub reads them, in mkdocs' dialect."""

from __future__ import annotations

import pytest

from dev.site.dialect import for_mkdocs


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("text\n- one\n- two\n", "text\n\n- one\n- two\n"),
        ("1. one\n   more\n2. two\n", "1. one\n    more\n2. two\n"),
        ("- one\nlazily more\n", "- one\n    lazily more\n"),
        ("1. one:\n   ```yaml\n   a:\n     b: 1\n   ```\n   then\n", None),
        ("- one\n  - below\n    more\n- two\n", "- one\n\n    - below\n        more\n- two\n"),
        ("words\n| a | b |\n|---|---|\n| 1 | 2 |\n", "words\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"),
        ("words\n```\n- no list\n```\nwords\n", "words\n\n```\n- no list\n```\n\nwords\n"),
        ("# Title\n\nwords\n", "# Title\n\nwords\n"),
    ],
)
def test_what_mkdocs_reads_otherwise_is_written_for_it(written: str, wanted: str | None) -> None:
    if wanted is None:
        wanted = "1. one:\n\n    ```yaml\n    a:\n      b: 1\n    ```\n\n    then\n"
    assert for_mkdocs(written) == wanted
    assert for_mkdocs(wanted) == wanted, "what mkdocs understands already is left as it is"
