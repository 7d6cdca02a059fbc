"""Runs in a pod: the tests' application on a topic, and the judgement of what became of its messages.

`traffic.py SERVICE_URL TOPIC SUBSCRIPTION FILE` sends and receives until the file of segments is there, then waits
until everything that was stored has been delivered, reads those segments, and prints what it found as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from dev.access import PulsarAccess
from tests.support.application import Application
from tests.support.stored_messages import judge, stored_on

TOKEN_FILE = Path("/var/run/pulsar/token")
STARTED = "started"
LOOK_SECONDS = 0.2
PRODUCERS, CONSUMERS, PER_SECOND, KEYS = 2, 2, 100.0, 25


async def run(service_url: str, topic: str, subscription: str, segments_file: Path) -> None:
    """Send and receive until told to end, and print what became of it."""
    loop = asyncio.get_running_loop()
    access = PulsarAccess("", service_url, (), *([TOKEN_FILE] * 3))
    application = Application(
        access, topic, subscription, producers=PRODUCERS, consumers=CONSUMERS, per_second=PER_SECOND, keys=KEYS
    )
    async with application:
        print(STARTED, flush=True)
        while not await loop.run_in_executor(None, segments_file.exists):
            await application.until_sent(1)
            await asyncio.sleep(LOOK_SECONDS)
    journal = application.journal
    segments = (await loop.run_in_executor(None, segments_file.read_text)).split()
    stored = await stored_on(service_url, access.superuser_token, segments)
    findings = judge(journal.acknowledged, stored)
    found = {
        "sent": len(journal.sends),
        "failed": len(journal.failed),
        "not_received": len(journal.not_received),
        "received_twice": sum(times > 1 for times in journal.received.values()),
        "lost": len(findings.lost),
        "duplicated": len(findings.duplicated),
        "disordered": len(findings.disordered),
        "longest_ms": round(journal.longest_ms(0, float("inf"))),
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    service_url, topic, subscription, segments_file = sys.argv[1:]
    asyncio.run(run(service_url, topic, subscription, Path(segments_file)))
