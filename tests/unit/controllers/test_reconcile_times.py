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


@pytest.mark.parametrize(("topics", "interval_seconds"), [(1, 300.0), (10_000, 2_000.0)])
def test_a_comparison_that_nobody_asked_for_gives_way_to_other_work_but_not_for_ever(
    topics: int, interval_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = True
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    looks, memory = LookTimes(TIMES, range(topics), lambda: busy), TopicMemory("uid")
    for note in (looks.begin, looks.compared):
        busy = True
        note(memory)
        assert looks.due(memory) == memory.drift_due + 2 * interval_seconds
        busy = False
        assert looks.due(memory) == memory.drift_due
    busy, memory.drift_due = True, 0.0
    assert looks.due(memory) == 0.0, "somebody asked for it, or the spec has changed"
    looks.observed(memory)
    assert looks.due(memory) == memory.drift_due, "layouts that brokers own are read in time"


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
