"""The consumer of one segment, where pulsar-client's threads and the event loop meet."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pulsar as pulsar_client
import pytest

from scalable_topics.layout import Part
from scalable_topics.sdk.arrivals import Arrivals
from scalable_topics.sdk.blocking_calls import BlockingCalls
from scalable_topics.sdk.segment_consumer import Received, SegmentConsumer
from tests.unit.sdk.pulsar_stand_in import Attached, Pulsar

TIMEOUT_SECONDS = 10


def make(pulsar: Pulsar, *, is_cumulative: bool = False) -> tuple[SegmentConsumer, Arrivals[Received], BlockingCalls]:
    """A consumer that may keep one message waiting here."""
    arrivals: Arrivals[Received] = Arrivals(asyncio.get_running_loop(), lambda: None)
    threads = BlockingCalls()
    connection: Any = pulsar
    consumer = SegmentConsumer(
        Part(0),
        pulsar.subscribe,
        prefetch=2,
        is_cumulative=is_cumulative,
        connection=connection,
        schema=None,
        threads=threads,
        arrivals=arrivals,
    )
    return consumer, arrivals, threads


async def test_a_message_taken_before_attaching_has_returned_resumes_the_listener() -> None:
    """pulsar-client calls the listener while `subscribe` is still on its way back."""
    delivered, proceed = threading.Event(), threading.Event()

    def deliver(listener: Callable[[Any, Any], None], attached: Attached) -> None:
        listener(attached, "message")
        delivered.set()
        assert proceed.wait(TIMEOUT_SECONDS)

    pulsar = Pulsar(deliver)
    consumer, arrivals, threads = make(pulsar)
    attaching = asyncio.create_task(consumer.attach())
    assert await asyncio.to_thread(delivered.wait, TIMEOUT_SECONDS)
    assert not pulsar.attached.is_running
    arrivals.items.popleft()
    consumer.taken()
    assert pulsar.attached.is_running
    proceed.set()
    await attaching
    await consumer.close()
    threads.close()


async def test_closing_while_attaching_leaves_nothing_attached() -> None:
    """The thread that attaches cannot be stopped, and may hang for ever if its pulsar-client is closed meanwhile: it
    ends first, what it made is closed, and it makes nothing afterwards.
    """
    under_way, proceed = threading.Event(), threading.Event()

    def wait(*_: Any) -> None:
        under_way.set()
        assert proceed.wait(TIMEOUT_SECONDS)

    pulsar = Pulsar(wait)
    consumer, _, threads = make(pulsar)
    consumer.keep_attaching()
    assert await asyncio.to_thread(under_way.wait, TIMEOUT_SECONDS)
    closing = asyncio.create_task(consumer.close())
    done, _ = await asyncio.wait({closing}, timeout=0.1)
    assert not done
    assert [client.closed for client in pulsar.clients] == [0]
    proceed.set()
    await asyncio.wait_for(closing, TIMEOUT_SECONDS)
    assert [client.closed for client in pulsar.clients] == [1]
    assert pulsar.attached.closed == 1
    await consumer.attach()
    assert len(pulsar.clients) == 1
    threads.close()


async def test_nothing_is_made_after_closing() -> None:
    """The thread may come to it only then; nobody would close what it makes."""
    pulsar = Pulsar(lambda *_: None)
    consumer, _, threads = make(pulsar)
    await consumer.close()
    await consumer.attach()
    assert pulsar.clients == []
    threads.close()


async def test_R24_without_a_connection_only_the_last_cumulative_acknowledgement_is_kept() -> None:
    """pulsar-client forgets what it gets without a connection; the last one says it all."""
    pulsar = Pulsar(lambda *_: None)
    consumer, _, threads = make(pulsar, is_cumulative=True)
    await consumer.attach()
    consumer.acknowledge(1)
    pulsar.attached.connected = False
    consumer.acknowledge(2)
    consumer.acknowledge(3)
    assert pulsar.attached.acknowledged == [("all up to", 1)]
    pulsar.attached.connected = True
    await asyncio.wait_for(consumer.acknowledgements_sent(), TIMEOUT_SECONDS)
    assert pulsar.attached.acknowledged == [("all up to", 1), ("all up to", 3)]
    await consumer.close()
    threads.close()


@pytest.mark.parametrize("is_cumulative", [True, False], ids=["cumulative", "one by one"])
async def test_closing_without_a_connection_waits_for_one_to_acknowledge(is_cumulative: bool) -> None:
    """What was acknowledged would come again to somebody else."""
    pulsar = Pulsar(lambda *_: None)
    consumer, _, threads = make(pulsar, is_cumulative=is_cumulative)
    await consumer.attach()
    pulsar.attached.connected = False
    consumer.acknowledge(1)
    closing = asyncio.create_task(consumer.close())
    await asyncio.wait({closing}, timeout=0.2)
    assert consumer.is_stopped
    assert (pulsar.attached.closed, pulsar.attached.acknowledged) == (0, [])
    pulsar.attached.connected = True
    await asyncio.wait_for(closing, TIMEOUT_SECONDS)
    assert pulsar.attached.acknowledged == [("all up to", 1) if is_cumulative else 1]
    closed: int = pulsar.attached.closed
    assert closed == 1
    threads.close()


async def test_closing_right_after_attaching_anew_still_acknowledges() -> None:
    pulsar = Pulsar(lambda *_: None)
    consumer, _, threads = make(pulsar, is_cumulative=True)
    await consumer.attach()
    consumer.acknowledge(1)
    consumer.attach_anew()
    await asyncio.wait_for(consumer.close(), TIMEOUT_SECONDS)
    assert len(pulsar.before) == 1
    assert pulsar.attached.acknowledged == [("all up to", 1)]
    threads.close()


async def test_closing_does_not_wait_for_a_connection_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scalable_topics.sdk.segment_consumer._LAST_ACKNOWLEDGEMENTS_SECONDS", 0.05)
    pulsar = Pulsar(lambda *_: None)
    consumer, _, threads = make(pulsar, is_cumulative=True)
    await consumer.attach()
    pulsar.attached.connected = False
    consumer.acknowledge(1)
    await asyncio.wait_for(consumer.close(), TIMEOUT_SECONDS)
    assert pulsar.attached.closed == 1
    threads.close()


async def test_R17_attaching_anew_sends_the_last_acknowledgement_again() -> None:
    pulsar = Pulsar(lambda *_: None)
    consumer, _, threads = make(pulsar, is_cumulative=True)
    await consumer.attach()
    consumer.acknowledge(1)
    consumer.attach_anew()
    consumer.attach_anew()
    await asyncio.wait_for(consumer.acknowledgements_sent(), TIMEOUT_SECONDS)
    assert [attached.closed for attached in pulsar.before] == [1]
    assert pulsar.attached.acknowledged == [("all up to", 1)]
    await consumer.close()
    threads.close()


async def test_what_is_stopped_delivers_nothing_and_still_acknowledges() -> None:
    listeners: list[Callable[[Any, Any], None]] = []
    pulsar = Pulsar(lambda listener, _: listeners.append(listener))
    consumer, arrivals, threads = make(pulsar)
    await consumer.attach()
    consumer.stop()
    listeners[0](pulsar.attached, "message")
    assert not arrivals.items
    assert not pulsar.attached.is_running
    consumer.acknowledge(1)
    assert pulsar.attached.acknowledged == [1]
    await consumer.close()
    consumer.acknowledge(2)
    assert pulsar.attached.acknowledged == [1]
    threads.close()


def refusing(*errors: Exception) -> Callable[[Callable[[Any, Any], None], Attached], None]:
    """Attaching fails with one after the other, and then no more."""
    left = list(errors)

    def attach(_: Callable[[Any, Any], None], __: Attached) -> None:
        if left:
            raise left.pop(0)

    return attach


async def test_the_first_attempt_to_attach_is_told_of_and_others_follow() -> None:
    consumer, _, threads = make(Pulsar(refusing(pulsar_client.ConsumerBusy("busy"))))
    consumer.keep_attaching()
    with pytest.raises(pulsar_client.ConsumerBusy):
        await consumer.first_attempt()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not consumer.is_connected:
            await asyncio.sleep(0.01)
    await consumer.close()
    threads.close()


async def test_nobody_waits_for_the_first_attempt_of_a_consumer_that_is_closed() -> None:
    reached, proceed = threading.Event(), threading.Event()

    def attach(_: Callable[[Any, Any], None], __: Attached) -> None:
        reached.set()
        assert proceed.wait(TIMEOUT_SECONDS)

    consumer, _, threads = make(Pulsar(attach))
    consumer.keep_attaching()
    waiting = asyncio.create_task(consumer.first_attempt())
    assert await asyncio.to_thread(reached.wait, TIMEOUT_SECONDS)
    closing = asyncio.create_task(consumer.close())
    await asyncio.wait_for(waiting, TIMEOUT_SECONDS)
    proceed.set()
    await closing
    threads.close()


@pytest.mark.parametrize("busy", [pulsar_client.ConsumerBusy("busy"), pulsar_client.ConsumerAssignError("taken")])
async def test_who_is_attached_is_about_to_leave(busy: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the segment, or to a bucket that shall be read: it tries again soon, however often that was in vain."""
    pauses: list[float] = []

    def shortened(least: float, most: float) -> float:
        pauses.append(most)
        return 0.0

    monkeypatch.setattr("scalable_topics.sdk.segment_consumer.random.uniform", shortened)
    consumer, _, threads = make(Pulsar(refusing(*[busy] * 8)))
    consumer.keep_attaching()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not consumer.is_connected:
            await asyncio.sleep(0)
    assert len(pauses) == 8
    assert max(pauses) == 1.0
    await consumer.close()
    threads.close()


