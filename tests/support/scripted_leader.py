"""A leader for tests of the client library: it does what docs/contract.md says of one, step by step, by hand."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import pulsar

from scalable_topics.layout import (
    PlannedSegment,
    Segment,
    SegmentChange,
    SegmentLayout,
    TopicName,
    classic_segment_name,
    layout_topic_name,
)
from tests.support.planned_migration import PlannedMigration
from tests.support.pulsar_view import PulsarView
from tests.support.waiting import eventually

HOLD_MS = 10_000


@dataclass(frozen=True, slots=True)
class Change:
    """A change under way: what is planned, and its id."""

    planned: SegmentChange | PlannedMigration
    operation: str


class ScriptedLeader:
    """Owns one scalable topic.

    Args:
        topic: the topic; nothing of it exists yet.
        view: a superuser's view of the brokers.
        service_url: address for clients.
        token: of a role that may publish.
        segments: how many to start with.
        bucket_budget: entry buckets of all of them.
        subscriptions: get a cursor at earliest on every segment.
        deduplication: brokers drop messages that are sent again, on every segment from its beginning.
    """

    def __init__(
        self,
        topic: TopicName,
        view: PulsarView,
        service_url: str,
        token: str,
        *,
        segments: int = 1,
        bucket_budget: int = 1,
        subscriptions: Iterable[str] = (),
        deduplication: bool = False,
    ) -> None:
        self.topic = topic
        self._view = view
        self._service_url = service_url
        self._token = token
        self.layout = SegmentLayout.initial(segments, created_at_ms=_now_ms(), bucket_budget=bucket_budget)
        self.incarnation = f"{uuid.uuid4()}.0"
        self.subscriptions = tuple(subscriptions)
        self._deduplication = deduplication
        self.settled: dict[int, dict[str, int]] = {}
        self._step = 0
        self._term = 1

    async def __aenter__(self) -> Self:
        self._connect()
        for segment in self.layout.segments.values():
            await self._create(segment)
        await self._open_layout_topic()
        await self.publish()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._client.close)

    def _connect(self) -> None:
        self._client = pulsar.Client(
            self._service_url,
            authentication=pulsar.AuthenticationToken(self._token),
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        )

    async def _open_layout_topic(self) -> None:
        name = layout_topic_name(self.topic)
        # A client's Reader may have made it, where brokers make topics by themselves; of no use if it has partitions.
        if await self._view.partitions(name):
            await self._view.delete_partitioned(name)
        await self._view.make_topic(name)
        self._publisher = await asyncio.to_thread(self._client.create_producer, name)

    def segment_topic(self, segment_id: int) -> str:
        """Full name of a segment's topic."""
        return self._name(self.layout.segment(segment_id))

    def child_topic(self, child: PlannedSegment) -> str:
        """Full name of a planned segment's topic."""
        return self._name(Segment(child.segment_id, child.hash_range))

    async def rebuild(self) -> None:
        """Lose the record and start over with a new incarnation, at epoch 0, of the segments that are there."""
        self.incarnation = f"{uuid.uuid4()}.0"
        self.layout = replace(
            self.layout,
            epoch=0,
            segments={
                segment_id: replace(segment, created_at_epoch=0, sealed_at_epoch=0)
                for segment_id, segment in self.layout.segments.items()
            },
        )
        await self.publish()

    async def publish(self, change: Change | None = None, *, hold_ms: int = HOLD_MS) -> dict[str, Any]:
        """Publish the layout, and the announcement of a change; answers the message."""
        self._step += 1
        message: dict[str, Any] = {
            "version": 1,
            "topic": str(self.topic),
            "incarnation": self.incarnation,
            "term": self._term,
            "epoch": self.layout.epoch,
            "step": self._step,
            "segments": [self._segment(segment) for segment in self.layout.segments.values()],
        }
        if self.layout.is_synthetic:
            message["routing"] = "Modulo"
        if change is not None:
            message["announcement"] = {
                "operation": change.operation,
                "parents": list(change.planned.parent_ids),
                "children": [
                    {
                        "id": child.segment_id,
                        "range": child.hash_range.descriptor,
                        "buckets": child.buckets,
                        "topic": self._name(Segment(child.segment_id, child.hash_range)),
                    }
                    for child in change.planned.children
                ],
                "holdMs": hold_ms,
            }
        settled = {str(key): value for key, value in self.settled.items() if key in self.layout.segments and value}
        if settled:
            message["settled"] = settled
        await self.publish_raw(json.dumps(message).encode())
        return message

    async def publish_raw(self, data: bytes) -> None:
        """Publish anything."""
        await asyncio.to_thread(self._publisher.send, data)

    async def split(self, segment_id: int, *, into: int = 2, announced: bool = True) -> None:
        """Split a segment."""
        await self.change(self.layout.plan_split(segment_id, into=into), announced=announced)

    async def merge(self, ids: Iterable[int], *, announced: bool = True) -> None:
        """Merge segments."""
        await self.change(self.layout.plan_merge(ids), announced=announced)

    async def change(self, planned: SegmentChange, *, announced: bool = True) -> None:
        """Carry a change out from beginning to end."""
        change = await self.prepare(planned)
        if announced:
            await self.publish(change)
            await self.until_unused(planned.parent_ids)
        await self.seal(planned.parent_ids)
        await self.commit(change)

    async def prepare(self, planned: SegmentChange) -> Change:
        """Reserve the ids and create the children."""
        self.layout = self.layout.reserve(planned)
        for child in planned.children:
            await self._create(Segment(child.segment_id, child.hash_range))
        return Change(planned, uuid.uuid4().hex)

    async def until_unused(self, ids: Iterable[int], *, within_seconds: float = 8.0) -> bool:
        """Wait until nobody publishes on these segments; false if somebody still does."""
        deadline = time.monotonic() + within_seconds
        names = [self.segment_topic(segment_id) for segment_id in ids]
        while any([await self.publishers(name) for name in names]):
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(0.01)
        return True

    async def publishers(self, topic: str) -> list[str]:
        """Names of the producers attached to a topic."""
        return [publisher["producerName"] for publisher in (await self._view.stats(topic))["publishers"]]

    async def messages_in(self, topic: str) -> int:
        """How many messages a topic has taken since the broker loaded it."""
        return int((await self._view.stats(topic))["msgInCounter"])

    async def deduplicate(self) -> None:
        """Have the brokers drop messages that are sent again, on all segments."""
        for segment_id in self.layout.segments:
            await self._view.deduplicate(self.segment_topic(segment_id))

    async def seal(self, ids: Iterable[int]) -> None:
        """Terminate segments, see that they stay so, and settle the publishers that were still attached."""
        for segment_id in ids:
            name = self.segment_topic(segment_id)
            attached = await self.publishers(name)
            await self._view.terminate(name)
            await self._until_sealed(name)
            if attached:
                # Sends in flight may leave the topic fenced for readers (hazard A1-26678); loading it anew mends that.
                await self._view.unload_topic(name)
                await self._until_sealed(name)
                self.settled[segment_id] = await self._tail(name, set(attached))

    async def write_to_children(self, change: Change, payloads: Iterable[bytes]) -> None:
        """Put messages on the children in turn, as another producer may before the layout is known everywhere."""
        for payload, child in zip(payloads, change.planned.children, strict=False):
            producer = await asyncio.to_thread(self._client.create_producer, self.child_topic(child))
            await asyncio.to_thread(producer.send, payload)
            await asyncio.to_thread(producer.close)

    async def commit(self, change: Change) -> None:
        """Commit the change to the layout and publish it."""
        if isinstance(change.planned, PlannedMigration):
            self.layout = change.planned.after
        else:
            self.layout = self.layout.apply(change.planned, now_ms=_now_ms())
        await self.publish()

    async def prune(self, ids: Iterable[int]) -> None:
        """Let sealed segments leave the layout, then delete their topics once clients have left them.

        A client that is thrown out reconnects, and brokers make the topic anew for it (R19).
        """
        names = [self.segment_topic(segment_id) for segment_id in ids]
        self.layout = self.layout.prune(ids)
        await self.publish()
        for name in names:
            await eventually(partial(self._consumers, name), lambda count: count == 0, what=f"{name} is left alone")
            await self._view.delete_topic(name, force=True)

    async def _consumers(self, name: str) -> int:
        return sum(len(one["consumers"]) for one in (await self._view.stats(name))["subscriptions"].values())

    async def _create(self, segment: Segment) -> None:
        await self._view.create_topic(self._name(segment))
        for subscription in self.subscriptions:
            await self._view.create_subscription(self._name(segment), subscription)
        if self._deduplication:
            await self._view.deduplicate(self._name(segment))

    async def _until_sealed(self, name: str) -> None:
        async def looks_sealed() -> bool:
            # A terminate may come unstuck a moment later (hazard A1-26680), so it is looked at twice.
            for _ in range(2):
                if not await self._view.terminated(name):
                    await self._view.terminate(name)
                    return False
                await asyncio.sleep(0.05)
            return True

        await eventually(looks_sealed, what=f"{name} is sealed")

    async def _tail(self, name: str, producers: set[str]) -> dict[str, int]:
        found = dict.fromkeys(producers, -1)
        missing = set(producers)
        internal = await self._view.internal(name)
        last_ledger, _, last_entry = internal["lastConfirmedEntry"].partition(":")
        for ledger in reversed(internal["ledgers"]):
            entries = ledger["entries"] if str(ledger["ledgerId"]) != last_ledger else int(last_entry) + 1
            for entry in reversed(range(entries)):
                if not missing:
                    return found
                headers = await self._view.entry_headers(name, ledger["ledgerId"], entry)
                producer = headers["X-Pulsar-producer-name"]
                if producer in missing:
                    # pulsar-client gives a batch the sequence id of its first message.
                    batch = int(headers.get("X-Pulsar-num-batch-message", "1"))
                    found[producer] = int(headers["X-Pulsar-sequence-id"]) + batch - 1
                    missing.discard(producer)
        return found

    def _name(self, segment: Segment) -> str:
        return segment.topic or classic_segment_name(self.topic, segment.hash_range, segment.segment_id)

    def _segment(self, segment: Segment) -> dict[str, Any]:
        return {
            "id": segment.segment_id,
            "range": segment.hash_range.descriptor,
            "state": segment.state.value,
            "buckets": segment.buckets,
            "parents": list(segment.parent_ids),
            "topic": self._name(segment),
        }


def _now_ms() -> int:
    return int(time.time() * 1000)
