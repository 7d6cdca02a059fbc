"""R16: which cursors count; cursors are made where they lose nothing and never bring a segment back."""

import asyncio
import time

import pulsar
import pytest

from scalable_topics.layout import TopicName
from scalable_topics_operator.backends.admin import PulsarAdmin
from scalable_topics_operator.backends.classic import ClassicBackend
from scalable_topics_operator.operations.errors import BackendUnavailable, ClientsAttached, TopicMissing
from scalable_topics_operator.operations.protocols import MessagePosition, SegmentSetup

from .conftest import record, segment_name
from .plain_http import Clients, PlainHttp, eventually, topic_at

MESSAGES = [f"m{number}" for number in range(7)]


@pytest.fixture
async def segment(backend: ClassicBackend, topic: TopicName) -> str:
    """A segment with one cursor."""
    await backend.create_segment(topic, record(), SegmentSetup(frozenset({"billing"})))
    return segment_name(topic)


async def test_r16_readers_and_compaction_leave_cursors_that_do_not_count(
    backend: ClassicBackend, plain: PlainHttp, clients: Clients, segment: str
) -> None:
    await clients.send(segment, *MESSAGES)
    reader = await clients.reader(segment)
    await plain.do("PUT", topic_at(segment, "compaction"))
    # The broker's own consumer leaves when the compaction is done; the reader stays.
    look = await eventually(
        lambda: backend.look(segment), lambda look: "__compaction" in look.cursors and look.consumers == 1
    )
    assert len(look.cursors) == 3
    assert look.counting == {"billing"}
    await asyncio.to_thread(reader.close)


async def test_a_look_follows_the_consumer(backend: ClassicBackend, clients: Clients, segment: str) -> None:
    await clients.send(segment, *MESSAGES)
    before = await backend.look(segment)
    assert (before.entries, before.cursors["billing"].backlog) == (7, 7)
    assert before.cursors["billing"].mark_delete < before.last_confirmed
    consumer = await clients.consumer(segment, "billing")
    producer = await clients.producer(segment)
    attached = await backend.look(segment)
    assert attached.producers == {producer.producer_name()}
    assert (attached.consumers, attached.cursors["billing"].consumers) == (1, 1)
    for _ in range(4):
        message = await asyncio.to_thread(consumer.receive, 10_000)
        await asyncio.to_thread(consumer.acknowledge, message)
    part = await eventually(lambda: backend.look(segment), lambda look: look.cursors["billing"].backlog == 3)
    assert part.cursors["billing"].mark_delete < part.last_confirmed
    for _ in range(3):
        message = await asyncio.to_thread(consumer.receive, 10_000)
        await asyncio.to_thread(consumer.acknowledge, message)
    done = await eventually(lambda: backend.look(segment), lambda look: look.cursors["billing"].backlog == 0)
    assert done.cursors["billing"].mark_delete == done.last_confirmed
    await asyncio.to_thread(consumer.close)
    await asyncio.to_thread(producer.close)


async def test_a_cursor_at_earliest_has_everything_and_one_at_latest_nothing(
    backend: ClassicBackend, clients: Clients, segment: str
) -> None:
    await clients.send(segment, *MESSAGES)
    await backend.ensure_cursors(segment, ["early", "ea/r l%41y+"])
    await backend.ensure_cursors(segment, ["late"], latest=True)
    assert await clients.receive_all(segment, "early", len(MESSAGES)) == MESSAGES
    assert await clients.receive_all(segment, "ea/r l%41y+", len(MESSAGES)) == MESSAGES
    assert await clients.receive_all(segment, "late", 0) == []


async def test_r18_cursors_are_also_made_on_sealed_segments(
    backend: ClassicBackend, clients: Clients, segment: str
) -> None:
    await clients.send(segment, *MESSAGES)
    await backend.terminate(segment)
    await backend.ensure_cursors(segment, ["early"])
    await backend.ensure_cursors(segment, ["late"], latest=True)
    look = await backend.look(segment)
    assert look.cursors["early"].backlog == 7
    assert look.cursors["late"].mark_delete == look.last_confirmed
    await backend.unload(segment)
    again = await backend.look(segment)
    assert again.cursors["early"].backlog == 7
    assert again.cursors["late"].mark_delete == again.last_confirmed


async def test_an_existing_cursor_is_left_where_it_is(backend: ClassicBackend, clients: Clients, segment: str) -> None:
    await clients.send(segment, *MESSAGES)
    assert await clients.receive_all(segment, "billing", len(MESSAGES)) == MESSAGES
    await backend.ensure_cursors(segment, ["billing"])
    assert (await backend.look(segment)).cursors["billing"].backlog == 0
    assert await clients.receive_all(segment, "billing", 0) == []


