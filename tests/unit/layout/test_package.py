"""The kernel stays pure, and its public names are what it says they are (DESIGN §3)."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import scalable_topics.layout as package

SOURCES = sorted(Path(package.__file__).parent.glob("*.py"))
ALLOWED = sys.stdlib_module_names | {"mmh3"}


def test_imports_only_the_standard_library_mmh3_and_itself() -> None:
    assert len(SOURCES) > 8
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [node.module or ""]
            else:
                continue
            for name in names:
                assert name.split(".")[0] in ALLOWED or name.startswith("scalable_topics.layout"), (
                    source,
                    name,
                )


def test_every_public_name_exists_once() -> None:
    assert len(set(package.__all__)) == len(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None
