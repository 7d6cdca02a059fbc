"""Stories of ordered consumers under a coordinator go somewhere, and notice what must not be (R7, R17, R21)."""

from __future__ import annotations

import pytest

from scalable_topics_operator.assignment import group
from scalable_topics_operator.controllers import coordinator
from scalable_topics_operator.operations.errors import BackendUnavailable
from scalable_topics_operator.operations.protocols import SegmentLook
from tests.simulation.coordinated_world import CoordinatedWorld, tell


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


async def test_what_could_not_be_told_is_not_looked_at_without_a_pause_once_the_subscription_goes() -> None:
    world = next(found for seed in range(20) if (found := CoordinatedWorld(seed)).kind == "Checkpoint")
    world.server.is_calm = True
    consumer = world.consumers[0]

    async def refuse(segment_topic: str) -> SegmentLook:
        raise BackendUnavailable("the broker does not answer")

    world.cursors.look = refuse  # type: ignore[method-assign]
    consumer.register()
    for _ in range(3):
        world.now += 2.0
        again_seconds = await world.lead(world.coordinator, world.cache)
    assert again_seconds is not None, "it is tried again"
    assert 0 < again_seconds <= 2.0
    assert not consumer.told
    world.phase = "Deleting"
    world.trace.append("the subscription is being deleted")
    for _ in range(3):
        world.now += 10.0
        again_seconds = await world.lead(world.coordinator, world.cache)
    assert again_seconds is None or again_seconds > 0
