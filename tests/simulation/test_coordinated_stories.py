"""Ordered consumers under a coordinator, with faults at every step: at no time two readers, and none before its turn.

R7, R17, R21; `pytest tests/simulation --seed=N` tells one again; of as many as SIMULATION_SEEDS says, a quarter is told
here.
"""

from __future__ import annotations

import pytest

from scalable_topics_operator.assignment import group
from scalable_topics_operator.controllers import coordinator
from tests.simulation.coordinated_world import tell


def test_a_story_of_consumers(consumers_seed: int) -> None:
    tell(consumers_seed)


def test_stories_go_somewhere() -> None:
    traces = [" ".join(tell(seed).trace) for seed in range(5)]
    assert all("attaches" in trace for trace in traces)
    assert any("fail over" in trace and "dies" in trace for trace in traces)


def _tell_many() -> None:
    for seed in range(60):
        tell(seed)


def test_without_waiting_for_brokers_a_checkpoint_consumer_does_not_know_where_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coordinator, "_not_told", lambda *_: frozenset())
    with pytest.raises(AssertionError, match="is not told where"):
        _tell_many()


def test_without_the_barrier_children_are_read_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the stories cannot pass because nothing is ever kept back."""
    monkeypatch.setattr(group, "readable_segments", lambda layout, drained: tuple(layout.segments.values()))
    with pytest.raises(AssertionError, match="before"):
        _tell_many()
