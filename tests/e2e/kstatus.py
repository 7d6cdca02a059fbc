"""Whether an object is current by kstatus, whose own code says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.e2e.kubectl import run


def status_of(manifest: Mapping[str, Any]) -> str:
    """Return `Current`, `InProgress`, `Failed` or `Terminating`."""
    return run("kstatus", text=json.dumps(manifest)).strip()