async def test_a1_25719a_cursors_never_bring_a_deleted_segment_back(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName, segment: str
) -> None:
    """The call that makes a cursor also makes its topic, where brokers create topics by themselves (measured)."""
    await backend.delete_segment(segment)
    with pytest.raises(TopicMissing):
        await backend.ensure_cursors(segment, ["billing"])
    assert await plain.get(f"persistent/{topic.pulsar_namespace}") == []


@pytest.mark.parametrize("latest", [False, True])
async def test_a1_25719a_not_even_when_it_is_deleted_at_the_last_moment(
    admin: PulsarAdmin,
    backend: ClassicBackend,
    plain: PlainHttp,
    segment: str,
    monkeypatch: pytest.MonkeyPatch,
    latest: bool,
) -> None:
    create = admin.topics.create_subscription

    async def deleted_meanwhile(name: str, subscription: str, *, latest: bool = False) -> bool:
        await plain.do("DELETE", topic_at(segment))
        assert await create(name, subscription, latest=latest)
        assert await plain.status(topic_at(segment, "properties")) == 200
        return True

    monkeypatch.setattr(admin.topics, "create_subscription", deleted_meanwhile)
    with pytest.raises(TopicMissing, match="deleted while its cursors were made"):
        await backend.ensure_cursors(segment, ["new"], latest=latest)
    assert await plain.status(topic_at(segment, "properties")) == 404


