"""The layout topic on a real broker (R20): made, published to, read back, deleted."""

from __future__ import annotations

import asyncio
import json

import pytest

from scalable_topics.layout import SegmentLayout, TopicName, layout_topic_name
from scalable_topics_operator.backends.admin import PulsarAdmin
from scalable_topics_operator.backends.classic import ClassicBackend
from scalable_topics_operator.operations.errors import BackendUnavailable
from scalable_topics_operator.operations.layout_message import layout_message
from scalable_topics_operator.operations.protocols import SegmentSetup, TailEntry
from scalable_topics_operator.operations.topic_state import TopicState

from .conftest import record, segment_name
from .plain_http import Clients, PlainHttp

_LARGEST_LAYOUT = 512


async def test_r20_the_latest_message_is_read_back_and_survives_an_unload(
    backend: ClassicBackend, admin: PulsarAdmin, topic: TopicName
) -> None:
    await backend.publish_layout(topic, '{"epoch":0}')
    assert await backend.published_layout(topic) == '{"epoch":0}'
    await backend.publish_layout(topic, '{"epoch":1,"text":"ä"}')
    assert await backend.published_layout(topic) == '{"epoch":1,"text":"ä"}'
    await admin.topics.unload(layout_topic_name(topic))
    assert await backend.published_layout(topic) == '{"epoch":1,"text":"ä"}'
    await backend.publish_layout(topic, '{"epoch":2}')
    assert await backend.published_layout(topic) == '{"epoch":2}'


async def test_r20_a_reader_gets_the_latest_message_first_and_then_follows(
    backend: ClassicBackend, clients: Clients, topic: TopicName
) -> None:
    """What any Pulsar client sees: the bytes that were published, one message each."""
    for epoch in range(3):
        await backend.publish_layout(topic, f'{{"epoch":{epoch}}}')
    reader = await clients.latest_reader(layout_topic_name(topic))
    await backend.publish_layout(topic, '{"epoch":3}')
    read = [(await asyncio.to_thread(reader.read_next, 10_000)).data() for _ in range(2)]
    assert read == [b'{"epoch":2}', b'{"epoch":3}']


async def test_r20_it_is_kept_for_ever_but_small_and_protected_from_idleness(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName
) -> None:
    await backend.publish_layout(topic, "{}")
    path = layout_topic_name(topic).replace("://", "/")
    retention = await plain.get(f"{path}/retention")
    assert retention == {"retentionTimeInMinutes": -1, "retentionSizeInMB": 10}
    protection = await plain.get(f"{path}/inactiveTopicPolicies")
    assert protection["deleteWhileInactive"] is False


async def test_r20_a_missing_topic_has_no_layout_and_asking_does_not_make_it(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName, namespace: str
) -> None:
    assert await backend.published_layout(topic) is None
    await backend.delete_layout_topic(topic)
    assert await plain.get(f"persistent/{namespace}") == []


async def test_r20_one_that_was_made_and_not_yet_written_to_has_no_layout(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName
) -> None:
    """What an operator leaves that dies in between."""
    await plain.do("PUT", layout_topic_name(topic).replace("://", "/"))
    assert await backend.published_layout(topic) is None
    await backend.publish_layout(topic, '{"epoch":0}')
    assert await backend.published_layout(topic) == '{"epoch":0}'


async def test_r20_it_is_deleted_under_its_readers_and_made_again_whole(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName, namespace: str
) -> None:
    await backend.publish_layout(topic, "{}")
    await backend.delete_layout_topic(topic)
    assert await plain.get(f"persistent/{namespace}") == []
    assert await backend.published_layout(topic) is None
    await backend.publish_layout(topic, '{"again":1}')
    assert await backend.published_layout(topic) == '{"again":1}'
    retention = await plain.get(f"{layout_topic_name(topic).replace('://', '/')}/retention")
    assert retention["retentionTimeInMinutes"] == -1


@pytest.mark.parametrize("made_again", [False, True], ids=["gone", "made by a client"])
async def test_r20_what_is_published_to_one_that_somebody_deleted_is_published_to_a_whole_one(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName, made_again: bool
) -> None:
    """Publishing never makes it, unprotected; the models of the simulation refuse the same."""
    path = layout_topic_name(topic).replace("://", "/")
    await backend.publish_layout(topic, '{"epoch":0}')
    await plain.do("DELETE", f"{path}?force=true")
    if made_again:
        await plain.do("PUT", path)
        with pytest.raises(BackendUnavailable):
            await backend.publish_layout(topic, '{"epoch":1}')
        assert await backend.published_layout(topic) is None
    await backend.publish_layout(topic, '{"epoch":1}')
    assert await backend.published_layout(topic) == '{"epoch":1}'
    assert (await plain.get(f"{path}/retention"))["retentionTimeInMinutes"] == -1
    assert (await plain.get(f"{path}/inactiveTopicPolicies"))["deleteWhileInactive"] is False


async def test_r20_the_message_of_the_largest_layout_fits(backend: ClassicBackend, topic: TopicName) -> None:
    """R29: 512 records, half of them with a producer in doubt."""
    layout = SegmentLayout.initial(256, bucket_budget=1024, created_at_ms=1)
    while len(layout.segments) < _LARGEST_LAYOUT:
        change = layout.plan_rollover(layout.active[0].segment_id)
        layout = layout.reserve(change).apply(change, now_ms=1, sealed_positions={})
    settled = {segment.segment_id: {"a-producer-with-a-long-name": 123456} for segment in layout.sealed}
    state = TopicState(layout=layout, incarnation="uid.0", settled=settled)
    message = layout_message(topic, state, term=1, hold_ms=10_000, segment_topic=backend.segment_topic)
    assert len(json.loads(message)["segments"]) == _LARGEST_LAYOUT
    await backend.publish_layout(topic, message)
    assert await backend.published_layout(topic) == message


@pytest.mark.parametrize("batching", [False, True], ids=["single", "batched"])
async def test_r15_the_tail_tells_the_last_sequence_id_of_each_producer(
    backend: ClassicBackend, clients: Clients, topic: TopicName, batching: bool
) -> None:
    """A batch counts up to its last message, whoever wrote last comes first."""
    await backend.create_segment(topic, record(), SegmentSetup())
    segment = segment_name(topic)
    first = await clients.producer(segment, producer_name="first", batching_enabled=batching)
    second = await clients.producer(segment, producer_name="second", batching_enabled=batching)
    for producer, count in ((first, 5), (second, 3)):
        for number in range(count):
            producer.send_async(str(number).encode(), None)
        await asyncio.to_thread(producer.flush)
    await backend.terminate(segment)
    tail = [entry async for entry in backend.tail_entries(segment, 100)]
    last: dict[str, int] = {}
    for entry in tail:
        last.setdefault(entry.producer, entry.last_sequence_id)
    assert last == {"second": 2, "first": 4}
    assert [entry async for entry in backend.tail_entries(segment, 1)] == [TailEntry("second", 2)]
