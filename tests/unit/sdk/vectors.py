"""The contract's test vectors, `tests/vectors/`."""

import json
from pathlib import Path
from typing import Any

_VECTORS = Path(__file__).parents[2] / "vectors"


def cases(name: str, part: str = "cases") -> list[dict[str, Any]]:
    """The cases of one file."""
    found: list[dict[str, Any]] = json.loads((_VECTORS / name).read_text())[part]
    return found
