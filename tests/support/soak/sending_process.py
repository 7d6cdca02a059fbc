"""Runs as a process: numbered messages for as long as it is let, in bounded memory, and counts of what is stored.

`sending_process.py SERVICE_URL TOKEN_FILE TOPIC PRODUCERS KEYS LOW HIGH PERIOD_SECONDS COUNTS_FILE`. Each producer
sends LOW messages a second in the first half of each period, HIGH in the second, to its keys by turns. SIGTERM has it
stop, wait for the outcomes and end. The file of counts is written anew every other second, and at the end.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulsar

from scalable_topics.sdk import Client, OutgoingMessage, Producer
from tests.support.guarantee_checker import Numbered
from tests.support.soak.ledger import LaneName

_TELL_SECONDS = 2.0
_SHOWN = 5
# A change between seal and commit holds messages back; whoever runs this is told how long, and judges that.
_PATIENCE_SECONDS = 600.0


@dataclass(slots=True)
class _Counts:
    """What became of the messages."""

    stored: Counter[LaneName] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    longest_seconds: float = 0.0

    def write(self, file: Path) -> None:
        stored = [[*lane, count] for lane, count in self.stored.items()]
        told = {"stored": stored, "failures": self.failures, "longestSeconds": self.longest_seconds}
        unfinished = file.with_suffix(".new")
        unfinished.write_text(json.dumps(told))
        unfinished.replace(file)


@dataclass(frozen=True, slots=True)
class Sent:
    """What a sending process has told.

    Args:
        stored: messages that are stored, by lane; they are numbered from 0.
        failures: errors of those that are not.
        longest_seconds: the longest that one took.
    """

    stored: Mapping[LaneName, int]
    failures: list[str]
    longest_seconds: float

    @classmethod
    def read(cls, file: Path) -> Sent:
        """Read a file of counts; nothing was sent while there is none."""
        try:
            told: dict[str, Any] = json.loads(file.read_text())
        except FileNotFoundError:
            return cls({}, [], 0.0)
        stored = {(producer, key): count for producer, key, count in told["stored"]}
        return cls(stored, told["failures"], told["longestSeconds"])


class _Sender:
    def __init__(self, producer: Producer, keys: int, counts: _Counts) -> None:
        self._producer = producer
        self._keys = keys
        self._counts = counts
        self._number = 0

    async def run(self, low: float, high: float, period_seconds: float, stopping: asyncio.Event) -> None:
        began = due = time.monotonic()
        while not stopping.is_set():
            await self._send()
            late_in_period = (due - began) % period_seconds >= period_seconds / 2
            due += 1 / (high if late_in_period else low)
            # What was missed while the brokers were away is not sent all at once.
            due = max(due, time.monotonic() - 1.0)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        await self._producer.flush()

    async def _send(self) -> None:
        rounds, place = divmod(self._number, self._keys)
        self._number += 1
        message = Numbered(self._producer.name, f"key-{place}", rounds)
        outgoing = await self._producer.submit(message.payload(), key=message.key)
        outgoing.add_done_callback(_Told(self._counts, message))


class _Told:
    """Notes the outcome of one message."""

    __slots__ = ("_at", "_counts", "_message")

    def __init__(self, counts: _Counts, message: Numbered) -> None:
        self._counts = counts
        self._message = message
        self._at = time.monotonic()

    def __call__(self, outgoing: OutgoingMessage) -> None:
        counts = self._counts
        if (error := outgoing.exception()) is not None:
            if len(counts.failures) < _SHOWN:
                counts.failures.append(f"{self._message}: {error!r}")
            return
        counts.stored[self._message.producer, self._message.key] += 1
        counts.longest_seconds = max(counts.longest_seconds, time.monotonic() - self._at)


async def _tell(counts: _Counts, file: Path) -> None:
    while True:
        counts.write(file)
        await asyncio.sleep(_TELL_SECONDS)


async def _run(service_url: str, token_file: str, topic: str, *others: str) -> None:
    producers, keys, low, high, period_seconds = map(float, others[:-1])
    counts, file = _Counts(), Path(others[-1])
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    token = await asyncio.to_thread(Path(token_file).read_text)
    async with Client(service_url, pulsar.AuthenticationToken(token)) as client:
        senders = [
            _Sender(await client.producer(topic, send_timeout_seconds=_PATIENCE_SECONDS), int(keys), counts)
            for _ in range(int(producers))
        ]
        telling = asyncio.create_task(_tell(counts, file))
        try:
            async with asyncio.TaskGroup() as group:
                for sender in senders:
                    group.create_task(sender.run(low, high, period_seconds, stopping))
        finally:
            telling.cancel()
    counts.write(file)


if __name__ == "__main__":
    asyncio.run(_run(*sys.argv[1:]))