async def test_attaching_anew_repeats_no_single_acknowledgement() -> None:
    """Others may have been lost, too: what the broker delivers again is acknowledged again, and nothing else."""
    pulsar = Pulsar(lambda *_: None)
    consumer, _, threads = make(pulsar)
    await consumer.attach()
    consumer.acknowledge(1)
    consumer.attach_anew()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not pulsar.before or not consumer.is_connected:
            await asyncio.sleep(0)
    await consumer.acknowledgements_sent()
    await consumer.close()
    assert pulsar.attached.acknowledged == []
    threads.close()


def break_connection(pulsar: Pulsar, consumer: SegmentConsumer) -> None:
    """And have it back: pulsar-client counts as connected from when it begins to attach anew."""
    pulsar.attached.connected = False
    consumer.watch()
    pulsar.attached.connected = True


@pytest.mark.parametrize("is_before", [True, False], ids=["on its way", "while attaching anew"])
async def test_R21_an_acknowledgement_that_may_be_lost_is_sent_again(is_before: bool) -> None:
    """An unload, and the segment changes hands before anything more is acknowledged."""
    pulsar = Pulsar(lambda *_: None)
    consumer, _, threads = make(pulsar, is_cumulative=True)
    await consumer.attach()
    if not is_before:
        break_connection(pulsar, consumer)
    consumer.acknowledge(1)
    if is_before:
        break_connection(pulsar, consumer)
    consumer.make_sure()
    await asyncio.wait_for(consumer.acknowledgements_sent(), TIMEOUT_SECONDS)
    assert [attached.closed for attached in pulsar.before] == [1]
    assert pulsar.attached.acknowledged == [("all up to", 1)]
    await consumer.close()
    threads.close()


@pytest.mark.parametrize("why", ["nothing broke", "long before", "nothing acknowledged", "one by one"])
async def test_what_is_certain_is_not_sent_again(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pulsar = Pulsar(lambda *_: None)
    consumer, _, threads = make(pulsar, is_cumulative=why != "one by one")
    await consumer.attach()
    consumer.watch()
    if why != "nothing broke":
        break_connection(pulsar, consumer)
    if why == "long before":
        monkeypatch.setattr("scalable_topics.sdk.segment_consumer._ATTACHING_SECONDS", 0.0)
    if why != "nothing acknowledged":
        consumer.acknowledge(1)
    consumer.make_sure()
    await consumer.acknowledgements_sent()
    assert pulsar.before == []
    await consumer.close()
    threads.close()
