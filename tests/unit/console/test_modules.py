"""What the console's modules decide without a browser: node runs their tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dev import prerequisites

TESTS = sorted(Path(__file__).parent.glob("*.test.mjs"))


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.name)
def test_modules_of_the_console(file: Path) -> None:
    done = subprocess.run(
        [prerequisites.node(), "--test", str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
