"""What segments really hold, read from the brokers without the library, and what is wrong with it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pulsar

# How long nothing may come of a topic that is said to be at its end: the first message takes longer than others.
_FIRST_SECONDS = 2.0
_NEXT_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One stored message.

    Args:
        segment: number of its segment in the order of reading.
        key: its key, "" for none.
        number: its payload, a number.
        entry: ledger and entry that hold it.
    """

    segment: int
    key: str
    number: int
    entry: tuple[int, int] = (-1, -1)


@dataclass(frozen=True, slots=True)
class Findings:
    """What is wrong between what was sent and what is stored."""

    lost: list[tuple[str, int]]
    duplicated: list[tuple[str, int]]
    disordered: list[tuple[str, int]]

    def __bool__(self) -> bool:
        return bool(self.lost or self.duplicated or self.disordered)

    def __str__(self) -> str:
        parts = (("lost", self.lost), ("duplicated", self.duplicated), ("disordered", self.disordered))
        return ", ".join(f"{name} {len(found)} {found[:5]}" for name, found in parts)


def read_topics(service_url: str, token: str, topics: Iterable[str]) -> list[StoredMessage]:
    """Everything stored on some topics, in their order; parents come before children. Blocks."""
    return [
        StoredMessage(segment, message.partition_key(), int(message.data()), _entry(message))
        for segment, topic in enumerate(topics)
        for message in _read(service_url, token, topic)
    ]


async def stored_on(service_url: str, token: str, topics: Iterable[str]) -> list[StoredMessage]:
    """As `read_topics`, in a thread."""
    return await asyncio.to_thread(read_topics, service_url, token, list(topics))


async def payloads_on(service_url: str, token: str, topics: Mapping[int, str]) -> dict[int, list[bytes] | None]:
    """Every payload on each topic, in its order, by the topic's number; None of a topic that does not exist."""

    def read(topic: str) -> list[bytes] | None:
        try:
            return [message.data() for message in _read(service_url, token, topic)]
        except pulsar.TopicNotFound:
            return None

    return {number: await asyncio.to_thread(read, topic) for number, topic in topics.items()}


def _read(service_url: str, token: str, topic: str) -> Iterator[pulsar.Message]:
    client = pulsar.Client(
        service_url,
        authentication=pulsar.AuthenticationToken(token),
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
    )
    try:
        reader = client.create_reader(topic, pulsar.MessageId.earliest, receiver_queue_size=5000)
        ended_at: float | None = None
        grace_seconds = _FIRST_SECONDS
        while ended_at is None or time.monotonic() - ended_at < grace_seconds:
            try:
                if reader.has_message_available():
                    yield reader.read_next(10_000)
                    ended_at, grace_seconds = None, _NEXT_SECONDS
                    continue
            except pulsar.PulsarException:
                # It has met the end of a sealed topic, on which pulsar-client drops its connection.
                if ended_at is None:
                    raise
            # It says so, too, of a topic whose last ledger is empty, as that of one sealed after an unload (measured).
            ended_at = ended_at or time.monotonic()
            with contextlib.suppress(pulsar.Timeout):
                yield reader.read_next(100)
                ended_at, grace_seconds = time.monotonic(), _NEXT_SECONDS
    finally:
        with contextlib.suppress(pulsar.PulsarException):
            # It has just met the end of a sealed topic, on which pulsar-client drops its connection.
            client.close()


def _entry(message: pulsar.Message) -> tuple[int, int]:
    position = message.message_id()
    return position.ledger_id(), position.entry_id()


def judge(sent: dict[str, list[int]], stored: list[StoredMessage]) -> Findings:
    """Compare what was acknowledged, by key in the order of sending, with what is stored."""
    by_key: dict[str, list[int]] = defaultdict(list)
    for message in stored:
        by_key[message.key].append(message.number)
    lost, duplicated, disordered = [], [], []
    for key, numbers in sent.items():
        found = by_key.get(key, [])
        present = set(found)
        lost += [(key, number) for number in numbers if number not in present]
        duplicated += [(key, number) for number, times in Counter(found).items() if times > 1]
        if key:
            first_seen = list(dict.fromkeys(found))
            highest = -1
            for number in first_seen:
                if number < highest:
                    disordered.append((key, number))
                highest = max(highest, number)
    return Findings(lost, duplicated, disordered)
