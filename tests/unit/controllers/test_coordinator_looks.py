"""When a leader looks whether sealed segments are read to their ends (R17), in the world of the simulation."""

from __future__ import annotations

import pytest

from scalable_topics_operator.controllers.subscription_status import read_group
from tests.simulation.coordinated_world import CoordinatedWorld, ModelConsumer


async def _reading(segments: int = 1) -> tuple[CoordinatedWorld, ModelConsumer]:
    """A consumer that reads everything there is, and of that a segment that was just sealed."""
    world = next(
        found for seed in range(50) if len((found := CoordinatedWorld(seed)).cursors.layout.active) == segments
    )
    world.server.is_calm = world.cursors.is_calm = True
    consumer = world.consumers[0]
    consumer.register()
    await _lead(world)
    while consumer.frames:
        consumer.listen()
    consumer.attach()
    layout = world.cursors.layout.split(0, now_ms=1)
    world.cursors.layout = layout.with_sealed_position(0, "0:9")
    await _lead(world)
    return world, consumer


async def _lead(world: CoordinatedWorld) -> float | None:
    """A turn of the leader, whose writes are more than a second apart."""
    world.now += 1.5
    return await world.lead(world.coordinator, world.cache)


async def test_a_segment_that_is_read_at_last_is_seen_at_once_however_long_nothing_came_of_looking() -> None:
    """Hazard A3-25642c."""
    world, consumer = await _reading()
    pauses = [0.0]
    for _ in range(8):
        world.now += pauses[-1]
        again_seconds = await _lead(world)
        assert again_seconds is not None
        pauses.append(again_seconds)
    assert pauses[-1] > 30, "later and later while nothing is said"
    assert max(pauses) <= 60
    consumer.read()
    again_seconds = await _lead(world)
    assert consumer.frames[-1]["type"] == "assignment"
    assert {segment["id"] for segment in consumer.frames[-1]["segments"]} == {1, 2}
    assert again_seconds is None, "nothing sealed is left to look at"


@pytest.mark.parametrize("how", ["leaves", "stays away"])
async def test_nobody_looks_for_consumers_that_are_gone(how: str) -> None:
    """Hazard A3-25642d."""
    world, consumer = await _reading()
    session = consumer.session
    assert session is not None
    assert await _lead(world) is not None
    consumer.start_anew()
    room = world.coordinator.room(world.key)
    if how == "leaves":
        room.left(session)
    else:
        room.lost(session, world.now)
        await _lead(world)
        world.now += 60.0
    assert await _lead(world) is None
    assert read_group(world.cached()["status"]).members == {}
