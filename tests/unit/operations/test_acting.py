"""R6: calls end before the leader's deadline, and none begins after it."""

from __future__ import annotations

import asyncio

from scalable_topics_operator.operations.acting import acting_until, seconds_to_act


def test_without_a_leader_only_the_calls_own_bound_counts() -> None:
    assert seconds_to_act(1000.0, 10.0) == 10.0


def test_r6_a_call_ends_by_the_deadline() -> None:
    with acting_until(lambda: 1004.0):
        assert seconds_to_act(1000.0, 10.0) == 4.0
        assert seconds_to_act(1000.0, 1.0) == 1.0
        assert seconds_to_act(1004.0, 10.0) == 0.0
        assert seconds_to_act(2000.0, 10.0) == 0.0
    assert seconds_to_act(2000.0, 10.0) == 10.0


async def test_r6_the_deadline_moves_with_renewals_for_tasks_that_run() -> None:
    deadline = [5.0]
    with acting_until(lambda: deadline[0]):
        task = asyncio.create_task(_left())
    deadline[0] = 8.0
    assert await task == 8.0


async def _left() -> float:
    await asyncio.sleep(0)
    return seconds_to_act(0.0, 10.0)
