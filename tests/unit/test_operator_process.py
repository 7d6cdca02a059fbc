"""What the process makes of what goes wrong with one object."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.operator_process import OperatorProcess
from scalable_topics_operator.settings import OperatorSettings

# Those are worked on by every replica, so that no leadership is needed.
BAD, GOOD = (ObjectKey(CONNECTIONS.plural, "ns", name) for name in ("bad", "good"))


class Controller:
    """Fails in a way that nobody foresaw until it is told to do better."""

    def __init__(self) -> None:
        self.worked_on: Counter[ObjectKey] = Counter()
        self.news = asyncio.Event()
        self.is_broken = True

    async def reconcile(self, key: ObjectKey) -> float | None:
        self.worked_on[key] += 1
        self.news.set()
        if key == BAD and self.is_broken:
            raise LookupError("a bug")
        return None

    async def until(self, key: ObjectKey, times: int) -> None:
        """Wait until a key was worked on so often."""
        async with asyncio.timeout(20):
            while self.worked_on[key] < times:
                self.news.clear()
                await self.news.wait()


async def test_an_error_nobody_foresaw_is_one_objects_alone_and_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Hazards A1-26434b and A2-25980a."""
    process, controller = OperatorProcess(OperatorSettings()), Controller()
    process._controllers = {CONNECTIONS.plural: controller}
    queue = process._probes
    running = asyncio.create_task(queue.run(process._reconcile, 1))
    queue.add(BAD)
    await controller.until(BAD, 3)
    queue.add(GOOD)
    await controller.until(GOOD, 1)
    assert "LookupError: a bug" in caplog.text
    controller.is_broken = False
    before = controller.worked_on[BAD]
    await controller.until(BAD, before + 1)
    assert not running.done()
    # It is at rest again, and its failures are forgotten.
    assert queue.failed(BAD) <= 0.5
    running.cancel()
