"""Finds out which sends of a lost producer a segment has stored (R15): from the segment itself.

The leader settles producers that were attached when it sealed. One whose connection had broken before is not among
them, and may have stored sends all the same; so it looks for itself. Sequence ids rise in the order of storage, and
every producer name is used once, so the highest one found under the name decides.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pulsar

from scalable_topics.sdk import pulsar_binding
from scalable_topics.sdk.options import ConnectionOptions, create_reader

_READ_MS = 5000
_READER_QUEUE = 2000
_CLOCK_SKEW_MS = 60_000
_LOOK_MS = 100
_GRACE_SECONDS = 1.0
"""How long to go on after pulsar-client says for the first time that there is nothing more. It says so, too, while its
queue happens to be empty, of a topic whose last ledger is empty, as that of one sealed after an unload (measured)."""


class TailUnreadableError(Exception):
    """The tail could not be read to its end in time."""


@dataclass(frozen=True, slots=True)
class TailQuestion:
    """What is asked.

    Args:
        segment_topic: full name of the segment's topic, which exists.
        producer_name: the lost producer.
        after: pulsar-client's id of its last acknowledged message; None if there is none.
        acknowledged_id: sequence id of that message, -1 if there is none.
        opened_at_ms: when it was attached, milliseconds since 1970.
    """

    segment_topic: str
    producer_name: str
    after: Any
    acknowledged_id: int
    opened_at_ms: int


def last_stored_sequence_id(options: ConnectionOptions, question: TailQuestion, within_seconds: float) -> int:
    """The last sequence id stored under the producer's name, -1 for none. Blocks.

    It uses a connection of its own, since pulsar-client drops one on which a reader meets the end of a sealed topic.

    Raises:
        TailUnreadableError: it could not be found out within `within_seconds`.
    """
    deadline = time.monotonic() + within_seconds
    client = options.connect()
    try:
        with contextlib.closing(_reader(client, question)) as reader:
            last = question.acknowledged_id
            for message in _messages(reader, deadline):
                if message.producer_name() == question.producer_name:
                    last = max(last, pulsar_binding.sequence_id(message))
            return last
    except (pulsar.PulsarException, ValueError, TailUnreadableError) as error:
        why = str(error) if isinstance(error, TailUnreadableError) else type(error).__name__
        raise TailUnreadableError(f"cannot read the tail of {question.segment_topic}: {why}") from None
    finally:
        pulsar_binding.close_client(client)


def _messages(reader: Any, deadline: float) -> Iterator[pulsar.Message]:
    """Everything up to the end."""
    ended_at: float | None = None
    while time.monotonic() < deadline:
        try:
            if reader.has_message_available():
                yield reader.read_next(_READ_MS)
                continue
        except pulsar.PulsarException:
            # A reader that meets the end of a sealed topic loses its connection, and comes back.
            if ended_at is None:
                raise
        now = time.monotonic()
        ended_at = now if ended_at is None else ended_at
        if now - ended_at > _GRACE_SECONDS and reader.is_connected():
            return
        with contextlib.suppress(pulsar.Timeout):
            yield reader.read_next(_LOOK_MS)
    raise TailUnreadableError("reading it takes too long")


def _reader(client: pulsar.Client, question: TailQuestion) -> Any:
    after = pulsar.MessageId.earliest if question.after is None else question.after
    reader = create_reader(client, question.segment_topic, after, receiver_queue_size=_READER_QUEUE)
    if question.after is None:
        # Nothing of this producer is older than the producer itself; other producers' clocks may be slow, though.
        reader.seek(max(0, question.opened_at_ms - _CLOCK_SKEW_MS))
    return reader
