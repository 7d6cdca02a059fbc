"""R14: terminate, look and unload on a real broker; looking never makes what is not there."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pulsar
import pytest

from scalable_topics.layout import TopicName
from scalable_topics_operator.backends.classic import ClassicBackend
from scalable_topics_operator.operations.errors import TopicMissing
from scalable_topics_operator.operations.protocols import Position, SegmentSetup

from .conftest import record, segment_name
from .plain_http import Clients, PlainHttp, topic_at


@pytest.mark.both_lines
async def test_r14_a_terminated_segment_refuses_writes_and_tells_its_end(
    backend: ClassicBackend, clients: Clients, topic: TopicName
) -> None:
    name = segment_name(topic)
    await backend.create_segment(topic, record(), SegmentSetup(frozenset({"billing"})))
    producer = await clients.producer(name, batching_enabled=False)
    sent = [await asyncio.to_thread(producer.send, b"x") for _ in range(3)]
    last = Position(sent[-1].ledger_id(), sent[-1].entry_id())
    assert not (await backend.look(name)).terminated
    assert await backend.terminate(name) == last
    look = await backend.look(name)
    assert (look.terminated, look.last_confirmed, look.entries, look.pending_adds) == (True, last, 3, 0)
    with pytest.raises(pulsar.TopicTerminated):
        await asyncio.to_thread(producer.send, b"x")
    assert await backend.terminate(name) == last
    await backend.unload(name)
    assert (await backend.look(name)).terminated
    with pytest.raises(pulsar.TopicTerminated):
        await clients.producer(name)


async def test_r14_an_empty_segment_is_sealed_before_its_first_entry(backend: ClassicBackend, topic: TopicName) -> None:
    name = segment_name(topic)
    await backend.create_segment(topic, record(), SegmentSetup(frozenset({"billing"})))
    position = await backend.terminate(name)
    look = await backend.look(name)
    assert position.entry_id == -1
    assert look.last_confirmed == position
    assert look.cursors["billing"].mark_delete >= position


@pytest.mark.parametrize(
    "ask",
    [
        lambda backend, name: backend.look(name),
        lambda backend, name: backend.read_record(name),
        lambda backend, name: backend.terminate(name),
        lambda backend, name: backend.unload(name),
        lambda backend, name: backend.retention_minutes(name),
        lambda backend, name: backend.ensure_cursors(name, ["s"]),
    ],
    ids=["look", "read_record", "terminate", "unload", "retention_minutes", "ensure_cursors"],
)
async def test_a1_25719a_asking_for_a_missing_segment_does_not_create_it(
    backend: ClassicBackend,
    plain: PlainHttp,
    topic: TopicName,
    ask: Callable[[ClassicBackend, str], Awaitable[Any]],
) -> None:
    """Auto-creation is on in this cluster, as it is in most."""
    with pytest.raises(TopicMissing, match="orders-segment-0000-ffff-0"):
        await ask(backend, segment_name(topic))
    assert await plain.get(f"persistent/{topic.pulsar_namespace}") == []
    assert await plain.status(topic_at(segment_name(topic), "properties")) == 404
