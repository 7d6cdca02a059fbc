"""Messages of Pulsar's V5 client through splits and merges of a native topic: each once, in the order of its key."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable

import pytest

from dev.v5.process import V5Error
from tests.support.consumption import Kind
from tests.support.consumption_judge import judge_ordered, judge_shared
from tests.support.guarantee_checker import Numbered, near_changes
from tests.support.v5_client import V5Client, V5Consumer, V5Producer

from .conftest import NativeTopic

pytestmark = pytest.mark.native

KEYS = [f"key-{number}" for number in range(20)]
NEAR_SECONDS = 0.5


async def timed(change: Awaitable[None]) -> tuple[float, float]:
    """When it began and ended."""
    begin = time.monotonic()
    await change
    return begin, time.monotonic()


def delays(producer: V5Producer, *consumers: V5Consumer) -> str:
    """How long messages took from when they were told to be stored until they were received."""
    stored = {one.message: one.called_at_seconds + one.took_seconds for one in producer.sent}
    found = sorted(one.at_ns / 1e9 - stored[one.message] for consumer in consumers for one in consumer.receipts)
    p50, p99, longest = (1000 * found[round((len(found) - 1) * share)] for share in (0.5, 0.99, 1.0))
    return f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, max {longest:.0f} ms"


async def test_each_message_comes_once_and_in_order_through_splits_and_merges(v5: V5Client, topic: NativeTopic) -> None:
    await topic.create(1)
    stream = await v5.consumer(Kind.STREAM, topic.url, "ordered", "stream")
    queue = await v5.consumer(Kind.QUEUE, topic.url, "shared", "queue")
    producer = await v5.producer(topic.url, "producer", KEYS, total=20_000)

    changes = []
    await producer.until(100)
    # 0 -> 1, 2; 1 -> 3, 4; 2 -> 5, 6; 4 + 5 -> 7; 3 + 7 -> 8; 8 + 6 -> 9
    for change in (
        topic.split(0),
        topic.split(1),
        topic.split(2),
        topic.merge(4, 5),
        topic.merge(3, 7),
        topic.merge(8, 6),
    ):
        changes.append(await timed(change))
        await producer.until(100)
    latencies = await producer.stop()

    sent = [one.message for one in producer.sent]
    assert [segment.segment_id for segment in (await topic.layout()).active] == [9]
    assert {one.segment for one in producer.sent} == set(range(10)), "a segment was passed over"
    await stream.until(len(sent))
    await queue.until(len(sent))
    await stream.stop()
    await queue.stop()

    ordered, shared = judge_ordered(sent, stream.receipts), judge_shared(sent, queue.receipts)
    assert not ordered, ordered
    assert not shared, shared
    for consumer in (stream, queue):
        assert sorted(one.message for one in consumer.receipts) == sorted(sent), "not each message once"
        assert {receipt.message: receipt.segment for receipt in consumer.receipts} == {
            one.message: one.segment for one in producer.sent
        }
    near, quiet = near_changes(
        ((one.called_at_seconds, one.took_seconds) for one in producer.sent), changes, NEAR_SECONDS
    )
    calls = ", ".join(f"{1000 * (end - begin):.0f}" for begin, end in changes)
    print(f"\nsends: {latencies}; near changes: {near}; between them: {quiet}; calls of the broker in ms: {calls}")
    for consumer in (stream, queue):
        print(f"from stored to received by the {consumer.name}: {delays(producer, consumer)}")


async def test_order_is_kept_by_sends_under_way_while_segments_are_sealed(v5: V5Client, topic: NativeTopic) -> None:
    await topic.create(1)
    stream = await v5.consumer(Kind.STREAM, topic.url, "ordered", "stream")
    keys = KEYS * 250
    sending = asyncio.create_task(v5.produce(topic.url, "list", keys))
    # The stream consumer keeps up with the first segment, so sends are under way once it has messages.
    await stream.until(200)
    await topic.split(0)
    await topic.split(1)
    await topic.merge(2, 4)
    told = await sending
    assert len(set(told)) > 1, "all was sent before the first split"
    await stream.until(len(keys))
    await stream.stop()
    counts: Counter[str] = Counter()
    sent = []
    for key in keys:
        sent.append(Numbered("list", key, counts[key]))
        counts[key] += 1
    judgement = judge_ordered(sent, stream.receipts)
    assert not judgement, judgement
    assert sorted(receipt.message for receipt in stream.receipts) == sorted(sent), "not each message once"
    assert {receipt.message: receipt.segment for receipt in stream.receipts} == dict(zip(sent, told, strict=True))
    print(f"\nsegments of {len(keys)} messages: {dict(sorted(Counter(told).items()))}")


async def test_two_stream_consumers_share_the_keys_and_each_message_comes_once(
    v5: V5Client, topic: NativeTopic
) -> None:
    await topic.create(2)
    streams = [await v5.consumer(Kind.STREAM, topic.url, "ordered", f"stream-{number}") for number in range(2)]
    producer = await v5.producer(topic.url, "producer", KEYS, total=20_000)
    await producer.until(200)
    await topic.split(0)
    await producer.until(200)
    await topic.merge(2, 3)
    await producer.until(200)
    await producer.stop()
    sent = [one.message for one in producer.sent]
    await v5.until(
        lambda: sum(len(stream.received) for stream in streams) >= len(sent),
        lambda: f"of {len(sent)} they have received {[len(stream.received) for stream in streams]}",
        within_seconds=60,
    )
    for stream in streams:
        await stream.stop()
    receipts = [receipt for stream in streams for receipt in stream.receipts]
    judgement = judge_ordered(sent, receipts)
    assert not judgement, judgement
    assert sorted(receipt.message for receipt in receipts) == sorted(sent), "not each message once"
    assert all(stream.received for stream in streams), "one of them had nothing to do"


async def test_what_the_client_refuses_is_an_error_with_its_class(v5: V5Client) -> None:
    with pytest.raises(V5Error) as refused:
        await v5.consumer(Kind.STREAM, "topic://nobody/nowhere/orders", "ordered", "stream")
    assert refused.value.error == "org.apache.pulsar.client.api.v5.PulsarClientException$AuthorizationException"
    with pytest.raises(V5Error) as refused:
        await v5.produce("topic://nobody/nowhere/orders", "list", ["key"])
    assert refused.value.error.startswith("org.apache.pulsar.client.api.v5.PulsarClientException"), refused.value
