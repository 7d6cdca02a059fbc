"""The brokers' rules that operations stand on (R1, R9, R11, R14–R20)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scalable_topics.layout import layout_topic_name
from scalable_topics_operator.operations.errors import ClientsAttached, NameTaken, TopicMissing
from scalable_topics_operator.operations.protocols import Inheritance, MessagePosition, SegmentLook, SegmentSetup
from scalable_topics_operator.operations.segment_policies import SegmentPolicies
from tests.integration.backends.conftest import CLAIM, record, segment_name
from tests.support.waiting import eventually

from .conftest import Brokers

BILLING = SegmentSetup(frozenset({"billing"}))


async def make(brokers: Brokers, setup: SegmentSetup = BILLING, segment_id: int = 0) -> str:
    await brokers.backend.create_segment(brokers.topic, record(segment_id), setup)
    return segment_name(brokers.topic, segment_id)


async def look_until(brokers: Brokers, name: str, **wanted: object) -> SegmentLook:
    """A look at a segment, once fields of it are as wanted: statistics follow clients by a moment."""

    async def look() -> SegmentLook:
        return await brokers.backend.look(name)

    return await eventually(
        look, lambda seen: all(getattr(seen, key) == value for key, value in wanted.items()), what=f"{name}: {wanted}"
    )


async def backlog(brokers: Brokers, name: str, subscription: str = "billing") -> int:
    return (await brokers.backend.look(name)).cursors[subscription].backlog


async def test_a_new_segment_is_empty_open_and_has_its_cursors(brokers: Brokers) -> None:
    name = await make(brokers)
    look = await brokers.backend.look(name)
    assert not look.terminated
    assert (look.entries, look.pending_adds, look.producers) == (0, 0, frozenset())
    assert look.last_confirmed.entry_id == -1
    assert look.counting == {"billing"}
    assert look.cursors["billing"].backlog == 0
    assert await brokers.backend.read_record(name) == record()


async def test_r9_a_segment_is_made_once_by_one_operation(brokers: Brokers) -> None:
    await make(brokers)
    await make(brokers)
    with pytest.raises(NameTaken):
        await brokers.backend.create_segment(brokers.topic, record(operation_id="another"), SegmentSetup())


async def test_looks_count_entries_and_backlog_and_show_who_is_attached(brokers: Brokers) -> None:
    name = await make(brokers)
    assert await brokers.send(name, 5)
    look = await look_until(brokers, name, entries=5)
    assert look.last_confirmed.entry_id == 4
    assert look.cursors["billing"].backlog == 5
    assert look.cursors["billing"].mark_delete < look.last_confirmed
    producer, consumer = await brokers.attach_producer(name), await brokers.attach_consumer(name, "billing")
    attached = await brokers.backend.look(name)
    assert (len(attached.producers), attached.consumers) == (1, 1)
    await producer.leave()
    await consumer.leave()
    await look_until(brokers, name, producers=frozenset(), consumers=0)
    await brokers.read(name, "billing", 5)
    assert await eventually(lambda: backlog(brokers, name), lambda left: left == 0, what="everything is read") == 0
    assert (await brokers.backend.look(name)).cursors["billing"].mark_delete == look.last_confirmed


async def test_r14_a_sealed_segment_takes_nothing_loses_nothing_and_says_where_it_ends(brokers: Brokers) -> None:
    name = await make(brokers)
    assert await brokers.send(name, 3)
    await brokers.attach_producer(name)
    end = await brokers.backend.terminate(name)
    look = await look_until(brokers, name, producers=frozenset())
    assert look.terminated
    assert look.last_confirmed == end
    assert end.entry_id == 2
    assert not await brokers.send(name, 1)
    assert await brokers.backend.terminate(name) == end, "again is the same"
    assert await backlog(brokers, name) == 3


async def test_r14_an_empty_segment_is_sealed_before_its_first_entry(brokers: Brokers) -> None:
    name = await make(brokers)
    end = await brokers.backend.terminate(name)
    look = await brokers.backend.look(name)
    assert look.terminated
    assert (end.entry_id, look.last_confirmed) == (-1, end)
    assert look.cursors["billing"].backlog == 0


async def test_r18_a_cursor_made_at_earliest_has_it_all_and_one_at_latest_nothing(brokers: Brokers) -> None:
    name = await make(brokers)
    assert await brokers.send(name, 4)
    # Kept by the cursor that was there.
    await brokers.backend.ensure_cursors(name, ["early"])
    await brokers.backend.ensure_cursors(name, ["late"], latest=True)
    look = await brokers.backend.look(name)
    assert {cursor: seen.backlog for cursor, seen in look.cursors.items()} == {"billing": 4, "early": 4, "late": 0}
    await brokers.backend.ensure_cursors(name, ["late"])
    assert await backlog(brokers, name, "late") == 0, "one that is there stays where it is"
    await brokers.backend.terminate(name)
    await brokers.backend.ensure_cursors(name, ["after-the-seal"])
    assert await backlog(brokers, name, "after-the-seal") == 4


async def test_r18_r22_cursors_move_where_they_are_told_to(brokers: Brokers) -> None:
    name = await make(brokers)
    assert await brokers.send(name, 6)
    end = (await look_until(brokers, name, entries=6)).last_confirmed
    backend = brokers.backend
    assert await backend.skip_all(name, "billing")
    assert await backlog(brokers, name) == 0
    assert await backend.seek(name, "billing", None)
    assert await backlog(brokers, name) == 6
    assert await backend.move_behind(name, "billing", MessagePosition(end.ledger_id, 1))
    assert await backlog(brokers, name) == 4
    assert await backend.move_behind(name, "billing", MessagePosition(end.ledger_id, 5))
    assert await backlog(brokers, name) == 0
    for answer in (
        await backend.skip_all(name, "nobody"),
        await backend.seek(name, "nobody", None),
        await backend.move_behind(name, "nobody", MessagePosition(end.ledger_id, 1)),
    ):
        assert not answer


async def test_r16_a_cursor_with_a_consumer_is_deleted_by_force_alone(brokers: Brokers) -> None:
    name = await make(brokers)
    await brokers.attach_consumer(name, "billing")
    with pytest.raises(ClientsAttached):
        await brokers.backend.delete_cursor(name, "billing")
    await brokers.backend.delete_cursor(name, "billing", force=True)
    assert not (await brokers.backend.look(name)).cursors
    await brokers.backend.delete_cursor(name, "billing")


@pytest.mark.parametrize("who", ["producer", "consumer"])
async def test_r19_a_segment_with_clients_is_deleted_by_force_alone(brokers: Brokers, who: str) -> None:
    name = await make(brokers)
    client = await (brokers.attach_producer(name) if who == "producer" else brokers.attach_consumer(name, "billing"))
    with pytest.raises(ClientsAttached):
        await brokers.backend.delete_segment(name)
    await client.leave()
    await look_until(brokers, name, producers=frozenset(), consumers=0)
    await brokers.backend.delete_segment(name)
    await brokers.backend.delete_segment(name)
    for ask in (brokers.backend.look, brokers.backend.terminate, brokers.backend.read_record, brokers.backend.unload):
        with pytest.raises(TopicMissing):
            await ask(name)


async def test_a1_25719a_a_cursor_brings_no_deleted_segment_back(brokers: Brokers) -> None:
    name = await make(brokers)
    await brokers.backend.delete_segment(name)
    with pytest.raises(TopicMissing):
        await brokers.backend.ensure_cursors(name, ["billing"])
    assert not await brokers.backend.list_segments(brokers.topic)


async def test_segments_are_found_by_their_names(brokers: Brokers) -> None:
    names = {await make(brokers, segment_id=segment_id) for segment_id in range(3)}
    await brokers.create(f"persistent://{brokers.topic.pulsar_namespace}/{brokers.topic.local}-segment-x")
    found = await brokers.backend.list_segments(brokers.topic)
    assert {one.topic for one in found} == names
    assert await brokers.backend.list_topics(brokers.topic.pulsar_namespace) == {brokers.topic}


async def test_r1_a_name_is_claimed_once_and_let_go(brokers: Brokers) -> None:
    backend = brokers.backend
    assert not (await backend.read_name(brokers.topic)).exists
    await backend.take_claim(brokers.topic, CLAIM, properties={"team": "orders"})
    await backend.take_claim(brokers.topic, CLAIM, properties={"team": "orders"})
    state = await backend.read_name(brokers.topic)
    assert (state.exists, state.claim, state.terminated) == (True, CLAIM, True)
    assert (await backend.topic_properties(brokers.topic))["team"] == "orders"
    other = replace(CLAIM, resource_uid="another")
    with pytest.raises(NameTaken):
        await backend.take_claim(brokers.topic, other)
    await backend.rewrite_claim(brokers.topic, other)
    assert (await backend.read_name(brokers.topic)).claim == other
    await backend.delete_claim(brokers.topic)
    assert not (await backend.read_name(brokers.topic)).exists


async def test_r20_the_layout_topic_has_what_was_published_last(brokers: Brokers) -> None:
    backend = brokers.backend
    assert await backend.published_layout(brokers.topic) is None
    for number in range(3):
        await backend.publish_layout(brokers.topic, f'{{"number": {number}}}')
    assert await backend.published_layout(brokers.topic) == '{"number": 2}'
    assert layout_topic_name(brokers.topic) not in {one.topic for one in await backend.list_segments(brokers.topic)}
    await backend.delete_layout_topic(brokers.topic)
    assert await backend.published_layout(brokers.topic) is None
    await backend.publish_layout(brokers.topic, "{}")
    assert await backend.published_layout(brokers.topic) == "{}"


async def test_r15_the_tail_is_told_backwards(brokers: Brokers) -> None:
    name = await make(brokers)
    assert await brokers.send(name, 4)
    await brokers.backend.terminate(name)
    told = [entry async for entry in brokers.backend.tail_entries(name, 3)]
    assert [entry.last_sequence_id for entry in told] == [3, 2, 1]
    assert len({entry.producer for entry in told}) == 1


async def test_r26_r27_grants_and_policies_are_kept_and_handed_on(brokers: Brokers) -> None:
    name = await make(brokers)
    backend = brokers.backend
    await backend.grant(name, {"app": frozenset({"produce"})})
    await backend.grant(name, {"app": frozenset({"consume"})})
    inherited = await backend.inheritance(brokers.topic, [name])
    assert inherited == Inheritance({"app": frozenset({"produce", "consume"})}, ())
    await backend.revoke(name, ["app"])
    assert not (await backend.inheritance(brokers.topic, [name])).permissions
    await backend.apply_policies(name, SegmentPolicies(retention_minutes=7), managed_before=frozenset())
    assert await backend.retention_minutes(name) == 7


async def test_a1_26678_an_unloaded_segment_has_what_it_had(brokers: Brokers) -> None:
    name = await make(brokers)
    assert await brokers.send(name, 3)
    end = await brokers.backend.terminate(name)
    await brokers.backend.unload(name)
    look = await brokers.backend.look(name)
    assert look.terminated
    assert (look.entries, look.last_confirmed, look.pending_adds) == (3, end, 0)
    assert await backlog(brokers, name) == 3
