"""Pulsar's V5 client reading and writing while the operator has the brokers split and merge."""

from __future__ import annotations

import pytest

from scalable_topics_operator.cluster.resources import TOPICS
from tests.support.consumption import Kind
from tests.support.consumption_judge import judge_ordered, judge_shared
from tests.support.native_world import NativeWorld
from tests.support.v5_client import V5Client
from tests.support.world import condition, phase

pytestmark = pytest.mark.native

# Four by SegmentOperations, and one to come to four segments.
_CHANGES = 5
_KEYS = [f"key-{number}" for number in range(20)]


async def test_nothing_is_lost_or_out_of_order_through_changes_by_objects(native: NativeWorld, v5: V5Client) -> None:
    await native.make("orders", initial=1, subscriptions=["shared"])
    url = native.name("orders")
    stream = await v5.consumer(Kind.STREAM, url, "ordered", "stream")
    queue = await v5.consumer(Kind.QUEUE, url, "shared", "queue")
    producer = await v5.producer(url, "producer", _KEYS, total=20_000)
    await producer.until(100)
    for kind, block in (
        ("Split", {"segment": 0}),
        ("Split", {"segment": 1}),
        ("Merge", {"segments": [3, 4]}),
        ("Rebucket", {"segment": 2, "buckets": 4}),
    ):
        ended = await native.world.operate("orders", kind, **block)
        assert phase(ended) == "Succeeded", ended["status"]
        await producer.until(50)
    await native.world.scale("orders", 4)
    await native.world.until(
        TOPICS, "orders", lambda body: body["status"]["segments"]["active"] == 4, what="has 4 active segments"
    )
    await producer.until(50)
    latencies = await producer.stop()

    sent = [one.message for one in producer.sent]
    await native.until_drained("orders", "ordered", "shared")
    await stream.stop()
    await queue.stop()
    ordered, shared = judge_ordered(sent, stream.receipts), judge_shared(sent, queue.receipts)
    assert not ordered.lost, ordered
    assert not ordered.disordered, ordered
    assert not shared.lost, shared
    assert {one.message for one in stream.receipts} == set(sent)
    # Around a seal Pulsar's own producer stores the message that is under way twice now and then (measured).
    assert ordered.again <= _CHANGES, ordered
    await native.until_same("orders")
    print(f"\n{len(sent)} messages through {_CHANGES} changes; sends: {latencies}; stored twice: {ordered.again}")


async def test_a_topic_in_use_is_not_deleted(native: NativeWorld, v5: V5Client) -> None:
    """R31; without the operator's look the brokers would leave a segment behind that goes on accepting (measured)."""
    await native.make("used", initial=2, deletionPolicy="Delete")
    producer = await v5.producer(native.name("used"), "producer", _KEYS, total=1_000_000)
    await producer.until(20)
    await native.world.delete(TOPICS, "used")
    body = await native.world.until_reason("used", "ClientsAttached")
    assert "stop them" in condition(body, "Ready")["message"]
    await producer.until(20)
    await producer.stop()
    await native.world.until_gone(TOPICS, "used", within_seconds=60)
    assert await native.names() == []
