"""Bounds, deadlines and flushing of a producer's sends."""

from __future__ import annotations

import asyncio

from scalable_topics.sdk.errors import ClosedError
from scalable_topics.sdk.pending_sends import PendingSends
from scalable_topics.sdk.segment_lane import Send


class Sends:
    """Pending sends, and what they ask for."""

    def __init__(self, *, max_messages: int = 10, max_bytes: int = 1000) -> None:
        self.admitted: list[Send] = []
        self.expired: list[Send] = []
        self.pending = PendingSends(
            asyncio.get_running_loop(),
            max_messages=max_messages,
            max_bytes=max_bytes,
            admit=self.admitted.append,
            expire=self._expire,
        )
        self._orders = 0

    def add(self, size_bytes: int = 1, *, seconds: float = 60.0) -> Send:
        """Add a send."""
        self._orders += 1
        deadline = asyncio.get_running_loop().time() + seconds
        send = Send(self._orders, 0, size_bytes, deadline)
        self.pending.add(send)
        return send

    def finish(self, *sends: Send) -> None:
        """Say that sends are stored."""
        self.pending.finish(sends)

    def _expire(self, send: Send) -> None:
        self.expired.append(send)
        self.pending.tell(send, ClosedError("late"))


async def test_sends_beyond_the_bound_wait_in_order() -> None:
    sends = Sends(max_messages=2)
    first, second, third, fourth = (sends.add() for _ in range(4))
    assert (first.is_admitted, second.is_admitted, third.is_admitted) == (True, True, False)
    assert sends.pending.messages == 2
    sends.finish(first)
    assert sends.admitted == [third]
    sends.finish(second, third)
    assert sends.admitted == [third, fourth]
    sends.finish(fourth)
    assert sends.pending.messages == sends.pending.bytes == 0


async def test_A5_26151_what_waits_in_vain_is_let_go_though_nothing_is_released() -> None:
    """Brokers are silent for longer than the send timeout: who waits for room is told so, and nothing piles up."""
    sends = Sends(max_messages=1)
    first = sends.add(seconds=0.01)
    second = sends.add(seconds=0.02)
    admission = sends.pending.admission(second)
    assert admission is not None
    await asyncio.wait_for(admission, 5)
    assert sends.expired == [first, second]
    assert not second.is_admitted
    for _ in range(5):
        late = sends.add(seconds=0.01)
        given_up = sends.pending.admission(late)
        assert given_up is not None
        await asyncio.wait_for(given_up, 5)
    last = sends.add()
    waits = sends.pending.admission(last)
    assert waits is not None
    assert not waits.done()
    assert sends.pending.untold[-1] is last
    assert len(sends.pending.waiting) == 1


async def test_a_small_send_does_not_pass_a_large_one_that_waits() -> None:
    sends = Sends(max_bytes=100)
    first, large, small = sends.add(60), sends.add(60), sends.add(1)
    assert not sends.pending.has_room(1)
    assert not small.is_admitted
    sends.finish(first)
    assert sends.admitted == [large, small]


async def test_a_send_larger_than_the_bound_goes_alone() -> None:
    sends = Sends(max_bytes=100)
    large = sends.add(500)
    assert large.is_admitted
    waiting = sends.add(1)
    assert not waiting.is_admitted
    sends.finish(large)
    assert waiting.is_admitted


async def test_room_comes_back_only_when_nothing_holds_the_send() -> None:
    """Hazard A5-26151: pulsar-client keeps what it was given, whatever the application was told."""
    sends = Sends(max_messages=1)
    first = sends.add()
    sends.pending.tell(first, ClosedError("unknown"))
    assert not sends.add().is_admitted
    sends.pending.release(first)
    assert len(sends.admitted) == 1


async def test_admission_can_be_awaited() -> None:
    sends = Sends(max_messages=1)
    first = sends.add()
    assert sends.pending.admission(first) is None
    second = sends.add()
    admission = sends.pending.admission(second)
    assert admission is not None
    sends.finish(first)
    await asyncio.wait_for(admission, 1)
    assert second.is_admitted


async def test_a_send_that_was_told_while_it_waited_is_passed_over() -> None:
    sends = Sends(max_messages=1)
    first, second, third = (sends.add() for _ in range(3))
    sends.pending.tell(second, ClosedError("withdrawn"))
    sends.finish(first)
    assert sends.admitted == [third]


async def test_flush_waits_for_what_was_sent_before_it_and_no_more() -> None:
    """Hazard A5-26287: by message, wherever it is."""
    sends = Sends()
    await sends.pending.flush()
    first, second = sends.add(), sends.add()
    flush = asyncio.create_task(sends.pending.flush())
    await asyncio.sleep(0)
    sends.add()
    sends.finish(second)
    await asyncio.sleep(0)
    assert not flush.done()
    sends.finish(first)
    await asyncio.wait_for(flush, 1)


async def test_sends_expire_at_their_deadline_and_not_before() -> None:
    sends = Sends()
    late = sends.add(seconds=0.02)
    sends.add(seconds=60)
    flush = asyncio.create_task(sends.pending.flush())
    for _ in range(100):
        await asyncio.sleep(0.01)
        if sends.expired:
            break
    assert sends.expired == [late]
    assert not flush.done()
    flush.cancel()


async def test_a_flush_that_is_cancelled_leaves_the_others() -> None:
    sends = Sends()
    first = sends.add()
    flushes = [asyncio.create_task(sends.pending.flush()) for _ in range(2)]
    await asyncio.sleep(0)
    flushes[0].cancel()
    sends.finish(first)
    await asyncio.wait_for(flushes[1], 1)


async def test_the_clock_stops_at_close() -> None:
    sends = Sends()
    sends.add(seconds=0.01)
    sends.pending.close()
    await asyncio.sleep(0.05)
    assert sends.expired == []


async def test_a_pause_ends_with_the_last_outcome() -> None:
    sends = Sends()
    first, second = sends.add(), sends.add()
    pauses = [asyncio.create_task(sends.pending.pause(60.0, most_messages=5)) for _ in range(2)]
    await asyncio.sleep(0)
    sends.finish(first)
    await asyncio.sleep(0)
    assert not any(pause.done() for pause in pauses)
    sends.finish(second)
    async with asyncio.timeout(10):
        await asyncio.gather(*pauses)


async def test_a_pause_ends_without_outcomes_too() -> None:
    sends = Sends()
    sends.add()
    async with asyncio.timeout(10):
        await sends.pending.pause(0.01, most_messages=5)
    sends.pending.release(sends.pending.untold[0])
    assert sends.pending.messages == 0


async def test_a_pause_is_a_turn_of_the_loop_while_nothing_or_much_is_on_its_way() -> None:
    sends = Sends()
    async with asyncio.timeout(10):
        await sends.pending.pause(60.0, most_messages=2)
        for _ in range(3):
            sends.add()
        await sends.pending.pause(60.0, most_messages=2)
