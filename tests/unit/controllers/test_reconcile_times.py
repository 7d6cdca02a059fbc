"""How often topics are compared with their brokers, by how many there are."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.controllers.reconcile_times import LookTimes, ReconcileTimes
from scalable_topics_operator.controllers.topic_memory import TopicMemory

TIMES = ReconcileTimes(drift_seconds=300.0, drift_per_second=5.0, observe_seconds=60.0)


def _looks(topics: int, monkeypatch: pytest.MonkeyPatch, times: ReconcileTimes = TIMES) -> LookTimes:
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    return LookTimes(times, range(topics))


@pytest.mark.parametrize(
    ("topics", "seconds"),
    [(1, 300.0), (1_500, 300.0), (1_501, 300.2), (10_000, 2_000.0)],
)
def test_a_large_fleet_is_compared_less_often(topics: int, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, memory = _looks(topics, monkeypatch), TopicMemory("uid")
    for _ in range(20):
        looks.compared(memory)
        assert 0.8 * seconds <= memory.drift_due - 1000.0 <= 1.2 * seconds


@pytest.mark.parametrize(("topics", "seconds"), [(1, 60.0), (3_000, 60.0), (10_000, 200.0)])
def test_what_brokers_own_is_read_more_often(topics: int, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, memory = _looks(topics, monkeypatch), TopicMemory("uid")
    looks.observed(memory)
    assert 0.8 * seconds <= memory.drift_due - 1000.0 <= 1.2 * seconds


@pytest.mark.parametrize(
    ("topics", "decides", "seconds"), [(1, True, 60.0), (1, False, 300.0), (10_000, True, 2_000.0)]
)
def test_clients_of_what_brokers_own(
    topics: int, decides: bool, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _looks(topics, monkeypatch).clients_seconds(decides=decides) == seconds


class Clock:
    """Stands still but where a test moves it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


def test_a_comparison_that_nobody_asked_for_gives_way_to_other_work_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, busy = Clock(monkeypatch), True
    looks, memory = LookTimes(TIMES, range(10_000), lambda: busy), TopicMemory("uid")
    for note in (looks.begin, looks.compared):
        note(memory)
        for _ in range(2):
            clock.now = memory.drift_due
            assert not looks.is_due(memory)
            assert 0.8 * 2_000.0 <= memory.drift_due - clock.now <= 1.2 * 2_000.0, "spread, as they always are"
        clock.now = memory.drift_due
        assert looks.is_due(memory), "put off twice"
    looks.compared(memory)
    assert not looks.is_due(memory), "it is not due"
    memory.drift_due = 0.0
    assert looks.is_due(memory), "somebody asked for it, or the spec has changed"
    looks.observed(memory)
    clock.now = memory.drift_due
    assert looks.is_due(memory), "layouts that brokers own are read in time"


def test_a_comparison_is_made_when_it_is_due_while_there_is_time_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    looks, memory = LookTimes(TIMES, range(3)), TopicMemory("uid")
    looks.compared(memory)
    assert not looks.is_due(memory)
    clock.now = memory.drift_due
    assert looks.is_due(memory)


def test_comparisons_that_were_put_off_are_not_made_up_for_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, busy = Clock(monkeypatch), True
    memories = [TopicMemory(str(number)) for number in range(2_000)]
    looks = LookTimes(TIMES, memories, lambda: busy)
    for memory in memories:
        looks.compared(memory)
    made = 0
    for minute in range(90):
        busy, before = minute < 45, made
        clock.now += 60.0
        for memory in memories:
            if looks.is_due(memory):
                made += 1
                looks.compared(memory)
        assert made - before <= 2 * 60 * TIMES.drift_per_second
    assert made > len(memories)


@given(topics=st.integers(1, 5_000), per_second=st.floats(0.1, 100.0))
def test_a_new_leader_compares_no_more_a_second_than_any_other(topics: int, per_second: float) -> None:
    led: list[int] = []
    looks = LookTimes(ReconcileTimes(drift_per_second=per_second), led)
    before = time.monotonic()
    dues = []
    for number in range(topics):
        led.append(number)
        memory = TopicMemory(str(number))
        looks.begin(memory)
        dues.append(memory.drift_due)
    after = time.monotonic()
    assert before <= dues[0] <= after, "a single topic is compared at once"
    for number, due in enumerate(dues):
        assert before + number / per_second <= due <= after + number / per_second
