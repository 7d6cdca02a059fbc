"""promtool, run to its end."""

from __future__ import annotations

import subprocess

from dev.promtool import promtool

_TIMEOUT_SECONDS = 60


def run_promtool(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run it with something on its stdin, whatever comes of it."""
    command = [str(promtool()), *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
