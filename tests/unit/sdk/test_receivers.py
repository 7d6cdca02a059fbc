"""Each item wakes somebody who waits, whoever gives up meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.sdk.receivers import Receivers


class Shop:
    """Items, and those who want one."""

    def __init__(self) -> None:
        self.items: deque[int] = deque()
        self.receivers = Receivers(lambda: len(self.items))

    def put(self, item: int) -> None:
        self.items.append(item)
        self.receivers.wake()

    async def take(self) -> int:
        while not self.items:
            await self.receivers.wait()
        return self.items.popleft()


async def _begun(shop: Shop, count: int) -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(shop.take()) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_an_item_that_comes_while_one_gives_up_is_for_the_next() -> None:
    """The one that gave up has not run yet: it neither fails nor keeps the next from being woken."""
    shop = Shop()
    first, second = await _begun(shop, 2)
    first.cancel()
    shop.put(1)
    results = await asyncio.wait_for(asyncio.gather(first, second, return_exceptions=True), 5)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1] == 1


async def test_one_that_is_woken_and_gives_up_passes_it_on() -> None:
    shop = Shop()
    first, second = await _begun(shop, 2)
    shop.put(1)
    first.cancel()
    results = await asyncio.wait_for(asyncio.gather(first, second, return_exceptions=True), 5)
    assert results[1] == 1


async def test_all_are_woken_in_the_end() -> None:
    shop = Shop()
    waits = [asyncio.create_task(shop.receivers.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    shop.receivers.wake_all()
    await asyncio.wait_for(asyncio.gather(*waits), 5)


@given(st.lists(st.sampled_from(["take", "put", "cancel", "run"]), max_size=40))
def test_nobody_waits_beside_an_item(steps: list[str]) -> None:
    async def play() -> None:
        shop, tasks = Shop(), list[asyncio.Task[int]]()
        for number, step in enumerate(steps):
            match step:
                case "take":
                    tasks.append(asyncio.create_task(shop.take()))
                case "put":
                    shop.put(number)
                case "cancel":
                    next((task.cancel() for task in tasks if not task.done()), None)
                case "run":
                    await asyncio.sleep(0)
        for _ in range(2 * len(steps) + 2):
            await asyncio.sleep(0)
        waiting = [task for task in tasks if not task.done()]
        assert not (waiting and shop.items)
        assert all(task.cancelled() or task.exception() is None for task in tasks if task.done())
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(play())
