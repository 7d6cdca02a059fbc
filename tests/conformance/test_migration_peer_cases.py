"""R38: the peer's cases of migrations, but for the layout: each is a test here that bears its name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from scalable_topics_operator.gateway.reason_statuses import status_of
from scalable_topics_operator.operations.context import TopicIntent
from scalable_topics_operator.operations.errors import MigrationRefused
from scalable_topics_operator.operations.journal import Request
from scalable_topics_operator.operations.migrate import open_migration
from tests.conformance.peer_case import PeerCase, judge, load_cases
from tests.simulation.clients import DEAF
from tests.simulation.model_backend import OLD
from tests.simulation.model_store import TopicObject
from tests.simulation.operator_process import OperatorProcess
from tests.simulation.run import Run
from tests.simulation.world import HOME, TOPIC, World

CASES = {case.name: case for case in load_cases() if case.area == "Migration" and not case.machine}


def _world(partitions: int | None, old_clients: int = 0) -> tuple[World, TopicObject]:
    """A ScalableTopic that is to be migrated, and the ordinary topic, if there is one; nobody uses it by himself."""
    world = World()
    world.writing = False
    if partitions is not None:
        world.make_ordinary(partitions)
        for number in range(old_clients):
            world.broker.attach(world.ordinary[0], f"{OLD}{number}")
    return world, world.declare(TopicIntent(migrates=True))


async def _answered(world: World, body: TopicObject, *, force: bool = False) -> dict[str, Any]:
    """What whoever asks for the migration is told, and what is recorded then."""
    process = OperatorProcess(world, "p1", HOME, 1)
    try:
        if force:
            ctx = process._context(body)
            survey = await ctx.backend.survey(TOPIC)
            assert survey is not None
            await open_migration(ctx, survey, Request("SegmentOperation", "migrate", "m"), force=True)
        await process.reconcile(body)
    except MigrationRefused as refused:
        return {"status": status_of(refused.reason), "metadataWritten": "layout" in body.status}
    layout = body.state.layout
    assert layout is not None
    return {
        "status": 204,
        "total": len(layout.segments),
        "sealedLegacy": [segment.segment_id for segment in layout.sealed if segment.is_legacy],
        "active": [segment.segment_id for segment in layout.active],
    }


async def _missing(given: dict[str, Any]) -> dict[str, Any]:
    assert not given["exists"]
    return await _answered(*_world(None))


async def _old_clients(given: dict[str, Any]) -> dict[str, Any]:
    return await _answered(*_world(0, given["legacyConnections"]), force=given["force"])


async def _not_partitioned(given: dict[str, Any]) -> dict[str, Any]:
    return await _answered(*_world(given["partitions"]))


async def _taken(given: dict[str, Any]) -> dict[str, Any]:
    """The name is a claim, which takes no messages; clients cannot make what is there."""
    assert given["scalableExists"]
    run = Run(World())
    run.world.declare(TopicIntent(initial_segments=1))
    await run.settle()
    assert run.world.broker.auto_create
    run.world.broker.connect(TOPIC.persistent)
    return {"autoCreateAllowed": run.world.broker.produce(TOPIC.persistent)}


async def _ridden_through(given: dict[str, Any]) -> dict[str, Any]:
    world, body = _world(given["partitions"])
    for name in world.ordinary:
        world.broker.create_subscription(name, "sub", latest=False)
    for number in range(20):
        assert world.broker.produce(world.ordinary[number % len(world.ordinary)], DEAF)
    assert (await _answered(world, body))["status"] == 204
    topics = [topic.name for topic in world.active_topics()]
    for number in range(20):
        assert world.broker.produce(topics[number % len(topics)], DEAF)
    return {"received": sum(world.broker.acknowledge(name, "sub") for name in [*world.ordinary, *topics])}


STORIES: dict[str, Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]] = {
    "missing source": _missing,
    "old-client connection without force": _old_clients,
    "old-client connection with force": _old_clients,
    "non-partitioned source": _not_partitioned,
    "name taken by a scalable topic: no auto-create of the plain one": _taken,
    "producer rides through: 20 before + 20 after all consumed": _ridden_through,
}


@pytest.mark.parametrize("case", CASES.values(), ids=str)
async def test_peer_case(case: PeerCase) -> None:
    judge(case, await STORIES[case.name](case.given))


def test_no_story_is_left_over() -> None:
    assert STORIES.keys() == CASES.keys()
