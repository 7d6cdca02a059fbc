"""The tail of a sealed segment, read entry by entry from its end (R15)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.readable import readable
from scalable_topics_operator.operations.protocols import Position, TailEntry


async def tail_entries(admin: PulsarAdmin, topic: str, count: int) -> AsyncIterator[TailEntry]:
    """Entries from the last one backwards, `count` at most, over ledgers. Raises TopicMissing."""
    internal_stats = await admin.topics.internal_stats(topic)
    with readable(f"statistics of {topic}"):
        positions = list(positions_backwards(internal_stats, count))
    for position in positions:
        head = await admin.messages.entry(topic, position.ledger_id, position.entry_id)
        yield TailEntry(head.producer, head.sequence_id + head.messages - 1)


def positions_backwards(internal_stats: Mapping[str, Any], count: int) -> Iterator[Position]:
    """Positions of the last `count` entries, last first. Pure.

    The ledger that holds the last entry knows its end only from `lastConfirmedEntry`; ledgers after it are empty.
    """
    last = Position.parse(internal_stats["lastConfirmedEntry"])
    left = count
    for ledger in reversed(internal_stats["ledgers"]):
        ledger_id = int(ledger["ledgerId"])
        if ledger_id > last.ledger_id:
            continue
        top = last.entry_id if ledger_id == last.ledger_id else int(ledger["entries"]) - 1
        for entry_id in range(top, -1, -1):
            if not left:
                return
            left -= 1
            yield Position(ledger_id, entry_id)
