"""The example in `examples/` does what it says."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from dev.access import PulsarAccess
from tests.integration.sdk.conftest import MakeLeader

EXAMPLE = Path(__file__).parents[3] / "examples" / "produce_and_consume.py"


async def test_produce_and_consume(lead: MakeLeader, pulsar: PulsarAccess) -> None:
    leader = await lead(segments=2)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLE),
        pulsar.service_url,
        str(leader.topic),
        env={**os.environ, "PULSAR_TOKEN": pulsar.superuser_token},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    lines = output.decode().splitlines()
    assert process.returncode == 0
    assert sum("stored at MessageId(segment " in line for line in lines) == 10
    assert {line.split(" from ")[0] for line in lines if " from segment " in line} == {
        f"customer-{number % 3} order {number}" for number in range(10)
    }
    stored = [await leader.messages_in(leader.segment_topic(segment_id)) for segment_id in (0, 1)]
    assert sum(stored) == 10
