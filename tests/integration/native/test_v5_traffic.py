"""Messages of Pulsar's V5 client through splits and merges of a native topic.

None is lost, each key keeps its order, and stream consumers get once whatever is stored. Its producer, though, stores a
message twice now and then, on a loaded machine: one that is under way while a segment is sealed may be on the sealed
segment when it is sent again, to a child of it; or it is twice on a new segment. Queue consumers may get others again.
What is stored is what a subscription has whose consumer comes when all is over.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Iterable, Sequence

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
KEPT = "kept"


async def timed(change: Awaitable[None]) -> tuple[float, float]:
    """When it began and ended."""
    begin = time.monotonic()
    await change
    return begin, time.monotonic()


def assert_delivered(sent: Sequence[Numbered], *consumers: V5Consumer) -> int:
    """Whether the consumers of an ordered subscription did right; answers how many messages came once more."""
    receipts = [receipt for consumer in consumers for receipt in consumer.receipts]
    judgement = judge_ordered(sent, receipts)
    assert not judgement.lost, judgement
    assert not judgement.disordered, judgement
    assert {receipt.message for receipt in receipts} == set(sent), "something came that no producer was told is stored"
    return judgement.again


def copies(consumers: Iterable[V5Consumer]) -> Counter[tuple[Numbered, int]]:
    """What they received, with the segment, and how often."""
    return Counter(
        (receipt.message, receipt.part.segment_id) for consumer in consumers for receipt in consumer.receipts
    )


async def stored(v5: V5Client, topic: NativeTopic) -> Counter[tuple[Numbered, int]]:
    """What is stored, with the segment, and how often. The topic has kept it, and changes no more."""
    reader = await v5.consumer(Kind.QUEUE, topic.url, KEPT, "reader")
    await topic.drained(KEPT)
    await reader.stop()
    return copies([reader])


def delays(producer: V5Producer, *consumers: V5Consumer) -> str:
    """How long messages took from when they were told to be stored until they were received."""
    stored = {one.message: one.called_at_seconds + one.took_seconds for one in producer.sent}
    found = sorted(one.at_ns / 1e9 - stored[one.message] for consumer in consumers for one in consumer.receipts)
    p50, p99, longest = (1000 * found[round((len(found) - 1) * share)] for share in (0.5, 0.99, 1.0))
    return f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, max {longest:.0f} ms"


async def test_nothing_is_lost_and_keys_keep_their_order_through_splits_and_merges(
    v5: V5Client, topic: NativeTopic
) -> None:
    await topic.create(1)
    await topic.keep(KEPT)
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
    await topic.drained("ordered", "shared")
    await stream.stop()
    await queue.stop()

    again = assert_delivered(sent, stream)
    assert not judge_shared(sent, queue.receipts)
    kept = await stored(v5, topic)
    assert copies([stream]) == kept
    assert copies([queue]) >= kept
    assert kept.keys() >= {(one.message, one.segment) for one in producer.sent}
    # Of one sender, one message is under way at a time.
    assert again <= len(changes), kept.most_common(len(changes) + 1)
    near, quiet = near_changes(
        ((one.called_at_seconds, one.took_seconds) for one in producer.sent), changes, NEAR_SECONDS
    )
    calls = ", ".join(f"{1000 * (end - begin):.0f}" for begin, end in changes)
    print(f"\nsends: {latencies}; near changes: {near}; between them: {quiet}; calls of the broker in ms: {calls}")
    print(f"stored twice: {again} of {len(sent)}; came to the queue again: {(copies([queue]) - kept).total()}")
    for consumer in (stream, queue):
        print(f"from stored to received by the {consumer.name}: {delays(producer, consumer)}")


async def test_order_is_kept_by_sends_under_way_while_segments_are_sealed(v5: V5Client, topic: NativeTopic) -> None:
    await topic.create(1)
    await topic.keep(KEPT)
    stream = await v5.consumer(Kind.STREAM, topic.url, "ordered", "stream")
    queue = await v5.consumer(Kind.QUEUE, topic.url, "shared", "queue")
    keys = KEYS * 250
    sending = asyncio.create_task(v5.produce(topic.url, "list", keys))
    # The stream consumer keeps up with the first segment, so sends are under way once it has messages.
    await stream.until(200)
    await topic.split(0)
    await topic.split(1)
    await topic.merge(2, 4)
    told = await sending
    assert len(set(told)) > 1, "all was sent before the first split"
    await topic.drained("ordered", "shared")
    await stream.stop()
    await queue.stop()
    counts: Counter[str] = Counter()
    sent = []
    for key in keys:
        sent.append(Numbered("list", key, counts[key]))
        counts[key] += 1
    again = assert_delivered(sent, stream)
    kept = await stored(v5, topic)
    assert copies([stream]) == kept
    assert copies([queue]) >= kept
    assert kept.keys() >= set(zip(sent, told, strict=True))
    print(f"\nstored twice: {again} of {len(sent)}; came to the queue again: {(copies([queue]) - kept).total()}")
    print(f"segments of {len(keys)} messages: {dict(sorted(Counter(told).items()))}")


async def test_two_stream_consumers_share_the_keys(v5: V5Client, topic: NativeTopic) -> None:
    await topic.create(2)
    await topic.keep(KEPT)
    streams = [await v5.consumer(Kind.STREAM, topic.url, "ordered", f"stream-{number}") for number in range(2)]
    producer = await v5.producer(topic.url, "producer", KEYS, total=20_000)
    await producer.until(200)
    await topic.split(0)
    await producer.until(200)
    await topic.merge(2, 3)
    await producer.until(200)
    await producer.stop()
    sent = [one.message for one in producer.sent]
    await topic.drained("ordered")
    for stream in streams:
        await stream.stop()
    again = assert_delivered(sent, *streams)
    kept = await stored(v5, topic)
    assert copies(streams) == kept
    assert again <= 2, kept.most_common(3)
    assert all(stream.received for stream in streams), "one of them had nothing to do"


async def test_what_the_client_refuses_is_an_error_with_its_class(v5: V5Client) -> None:
    with pytest.raises(V5Error) as refused:
        await v5.consumer(Kind.STREAM, "topic://nobody/nowhere/orders", "ordered", "stream")
    assert refused.value.error == "org.apache.pulsar.client.api.v5.PulsarClientException$AuthorizationException"
    with pytest.raises(V5Error) as refused:
        await v5.produce("topic://nobody/nowhere/orders", "list", ["key"])
    assert refused.value.error.startswith("org.apache.pulsar.client.api.v5.PulsarClientException"), refused.value
