"""The queue that everything runs through (R39)."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.controllers.work_queue import Backoff, WorkQueue


@contextlib.asynccontextmanager
async def running(
    queue: WorkQueue[str], work: Callable[[str], Awaitable[None]], workers: int = 4
) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run(work, workers))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_key_waiting_is_not_added_twice() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(5):
        queue.add("a")
    assert queue.waiting == 1


async def test_a_key_is_never_worked_on_twice_at_a_time_and_news_during_work_is_not_lost() -> None:
    """Hazards A2-25980b and B3."""
    queue: WorkQueue[str] = WorkQueue()
    at_work: Counter[str] = Counter()
    most = 0
    rounds: Counter[str] = Counter()
    second_round = asyncio.Event()

    async def work(key: str) -> None:
        nonlocal most
        at_work[key] += 1
        most = max(most, at_work[key])
        rounds[key] += 1
        if rounds[key] == 1:
            queue.add(key)  # news that arrives while the key is worked on
            queue.add(key)
        else:
            second_round.set()
        await asyncio.sleep(0)
        at_work[key] -= 1

    async with running(queue, work):
        queue.add("a")
        async with asyncio.timeout(5):
            await second_round.wait()
        await asyncio.sleep(0.01)
    assert most == 1
    assert rounds["a"] == 2, "two wishes during one round are one more round"


async def test_one_slow_key_does_not_hold_up_others() -> None:
    """Hazards C22, C37."""
    queue: WorkQueue[str] = WorkQueue()
    stuck, done = asyncio.Event(), asyncio.Event()

    async def work(key: str) -> None:
        if key == "slow":
            await stuck.wait()
        else:
            done.set()

    async with running(queue, work, workers=2):
        queue.add("slow")
        queue.add("quick")
        async with asyncio.timeout(5):
            await done.wait()
        assert queue.longest_work_seconds > 0
        stuck.set()


async def test_of_two_delays_the_earlier_counts_and_a_wish_for_now_beats_both() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worked = asyncio.Queue[str]()

    async def work(key: str) -> None:
        await worked.put(key)

    async with running(queue, work):
        queue.add_after("a", 60)
        queue.add_after("a", 0.01)
        queue.add_after("a", 30)
        queue.add_after("b", 60)
        queue.add("b")
        async with asyncio.timeout(5):
            assert {await worked.get(), await worked.get()} == {"a", "b"}
        assert worked.empty()


async def test_five_thousand_keys_at_once_are_all_worked_on() -> None:
    """Hazard C21: no bound that loses work or ends the process."""
    queue: WorkQueue[str] = WorkQueue()
    keys = {f"key-{index}" for index in range(5000)}
    left = set(keys)
    empty = asyncio.Event()

    async def work(key: str) -> None:
        left.discard(key)
        if not left:
            empty.set()

    async with running(queue, work):
        for key in keys:
            queue.add(key)
        async with asyncio.timeout(20):
            await empty.wait()


@given(st.integers(1, 10_000), st.floats(0.01, 5), st.floats(5, 300))
def test_back_off_doubles_up_to_its_bound_with_jitter(failures: int, first: float, last: float) -> None:
    pause = Backoff(first, last).pause_seconds(failures)
    ceiling = min(last, first * 2.0 ** min(failures - 1, 30))
    assert ceiling / 2 <= pause <= ceiling


async def test_failures_are_forgotten_after_a_success() -> None:
    queue: WorkQueue[str] = WorkQueue(Backoff(1, 64))
    pauses = [queue.failed("a") for _ in range(6)]
    assert pauses[-1] > 8
    queue.succeeded("a")
    assert queue.failed("a") <= 1


async def test_what_work_raises_ends_the_queue_instead_of_a_silent_worker() -> None:
    """Hazard A1-26434b."""
    queue: WorkQueue[str] = WorkQueue()

    async def work(_: str) -> None:
        raise LookupError("a bug")

    queue.add("a")
    with pytest.raises(ExceptionGroup):
        async with asyncio.timeout(5):
            await queue.run(work, 2)


async def test_a_long_queue_that_moves_is_not_stuck_however_long_its_last_key_waits() -> None:
    """Ten thousand topics after a start take longer than the liveness probe waits: restarted for it, they never end."""
    now, keys = 0.0, 50
    queue: WorkQueue[str] = WorkQueue(monotonic=lambda: now)
    most_wait = most_untaken = 0.0
    done = asyncio.Event()

    async def work(key: str) -> None:
        nonlocal now, most_wait, most_untaken
        now += 10.0
        most_wait = max(most_wait, queue.oldest_wait_seconds)
        most_untaken = max(most_untaken, queue.untaken_seconds)
        if not queue.waiting:
            done.set()

    for number in range(keys):
        queue.add(f"k{number}")
    assert queue.untaken_seconds == 0
    now = 30.0
    assert queue.untaken_seconds == 30, "no worker has ever taken one"
    async with running(queue, work, workers=1), asyncio.timeout(5):
        await done.wait()
    assert most_wait > 300
    assert most_untaken == 10
    queue.add("late")
    now += 400
    assert queue.untaken_seconds == 400, "and one that does not move is"


class CountingQueue(WorkQueue[str]):
    """Counts how often a worker looks for a key."""

    looks = 0

    async def _next(self) -> tuple[str, Hashable | None]:
        self.looks += 1
        return await super()._next()

    async def _called(self) -> None:
        await super()._called()
        self.looks += 1


async def test_a_key_calls_one_worker_and_not_all_that_are_idle() -> None:
    """A decision a minute on each of ten thousand topics would otherwise wake all workers 167 times a second."""
    queue, workers, keys = CountingQueue(), 32, 100
    worked: list[str] = []
    done = asyncio.Event()

    async def work(key: str) -> None:
        worked.append(key)
        done.set()

    async with running(queue, work, workers=workers), asyncio.timeout(20):
        await asyncio.sleep(0)
        before = queue.looks
        for number in range(keys):
            done.clear()
            queue.add(f"k{number}")
            await done.wait()
            await asyncio.sleep(0)
        assert len(worked) == keys
        assert queue.looks - before <= 2 * keys + workers


async def test_a_worker_that_ends_as_it_is_called_passes_the_call_on() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worked = asyncio.Event()

    async def work(_: str) -> None:
        worked.set()

    workers = [asyncio.create_task(queue._worker(work)) for _ in range(2)]
    await asyncio.sleep(0)
    queue.add("a")
    workers[0].cancel()
    async with asyncio.timeout(5):
        await worked.wait()
    workers[1].cancel()
    await asyncio.gather(*workers, return_exceptions=True)
