"""`make docs` refuses a site in which something leads nowhere."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

_ROOT = Path(__file__).parents[3]
_SECONDS = 120


@pytest.mark.parametrize(
    ("pages", "told"),
    [
        ({"index.md": "[gone](gone.md)"}, "gone.md"),
        ({"index.md": "[gone](#gone)"}, "gone"),
        ({"index.md": "[gone](../examples/gone.yaml)"}, "examples/gone.yaml"),
        ({"index.md": "words", "left-out.md": "words"}, "left-out.md"),
        ({"index.md": "[a file](../examples/quickstart.yaml)"}, ""),
    ],
    ids=["page", "heading", "file", "not in the navigation", "nothing wrong"],
)
def test_what_leads_nowhere_is_refused_and_named(tmp_path: Path, pages: dict[str, str], told: str) -> None:
    settings = yaml.safe_load((_ROOT / "mkdocs.yml").read_text())
    settings |= {
        "docs_dir": "docs",
        "site_dir": "site",
        "nav": ["index.md"],
        "hooks": [str(_ROOT / "dev/site/hooks.py")],
    }
    (tmp_path / "docs").mkdir()
    for name, text in pages.items():
        (tmp_path / "docs" / name).write_text(f"# A page\n\n{text}\n")
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(settings))
    done = subprocess.run(
        ["make", "docs", f"MKDOCS_ARGUMENTS=--config-file {tmp_path / 'mkdocs.yml'}"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert (done.returncode != 0) is bool(told), done.stderr
    assert told in done.stderr
