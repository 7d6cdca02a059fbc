"""From threads to the loop."""

import asyncio
import threading

from scalable_topics.sdk.arrivals import Arrivals


async def test_many_arrivals_wake_the_loop_once_and_none_is_missed() -> None:
    wakes = 0
    taken: list[int] = []
    everything = asyncio.Event()

    def arrived() -> None:
        nonlocal wakes
        wakes += 1
        while arrivals.items:
            taken.append(arrivals.items.popleft())
        if len(taken) == 3000:
            everything.set()

    arrivals: Arrivals[int] = Arrivals(asyncio.get_running_loop(), arrived)

    def fill(start: int) -> None:
        for number in range(start, start + 1000):
            arrivals.put(number)

    threads = [threading.Thread(target=fill, args=(start,)) for start in (0, 1000, 2000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        # Without a turn for the loop: all of it is one wake-up, or a few.
        thread.join()
    await asyncio.wait_for(everything.wait(), 10)
    assert sorted(taken) == list(range(3000))
    assert wakes < 300


def test_an_arrival_after_the_loop_was_closed_harms_nobody() -> None:
    loop = asyncio.new_event_loop()
    arrivals: Arrivals[int] = Arrivals(loop, lambda: None)
    loop.close()
    arrivals.put(1)
