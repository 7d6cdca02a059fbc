"""Only the leader works, only in its time, and what it remembers ends with its leadership (R5, R6)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from scalable_topics_operator.cluster.leadership import Hold
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.shard_work import NotLed, ShardWork
from scalable_topics_operator.operations.acting import seconds_to_act
from scalable_topics_operator.telemetry.metrics import Metrics

KEYS = [ObjectKey("scalabletopics", "ns", f"t{number}") for number in range(4)]


class Fleet:
    """Four topics in two shards."""

    def __init__(self) -> None:
        self.begun: list[ObjectKey] = []
        self.forgotten: list[ObjectKey] = []
        self.highest_term = 0

    def shard_of(self, key: ObjectKey) -> int:
        return KEYS.index(key) % 2

    def keys_of(self, shard: int) -> Iterator[ObjectKey]:
        return (key for key in KEYS if self.shard_of(key) == shard)

    def highest_term_of(self, shard: int) -> int:
        return self.highest_term

    def begin(self, keys: Iterable[ObjectKey]) -> None:
        self.begun += keys

    def forget(self, keys: Iterable[ObjectKey]) -> None:
        self.forgotten += keys


class Office:
    """What `ShardWork` asks `Leadership`."""

    def __init__(self) -> None:
        self.holds: dict[int, Hold] = {}
        self.released: list[int] = []
        self.raised: list[tuple[int, int]] = []

    def hold(self, shard: int) -> Hold | None:
        hold = self.holds.get(shard)
        return hold if hold is not None and time.monotonic() < hold.deadline_seconds else None

    def acting_until_seconds(self, shard: int, term: int) -> float:
        hold = self.holds.get(shard)
        return hold.deadline_seconds if hold is not None and hold.term == term else 0.0

    def release(self, shard: int) -> None:
        self.released.append(shard)

    def raise_term(self, shard: int, above: int) -> None:
        self.raised.append((shard, above))


class Bench:
    """A replica that is told what it leads."""

    def __init__(self) -> None:
        self.fleet, self.office, self.metrics = Fleet(), Office(), Metrics()
        self.work = ShardWork(self.fleet, self.metrics, 0.05)
        self.work.follow(self.office)  # type: ignore[arg-type]

    def gain(self, shard: int, term: int = 1, seconds: float = 60.0) -> None:
        self.office.holds[shard] = Hold(term, time.monotonic() + seconds, False)
        self.work.gained(shard, term)

    def lose(self, shard: int) -> None:
        del self.office.holds[shard]
        self.work.lost(shard)


@pytest.fixture
async def bench() -> Bench:
    return Bench()


async def _hang() -> None:
    await asyncio.Event().wait()


async def _answer(value: Any) -> Any:
    return value


async def test_what_is_not_led_is_not_worked_on(bench: Bench) -> None:
    with pytest.raises(NotLed):
        await bench.work.run(KEYS[0], _answer(1))
    bench.gain(0)
    assert bench.fleet.begun == [KEYS[0], KEYS[2]]
    assert await bench.work.run(KEYS[0], _answer(1)) == 1
    with pytest.raises(NotLed):
        await bench.work.run(KEYS[1], _answer(1))


async def test_errors_of_the_work_come_through(bench: Bench) -> None:
    async def fail() -> None:
        raise ValueError("mine")

    bench.gain(0)
    with pytest.raises(ValueError, match="mine"):
        await bench.work.run(KEYS[0], fail())


async def test_R6_past_its_deadline_nothing_begins_though_nobody_said_so(bench: Bench) -> None:
    """Hazards B3 and C32."""
    bench.gain(0, seconds=-1.0)
    assert not bench.work.leads(KEYS[0])
    with pytest.raises(NotLed):
        await bench.work.run(KEYS[0], _answer(1))


async def test_R6_calls_of_the_work_know_the_deadline(bench: Bench) -> None:
    async def left() -> float:
        return seconds_to_act(time.monotonic(), 100.0)

    bench.gain(0, seconds=60.0)
    assert 50.0 < await bench.work.run(KEYS[0], left()) <= 60.0


async def test_losing_a_shard_cancels_its_work_and_forgets_its_topics(bench: Bench) -> None:
    """Hazards B3 and C32."""
    bench.gain(0)
    bench.gain(1)
    mine = asyncio.create_task(bench.work.run(KEYS[0], _hang()))
    other = asyncio.create_task(bench.work.run(KEYS[1], _hang()))
    await asyncio.sleep(0)
    bench.lose(0)
    with pytest.raises(NotLed):
        await mine
    assert bench.fleet.forgotten == [KEYS[0], KEYS[2]]
    assert not other.done()
    other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await other


async def test_a_shard_gained_again_at_once_is_worked_on_again(bench: Bench) -> None:
    bench.gain(0)
    running = asyncio.create_task(bench.work.run(KEYS[0], _hang()))
    await asyncio.sleep(0)
    bench.lose(0)
    bench.gain(0, term=2)
    again = asyncio.create_task(bench.work.run(KEYS[2], _answer(bench.work.term_of(KEYS[2]))))
    with pytest.raises(NotLed):
        await running
    assert await again == 2


async def test_a_shard_is_handed_over_when_its_work_has_ended(bench: Bench) -> None:
    go_on = asyncio.Event()

    async def step() -> str:
        await go_on.wait()
        return "ended"

    bench.gain(0)
    running = asyncio.create_task(bench.work.run(KEYS[0], step()))
    await asyncio.sleep(0)
    bench.work.handing_over(0)
    with pytest.raises(NotLed):
        await bench.work.run(KEYS[2], _answer(1))
    await asyncio.sleep(0)
    assert bench.office.released == []
    go_on.set()
    assert await running == "ended"
    await asyncio.sleep(0.01)
    assert bench.office.released == [0]
    assert bench.fleet.forgotten == [KEYS[0], KEYS[2]]


async def test_work_that_does_not_end_is_cancelled_for_a_hand_over(bench: Bench) -> None:
    bench.gain(0)
    running = asyncio.create_task(bench.work.run(KEYS[0], _hang()))
    await asyncio.sleep(0)
    bench.work.handing_over(0)
    with pytest.raises(NotLed):
        await running
    await asyncio.sleep(0.01)
    assert bench.office.released == [0]


async def test_R5_a_term_below_the_records_is_raised_before_anything_begins(bench: Bench) -> None:
    bench.fleet.highest_term = 7
    bench.gain(0, term=1)
    assert bench.office.raised == [(0, 7)]
    assert bench.fleet.begun == []
    assert not bench.work.leads(KEYS[0])
    bench.gain(0, term=8)
    assert bench.work.term_of(KEYS[0]) == 8


async def test_stopping_ends_all_work(bench: Bench) -> None:
    bench.gain(0)
    running = asyncio.create_task(bench.work.run(KEYS[0], _hang()))
    await asyncio.sleep(0)
    bench.work.stop()
    with pytest.raises(NotLed):
        await running


async def test_what_a_late_renewal_keeps_waiting_is_still_this_replicas(bench: Bench) -> None:
    """Nobody says that work begins anew when the renewal comes through after all."""
    bench.gain(0, seconds=-1.0)
    with pytest.raises(NotLed):
        await bench.work.run(KEYS[0], _answer(1))
    assert bench.work.keeps(KEYS[0])
    assert not bench.work.keeps(KEYS[1])
    bench.lose(0)
    assert not bench.work.keeps(KEYS[0])


async def test_a_shard_lost_while_it_is_handed_over_is_not_released_once_it_is_gained_again(bench: Bench) -> None:
    bench.gain(0)
    running = asyncio.create_task(bench.work.run(KEYS[0], _hang()))
    await asyncio.sleep(0)
    bench.work.handing_over(0)
    bench.lose(0)
    bench.gain(0, term=2)
    with pytest.raises(NotLed):
        await running
    again = asyncio.create_task(bench.work.run(KEYS[2], _hang()))
    await asyncio.sleep(0.1)
    assert bench.office.released == []
    assert not again.done()
    again.cancel()


async def test_R5_a_record_of_a_higher_term_that_shows_up_later_raises_the_shards(bench: Bench) -> None:
    bench.gain(0, term=3)
    bench.work.raise_term(KEYS[2], 9)
    assert bench.office.raised == [(0, 9)]
