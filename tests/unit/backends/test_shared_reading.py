import asyncio

import pytest

from scalable_topics_operator.backends.classic.settling import Settling
from scalable_topics_operator.backends.classic.shared_reading import SharedReading
from scalable_topics_operator.operations.errors import BackendUnavailable


class Source:
    def __init__(self) -> None:
        self.readings = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.failures = 0
        self.now = 100.0

    async def read(self, key: str) -> str:
        self.readings += 1
        reading = self.readings
        await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise BackendUnavailable("no")
        return f"{key}{reading}"

    def monotonic(self) -> float:
        self.now += 0.001
        return self.now


async def test_callers_together_share_one_reading() -> None:
    source = Source()
    shared = SharedReading(source.read, source.monotonic)
    source.gate.clear()
    calls = [asyncio.create_task(shared.get("k")) for _ in range(50)]
    while not source.readings:
        await asyncio.sleep(0)
    source.gate.set()
    values = await asyncio.gather(*calls)
    # The first reading began before the others called; the second serves them all.
    assert source.readings == 2
    assert set(values) == {"k1", "k2"}
    assert values.count("k1") == 1


async def test_age_0_is_never_served_by_a_reading_that_began_before_the_call() -> None:
    source = Source()
    shared = SharedReading(source.read, source.monotonic)
    source.gate.clear()
    first = asyncio.create_task(shared.get("k"))
    while not source.readings:
        await asyncio.sleep(0)
    later = asyncio.create_task(shared.get("k"))
    aged = asyncio.create_task(shared.get("k", max_age_seconds=60))
    await asyncio.sleep(0)
    source.gate.set()
    assert (await first, await later) == ("k1", "k2")
    assert await aged in ("k1", "k2")
    assert source.readings == 2


async def test_an_accepted_age_saves_the_reading() -> None:
    source = Source()
    shared = SharedReading(source.read, source.monotonic)
    assert await shared.get("k") == "k1"
    source.now += 9
    assert await shared.get("k", max_age_seconds=10) == "k1"
    source.now += 2
    assert await shared.get("k", max_age_seconds=10) == "k2"
    assert await shared.get("other", max_age_seconds=10) == "other3"


async def test_a_failed_reading_is_shared_with_nobody() -> None:
    source = Source()
    source.failures = 1
    shared = SharedReading(source.read, source.monotonic)
    results = await asyncio.gather(*(shared.get("k") for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [BackendUnavailable, str, str]


async def test_what_was_read_last_is_known_for_ever_and_asks_nobody() -> None:
    source = Source()
    shared = SharedReading(source.read, source.monotonic)
    assert shared.latest("k") is None
    await shared.get("k")
    source.now += 3600
    source.failures = 1
    with pytest.raises(BackendUnavailable):
        await shared.get("k")
    assert (shared.latest("k"), shared.latest("other"), source.readings) == ("k1", None, 2)


async def test_a_cancelled_reading_does_not_block_the_next() -> None:
    source = Source()
    shared = SharedReading(source.read, source.monotonic)
    source.gate.clear()
    first = asyncio.create_task(shared.get("k"))
    second = asyncio.create_task(shared.get("k"))
    while not source.readings:
        await asyncio.sleep(0)
    first.cancel()
    source.gate.set()
    assert await asyncio.wait_for(second, 5) == "k2"


async def test_settling_waits_until_the_effect_shows() -> None:
    answers = iter([None, None, 5, 5])

    async def read() -> int | None:
        return next(answers)

    await Settling(timeout_seconds=5, first_wait_seconds=0.001).until("it", read, lambda seen: seen == 5)
    assert list(answers) == [5]


async def test_settling_gives_up_naming_what_does_not_show() -> None:
    async def read() -> None:
        return None

    settling = Settling(timeout_seconds=0.05, first_wait_seconds=0.01)
    with pytest.raises(BackendUnavailable, match=r"policy x of t does not show after 0\.05 s"):
        await settling.until("policy x of t", read, lambda seen: seen is not None)
