"""A follower of real records on a real broker: what makes a sample and what does not (R34, R35)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pulsar as pulsar_client
import pytest

from dev.access import PulsarAccess
from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.backends.admin.credentials import Credentials, Token
from scalable_topics_operator.load.record_follower import Followed, RecordFollower
from scalable_topics_operator.load.records import PULSE, Pulse, SegmentRecord, encode_pulse, encode_record
from tests.support.pulsar_view import PulsarView
from tests.support.waiting import eventually
from tests.support.world_making import random_name

SEGMENT = "persistent://t/n/a-segment-0000-ffff-0"
OTHER = "persistent://t/n/a-segment-0000-ffff-1"
MERGE = Rates(1.0, 1.0, 1.0, 1.0)


class Pipeline:
    """Writes what a pipeline would, by a clock that may be another."""

    def __init__(self, client: pulsar_client.Client, topic: str, clock_ahead_ms: int = 0) -> None:
        self.topic = topic
        self.ahead_ms = clock_ahead_ms
        self._producer = client.create_producer(topic)

    def now_ms(self) -> int:
        return int(time.time() * 1000) + self.ahead_ms

    async def record(self, segment: str, record: SegmentRecord | None) -> None:
        await self._send(segment, b"" if record is None else encode_record(record))

    async def pulse(self, segments: int, **silent: str) -> int:
        pulse = Pulse(self.now_ms(), 120.0, True, segments, silent)
        await self._send(PULSE, encode_pulse(pulse))
        return pulse.at_ms

    async def garbage(self) -> None:
        await self._send("stranger", b"hello")

    async def _send(self, key: str, data: bytes) -> None:
        await asyncio.to_thread(self._producer.send, data, partition_key=key)


@pytest.fixture
async def pipeline(view: PulsarView, pulsar: PulsarAccess) -> AsyncIterator[Pipeline]:
    namespace = f"tests/{random_name('load')}"
    await view.create_namespace(namespace)
    topic = f"persistent://{namespace}/records"
    await view.create_topic(topic)
    token = pulsar_client.AuthenticationToken(pulsar.superuser_token)
    client = pulsar_client.Client(pulsar.service_url, authentication=token)
    yield await asyncio.to_thread(Pipeline, client, topic, 300_000)
    await asyncio.to_thread(client.close)


@pytest.fixture
async def follower(pipeline: Pipeline, pulsar: PulsarAccess) -> AsyncIterator[RecordFollower]:
    credentials = Credentials(Token(pulsar.superuser_token))
    made = RecordFollower(pulsar.service_url, pipeline.topic, lambda: credentials)
    yield made
    made.stop()
    assert await asyncio.to_thread(made.join, 10)


async def followed(follower: RecordFollower) -> Followed:
    return follower.followed


async def test_what_was_there_before_makes_no_sample_and_the_next_pulse_does_by_this_clock(
    pipeline: Pipeline, follower: RecordFollower
) -> None:
    """The pipeline's clock is five minutes ahead."""
    cold, began_ms = (pipeline.now_ms() - 50_000, MERGE), time.time() * 1000
    await pipeline.record(SEGMENT, SegmentRecord("b:1", pipeline.now_ms(), Rates(0.5), {"s": 3}, 1, cold))
    await pipeline.record(OTHER, SegmentRecord("b:1", pipeline.now_ms()))
    await pipeline.pulse(2)
    await asyncio.to_thread(follower.start)
    await pipeline.garbage()
    await asyncio.sleep(2.0)
    assert follower.followed.sample is None, "nobody can tell how old it is"

    async def after_a_pulse() -> Followed:
        # The first may still count as there before.
        await pipeline.pulse(2)
        return follower.followed

    seen = await eventually(after_a_pulse, lambda found: found.sample is not None, what="a sample")
    assert seen.sample is not None
    assert abs(seen.sample.at_ms - time.time() * 1000) < 5_000
    assert abs(time.monotonic() - seen.came_at_seconds) < 5
    found = seen.sample.segments[SEGMENT]
    assert (found.rates, found.backlog) == (Rates(0.5), {"s": 3})
    assert found.cold is not None
    assert abs(found.cold[0] - (began_ms - 50_000)) < 5_000
    assert seen.sample.unsettled == {OTHER}


async def test_records_that_are_missing_stop_samples_until_they_are_there(
    pipeline: Pipeline, follower: RecordFollower
) -> None:
    await asyncio.to_thread(follower.start)
    record = SegmentRecord("b:1", pipeline.now_ms(), Rates(0.5))
    await pipeline.record(SEGMENT, record)

    async def after_a_pulse(segments: int) -> Followed:
        await pipeline.pulse(segments)
        return follower.followed

    await eventually(lambda: after_a_pulse(1), lambda found: found.sample is not None, what="a sample")
    seen = await eventually(
        lambda: after_a_pulse(2), lambda found: found.problem != "", what="a problem", every_seconds=0.5
    )
    assert seen.problem == "the pipeline tells of 2 segments, and 1 have a record"
    assert seen.sample is not None
    assert seen.sample.segments.keys() == {SEGMENT}, "the one before stays"
    await pipeline.record(OTHER, replace(record, rates=Rates(7.0)))
    seen = await eventually(
        lambda: after_a_pulse(2),
        lambda found: found.sample is not None and OTHER in found.sample.segments and not found.problem,
        what="a sample of both",
        every_seconds=0.5,
        within_seconds=40,
    )
    assert seen.sample is not None
    assert {name: one.rates.msg_rate_in for name, one in seen.sample.segments.items()} == {SEGMENT: 0.5, OTHER: 7.0}


async def test_a_topic_that_is_lost_and_made_anew_is_followed_on(
    pipeline: Pipeline, follower: RecordFollower, view: PulsarView, pulsar: PulsarAccess
) -> None:
    await asyncio.to_thread(follower.start)

    async def after_a_pulse(writer: Pipeline) -> Followed:
        await writer.pulse(0)
        return follower.followed

    await eventually(lambda: after_a_pulse(pipeline), lambda found: found.sample is not None, what="a sample")
    await view.delete_topic(pipeline.topic, force=True)
    deleted_at_ms = time.time() * 1000
    token = pulsar_client.AuthenticationToken(pulsar.superuser_token)
    client = pulsar_client.Client(pulsar.service_url, authentication=token)
    try:
        again = await asyncio.to_thread(Pipeline, client, pipeline.topic)
        await eventually(
            lambda: after_a_pulse(again),
            lambda found: found.sample is not None and found.sample.at_ms > deleted_at_ms,
            what="a sample of the new topic, by another clock",
            every_seconds=0.5,
            within_seconds=60,
        )
    finally:
        await asyncio.to_thread(client.close)


async def test_a_token_that_is_refused_is_told_of_and_its_successor_taken(
    pipeline: Pipeline, pulsar: PulsarAccess
) -> None:
    credentials = [Credentials(Token("no.such.token"))]
    follower = RecordFollower(pulsar.service_url, pipeline.topic, lambda: credentials[0])
    await asyncio.to_thread(follower.start)
    try:
        seen = await eventually(
            lambda: followed(follower), lambda found: "cannot be followed" in found.problem, what="a problem"
        )
        assert "no.such.token" not in seen.problem
        credentials[0] = Credentials(Token(pulsar.superuser_token))

        async def after_a_pulse() -> Followed:
            await pipeline.pulse(0)
            return follower.followed

        await eventually(after_a_pulse, lambda found: found.sample is not None, what="a sample", every_seconds=0.5)
    finally:
        follower.stop()
        assert await asyncio.to_thread(follower.join, 10)
