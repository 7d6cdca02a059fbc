"""The segments and entry buckets that a coordinated consumer is attached to, from assignment to giving back
(docs/sessions.md).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from scalable_topics.layout import Part
from scalable_topics.sdk.prefetch_budget import PrefetchBudget
from scalable_topics.sdk.segment_consumer import SegmentConsumer
from scalable_topics.sdk.session_frames import AssignedSegment


class SegmentReader(Protocol):
    """What a consumer does with what it holds: segments, and entry buckets of segments."""

    def open(self, segment: AssignedSegment, prefetch: int) -> SegmentConsumer:
        """Make the consumer of a segment, or of a bucket, and have it attach."""
        ...

    def updated(self, held: HeldSegment) -> None:
        """Something else is said of a segment: it is sealed now, for instance."""
        ...

    def is_settled(self, consumer: SegmentConsumer) -> bool:
        """Whether nothing delivered of a segment waits for an acknowledgement."""
        ...

    def detaching(self, consumer: SegmentConsumer) -> None:
        """A segment is about to be detached from: nothing of it can be acknowledged any more."""
        ...

    def detached(self, part: Part) -> None:
        """A segment, or a bucket, is detached from."""
        ...

    def changed(self) -> None:
        """Other segments are held than before."""
        ...


class HeldSegment:
    """One of them.

    Attributes:
        segment: what was last said of it.
        consumer: is attached to it, or about to be.
        prefetch: its share of the budget.
    """

    def __init__(self, segment: AssignedSegment, consumer: SegmentConsumer, prefetch: int) -> None:
        self.segment = segment
        self.consumer = consumer
        self.prefetch = prefetch
        self.settled = asyncio.Event()
        self.settling: asyncio.Task[None] | None = None
        self.going: asyncio.Task[None] | None = None


class HeldSegments:
    """Attaches and gives back, as a `SegmentHolder` of a session. Belongs to one event loop.

    Args:
        reader: reads the segments.
        receiver_queue_size: messages that may wait for the application, over all segments.
        handover_seconds: how long the application may acknowledge what it got of a segment that is given back.
    """

    def __init__(self, reader: SegmentReader, *, receiver_queue_size: int, handover_seconds: float) -> None:
        self._reader = reader
        self._budget = PrefetchBudget(receiver_queue_size)
        self._handover_seconds = handover_seconds
        self._held: dict[Part, HeldSegment] = {}

    def __iter__(self) -> Iterator[HeldSegment]:
        """Those that are read."""
        return iter([held for held in self._held.values() if held.going is None])

    def find(self, part: Part) -> HeldSegment | None:
        """One that is read, or None."""
        held = self._held.get(part)
        return held if held is not None and held.going is None else None

    @property
    def every(self) -> list[HeldSegment]:
        """All, those included that are about to be given back and may still be acknowledged."""
        return list(self._held.values())

    @property
    def ids(self) -> tuple[int, ...]:
        """Ids of the segments that are read, whole or in part."""
        return tuple(sorted({held.segment.segment_id for held in self}))

    @property
    def parts(self) -> tuple[Part, ...]:
        """The segments and buckets that are read."""
        return tuple(sorted(held.segment.part for held in self))

    @property
    def waiting_messages(self) -> int:
        """Messages that have arrived and wait for the application."""
        return sum(held.consumer.waiting for held in self)

    def attach(self, segments: tuple[AssignedSegment, ...]) -> None:
        """Attach to segments and buckets, as often as it takes."""
        share = self._budget.take(len(segments))
        for segment in segments:
            self._held[segment.part] = HeldSegment(segment, self._reader.open(segment, share), share)
        self._reader.changed()

    async def first_attempts(self) -> None:
        """Wait until attaching to each has been tried once. Raises what pulsar-client does, of one that failed."""
        await asyncio.gather(*(held.consumer.first_attempt() for held in self.every))

    def update(self, segment: AssignedSegment) -> None:
        """Know what is said of a segment now."""
        held = self._held[segment.part]
        # Where it began is said once.
        held.segment = replace(
            segment, start=segment.start or held.segment.start, floors=segment.floors or held.segment.floors
        )
        self._reader.updated(held)

    def give_back(self, part: Part, within_seconds: float) -> None:
        """Deliver nothing more of a part, and detach once what was delivered is acknowledged, or time is over."""
        held = self._held[part]
        # It may have been settled before something more was delivered.
        held.settled.clear()
        if self._reader.is_settled(held.consumer):
            held.settled.set()
        held.settling = asyncio.create_task(_settle(held, min(self._handover_seconds, within_seconds)))
        self._let_go(held)

    def drop(self, part: Part) -> None:
        """Deliver nothing more of a part, and detach at once."""
        held = self._held[part]
        if held.settling is not None:
            held.settling.cancel()
        self._let_go(held)

    def unserved(self) -> list[Part]:
        """What no broker serves it at this moment."""
        return [part for part, held in self._held.items() if not held.consumer.is_connected]

    def acknowledged(self, consumer: SegmentConsumer) -> None:
        """Something of a segment has been acknowledged."""
        held = self._held.get(consumer.part)
        if held is not None and held.consumer is consumer and self._reader.is_settled(consumer):
            held.settled.set()

    async def close(self) -> None:
        """Wait until everything that goes is detached from."""
        await asyncio.gather(*(held.going for held in self._held.values() if held.going is not None))

    def _let_go(self, held: HeldSegment) -> None:
        held.consumer.stop()
        if held.going is None:
            held.going = asyncio.create_task(self._detach(held))
            self._reader.changed()

    async def _detach(self, held: HeldSegment) -> None:
        if held.settling is not None:
            await asyncio.wait({held.settling})
        self._reader.detaching(held.consumer)
        await held.consumer.close()
        del self._held[held.segment.part]
        self._budget.give_back(held.prefetch)
        self._reader.detached(held.segment.part)


async def _settle(held: HeldSegment, within_seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_seconds):
            await held.settled.wait()
            # Whoever has it next would be given again what the application was done with.
            held.consumer.make_sure()
            await held.consumer.acknowledgements_sent()
