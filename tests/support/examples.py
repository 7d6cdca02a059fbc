"""Runs the programs in `examples/`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


async def run_example(name: str, *arguments: str, **environment: str) -> list[str]:
    """Run an example; answers the lines it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLES / name),
        *arguments,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    return output.decode().splitlines()
