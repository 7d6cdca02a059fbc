"""No group of objects keeps the workers from the others (hazards C22, C37)."""

from __future__ import annotations

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.controllers.fair_share import FairShare
from scalable_topics_operator.controllers.work_queue import WorkQueue
from tests.unit.controllers.test_work_queue import running

_WORKERS = 8


def _group_of(key: str) -> str | None:
    group, _, number = key.partition("/")
    return group if number else None


async def test_a_group_that_hangs_leaves_workers_for_others() -> None:
    queue: WorkQueue[str] = WorkQueue(group_of=_group_of)
    forever, done = asyncio.Event(), asyncio.Event()
    at_work: Counter[str] = Counter()

    async def work(key: str) -> None:
        if key.startswith("hung/"):
            at_work["hung"] += 1
            await forever.wait()
        elif key == "good/last":
            done.set()

    async with running(queue, work, _WORKERS):
        for number in range(50):
            queue.add(f"hung/{number}")
        for number in range(20):
            queue.add(f"good/{number}")
        queue.add("no-group")
        queue.add("good/last")
        await asyncio.wait_for(done.wait(), 5)
        assert at_work["hung"] == _WORKERS * 3 // 4
        assert queue.waiting == 50 - at_work["hung"]
        assert (queue.ready, queue.oldest_wait_seconds) == (0, 0), (
            "those behind their own group wait for it, not for us"
        )


async def test_a_group_that_suffers_holds_two_workers_until_something_succeeds() -> None:
    queue: WorkQueue[str] = WorkQueue(group_of=_group_of)
    at_work, most = 0, 0
    release = asyncio.Semaphore(0)

    async def work(key: str) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await release.acquire()
        at_work -= 1
        queue.succeeded(key)

    async with running(queue, work, _WORKERS):
        await asyncio.sleep(0.01)
        queue.failed("sick/0", group_suffers=True)
        for number in range(20):
            queue.add(f"sick/{number}")
        await asyncio.sleep(0.01)
        assert at_work == 2
        for _ in range(20):
            release.release()
        await asyncio.sleep(0.05)
        assert (at_work, queue.waiting) == (0, 0), "every parked key had its turn"
        assert most == _WORKERS * 3 // 4, "and the group its full share again"


@given(st.lists(st.sampled_from(["a/1", "a/2", "a/3", "b/1", "b/2", "c"]), max_size=60))
def test_every_key_gets_its_turn_whatever_the_order(keys: list[str]) -> None:
    async def run() -> None:
        queue: WorkQueue[str] = WorkQueue(group_of=_group_of)
        worked: Counter[str] = Counter()

        async def work(key: str) -> None:
            worked[key] += 1
            if worked[key] % 2:
                queue.failed(key, group_suffers=True)
            else:
                queue.succeeded(key)
            await asyncio.sleep(0)

        async with running(queue, work, 2):
            for key in keys:
                queue.add(key)
                await asyncio.sleep(0)
            async with asyncio.timeout(5):
                while queue.waiting or worked.keys() != set(keys):
                    await asyncio.sleep(0)

    asyncio.run(run())


def test_the_share_of_one_worker_is_one() -> None:
    share: FairShare[str] = FairShare(1)
    assert share.free("g") == 1
    share.suffers("g")
    assert share.free("g") == 1
    share.enter("g")
    assert share.free("g") == 0
    share.leave("g")
    assert share.free("g") == 1