async def test_a_cursor_that_a_failure_left_at_the_end_is_moved_to_the_beginning(
    admin: PulsarAdmin, backend: ClassicBackend, clients: Clients, segment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker makes the cursor at the latest entry, then moves it; in between it may fail (measured)."""
    await clients.send(segment, *MESSAGES)
    create = admin.topics.create_subscription

    async def fails_in_the_middle(name: str, subscription: str, *, latest: bool = False) -> bool:
        assert await create(name, subscription, latest=True)
        raise BackendUnavailable("unable to persist readPosition for cursor reset")

    monkeypatch.setattr(admin.topics, "create_subscription", fails_in_the_middle)
    await backend.ensure_cursors(segment, ["early"])
    assert await clients.receive_all(segment, "early", len(MESSAGES)) == MESSAGES


async def test_a_cursor_that_was_not_made_at_all_is_an_error(
    admin: PulsarAdmin, backend: ClassicBackend, plain: PlainHttp, segment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hazard A1-25717a: the effect is looked at, not the answer."""

    async def fails(name: str, subscription: str, *, latest: bool = False) -> bool:
        raise BackendUnavailable("no answer")

    async def pretends(name: str, subscription: str, *, latest: bool = False) -> bool:
        return True

    for replacement, problem in ((fails, "no answer"), (pretends, "do not show")):
        monkeypatch.setattr(admin.topics, "create_subscription", replacement)
        with pytest.raises(BackendUnavailable, match=problem):
            await backend.ensure_cursors(segment, ["early"])
    assert await plain.get(topic_at(segment, "subscriptions")) == ["billing"]


async def test_a_consumer_keeps_its_cursor_unless_it_is_forced(
    backend: ClassicBackend, plain: PlainHttp, clients: Clients, segment: str
) -> None:
    await clients.consumer(segment, "billing", consumer_type=pulsar.ConsumerType.Shared)
    with pytest.raises(ClientsAttached, match="active connected consumers"):
        await backend.delete_cursor(segment, "billing")
    assert "billing" in await plain.get(topic_at(segment, "subscriptions"))
    await backend.delete_cursor(segment, "billing", force=True)


async def test_deleting_what_is_gone_is_quiet(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName, segment: str
) -> None:
    await backend.delete_cursor(segment, "billing")
    assert await plain.get(topic_at(segment, "subscriptions")) == []
    await backend.delete_cursor(segment, "billing")
    await backend.delete_segment(segment)
    await backend.delete_cursor(segment, "billing")
    missing = TopicName("team", "no-such-namespace", topic.local)
    await backend.delete_cursor(segment_name(missing), "billing")
    assert await plain.get(f"persistent/{topic.pulsar_namespace}") == []


@pytest.mark.parametrize("sealed", [False, True])
async def test_r18_a_cursor_is_moved_to_a_time_to_the_end_and_to_the_beginning(
    backend: ClassicBackend, clients: Clients, segment: str, sealed: bool
) -> None:
    await clients.send(segment, *MESSAGES[:4])
    await asyncio.sleep(0.05)
    between_ms = time.time_ns() // 1_000_000
    await asyncio.sleep(0.05)
    await clients.send(segment, *MESSAGES[4:])
    if sealed:
        await backend.terminate(segment)
    before_all_ms, after_all_ms = between_ms - 3_600_000, between_ms + 3_600_000
    for to_ms, left in ((between_ms, 3), (before_all_ms, 7), (after_all_ms, 0), (None, 7)):
        assert await backend.seek(segment, "billing", to_ms)
        assert (await backend.look(segment)).cursors["billing"].backlog == left, to_ms
    assert await backend.skip_all(segment, "billing")
    look = await backend.look(segment)
    assert (look.cursors["billing"].backlog, look.cursors["billing"].mark_delete) == (0, look.last_confirmed)
    assert await backend.seek(segment, "billing", between_ms)
    assert await clients.receive_all(segment, "billing", len(MESSAGES[4:])) == MESSAGES[4:]


async def test_r18_moving_a_cursor_of_a_segment_without_messages(backend: ClassicBackend, segment: str) -> None:
    for to_ms in (None, 0, time.time_ns() // 1_000_000):
        assert await backend.seek(segment, "billing", to_ms)
    assert await backend.skip_all(segment, "billing")
    assert (await backend.look(segment)).cursors["billing"].backlog == 0


@pytest.mark.parametrize("sealed", [False, True])
async def test_r22_a_cursor_is_moved_behind_a_message(
    backend: ClassicBackend, clients: Clients, segment: str, sealed: bool
) -> None:
    await clients.send(segment, *MESSAGES)
    if sealed:
        await backend.terminate(segment)
    last = (await backend.look(segment)).last_confirmed
    for entry_id in (2, -1, 5, last.entry_id, 0):
        assert await backend.move_behind(segment, "billing", MessagePosition(last.ledger_id, entry_id))
        left = last.entry_id - entry_id
        assert (await backend.look(segment)).cursors["billing"].backlog == left, entry_id
    assert await clients.receive_all(segment, "billing", len(MESSAGES[1:])) == MESSAGES[1:]


async def test_r22_a_cursor_is_moved_behind_a_message_of_a_batch(
    backend: ClassicBackend, clients: Clients, segment: str
) -> None:
    producer = await clients.producer(
        segment, batching_enabled=True, batching_max_messages=len(MESSAGES), batching_max_publish_delay_ms=10_000
    )
    for message in MESSAGES:
        producer.send_async(message.encode(), lambda *_: None)
    await asyncio.to_thread(producer.flush)
    last = (await backend.look(segment)).last_confirmed
    assert last.entry_id == 0, "all are in one entry"
    for batch_index in (2, len(MESSAGES) - 1, 4):
        position = MessagePosition(last.ledger_id, last.entry_id, batch_index)
        assert await backend.move_behind(segment, "billing", position)
        left = MESSAGES[batch_index + 1 :]
        assert await clients.receive_all(segment, "billing", len(left)) == left


async def test_r22_what_was_trimmed_is_known_to_be_gone(
    backend: ClassicBackend, plain: PlainHttp, clients: Clients, segment: str
) -> None:
    """Brokers move a cursor to what is left without a word."""
    await clients.send(segment, *MESSAGES)
    first = (await backend.look(segment)).last_confirmed
    assert await backend.skip_all(segment, "billing")
    await backend.unload(segment)
    await clients.send(segment, "later")
    await plain.do("POST", topic_at(segment, "trim"))
    look = await eventually(lambda: backend.look(segment), lambda look: look.first_ledger_id > first.ledger_id)
    assert look.entries == 1
    assert await backend.move_behind(segment, "billing", MessagePosition(first.ledger_id, 2))
    assert await clients.receive_all(segment, "billing", 1) == ["later"]


async def test_r18_moving_what_is_not_there_is_quiet_and_makes_nothing(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName, segment: str
) -> None:
    async def move(name: str, subscription: str) -> list[bool]:
        return [
            await backend.skip_all(name, subscription),
            await backend.seek(name, subscription, None),
            await backend.seek(name, subscription, 1_000),
            await backend.move_behind(name, subscription, MessagePosition(1, 1)),
        ]

    assert await move(segment, "nobody") == [False] * 4
    assert await plain.get(topic_at(segment, "subscriptions")) == ["billing"]
    await backend.delete_segment(segment)
    assert await move(segment, "billing") == [False] * 4
    assert await move(segment_name(TopicName("team", "no-such-namespace", topic.local)), "billing") == [False] * 4
    assert await plain.get(f"persistent/{topic.pulsar_namespace}") == []


async def test_r18_a_consumer_goes_on_from_where_its_cursor_was_moved(
    backend: ClassicBackend, clients: Clients, segment: str
) -> None:
    """The broker disconnects it, and it comes back by itself."""
    await clients.send(segment, *MESSAGES)
    consumer = await clients.consumer(segment, "billing", consumer_type=pulsar.ConsumerType.Shared)
    for _ in MESSAGES:
        await asyncio.to_thread(consumer.acknowledge, await asyncio.to_thread(consumer.receive, 10_000))
    await eventually(lambda: backend.look(segment), lambda look: look.cursors["billing"].backlog == 0)
    assert await backend.seek(segment, "billing", None)
    again = [(await asyncio.to_thread(consumer.receive, 20_000)).data().decode() for _ in MESSAGES]
    assert sorted(again) == MESSAGES
