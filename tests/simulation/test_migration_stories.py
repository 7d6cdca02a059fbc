"""Stories of an ordinary topic whose migration is called off, and tried again, that must end in one particular way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from scalable_topics.layout import layout_topic_name
from scalable_topics_operator.operations.journal import Step
from tests.simulation.faults import WHEN_QUIET, Call, Fault, FaultKind, NoFaults
from tests.simulation.model_backend import OLD
from tests.simulation.model_store import TopicObject
from tests.simulation.run import Run, check_end
from tests.simulation.scripts import INTENT
from tests.simulation.world import TOPIC, World


class InTurn(NoFaults):
    """Faults that come one after the other, each at the first call after the one before that is meant."""

    def __init__(self, *faults: tuple[Callable[[Call], bool], Fault]) -> None:
        self._left = list(faults)

    def at(self, call: Call) -> Fault | None:
        if not self._left or not self._left[0][0](call):
            return None
        return self._left.pop(0)[1]


def _is(verb: str, target: str = "") -> Callable[[Call], bool]:
    return lambda call: call.verb == verb and target in call.target


def _declared(plan: NoFaults) -> tuple[Run, TopicObject]:
    """A topic of two partitions that is to be migrated."""
    run = Run(World())
    run.world.make_ordinary(2)
    body = run.world.declare(replace(INTENT, initial_segments=1, migrates=True))
    run.world.plan = plan
    return run, body


def _verbs(world: World) -> Sequence[str]:
    return [call.verb for call in world.calls]


async def test_r8_whoever_was_deposed_undoes_no_later_migration() -> None:
    """What the later one has claimed is the same object's, and the layout topic has the same name."""
    run, body = _declared(
        InTurn(
            (_is("create"), Fault(FaultKind.CRASH_BEFORE)),
            (_is("record"), Fault(FaultKind.DEPOSED, WHEN_QUIET)),
        )
    )
    await run.settle()
    assert body.state.layout is not None
    await run.calm()
    assert body.state.migrated_from is not None
    assert _verbs(run.world).count("let_go") == 1, "by the one that took over"
    check_end(run.world)


async def _called_off() -> tuple[Run, TopicObject]:
    """A migration that clients were told of and that was called off; its layout topic is gone."""
    run, body = _declared(InTurn((_is("commit", Step.SEALING), Fault(FaultKind.CRASH_BEFORE))))
    while not body.state.actions:
        await run.settle_once(body)
    run.world.listener.follow()
    assert run.world.listener.kept is not None
    assert layout_topic_name(TOPIC) not in run.world.broker.topics
    return run, body


async def test_r12_who_knows_a_migration_that_was_called_off_follows_the_next_one_of_a_lost_status() -> None:
    """Nothing is left that tells what clients know."""
    run, body = await _called_off()
    run.world.wipe(body)
    await run.settle()
    assert body.state.layout is not None
    await run.calm()
    check_end(run.world)


async def test_r12_who_knows_a_migration_that_was_called_off_follows_what_is_made_under_the_name() -> None:
    """Somebody deletes the ordinary topic and wants a new one in its place."""
    run, body = await _called_off()
    world = run.world
    for name in world.ordinary:
        world.drop(name)
    world.broker.partitioned.clear()
    world.ordinary = []
    body.intent = replace(body.intent, migrates=False)
    await run.settle()
    assert body.state.layout is not None
    assert body.state.migrated_from is None
    await run.calm()
    check_end(world)


async def test_r1_what_an_object_left_behind_that_was_taken_away_keeps_nobody_from_migrating() -> None:
    """Somebody takes its finalizers away in the midst of its migration, and declares the topic anew (hazard A1-26048).
    The segments that it made are no other installation's, which would have come first.
    """
    run, body = _declared(InTurn((_is("create_layout"), Fault(FaultKind.CRASH_BEFORE))))
    await run.settle_once(body)
    assert run.world.segment_topics()
    body.gone = True
    again = run.world.declare(body.intent)
    await run.settle()
    assert again.state.layout is not None
    await run.calm()
    check_end(run.world)


async def test_r11_segments_that_were_written_to_are_taken_back_though_the_seal_came_undone() -> None:
    """Hazard A1-26680, and the claim was lost with the status: the topic looks like one that was never migrated."""
    run, body = _declared(NoFaults())
    world = run.world
    await run.settle()
    layout = body.state.layout
    assert layout is not None
    assert any(world.topic_of(segment).entries for segment in layout.active)
    for name in world.ordinary:
        world.broker.reopen(name)
    shared = world.broker.partitioned[TOPIC.persistent]
    shared.claim = shared.migrated_from = None
    world.wipe(body)
    run.restart()
    await run.settle()
    assert body.state.layout is not None
    assert body.state.layout.segments.keys() == layout.segments.keys()
    await run.calm()
    check_end(world)


async def test_r11_segments_of_a_migration_that_was_called_off_are_not_taken_back_whoever_wrote_to_them() -> None:
    """The status tells of it: it would seal what clients are attached to who do not know scalable topics."""

    class Intruder(NoFaults):
        """Somebody who does not know scalable topics comes in the midst of it, and writes to a segment by its name."""

        def at(self, call: Call) -> Fault | None:
            if call.verb == "legacy_clients" and not world.broker.topics[world.ordinary[0]].producers & {OLD}:
                world.broker.attach(world.ordinary[0], OLD)
                world.broker.produce(world.segment_topics()[0].name)
            return None

    run, body = _declared(Intruder())
    world = run.world
    await run.settle()
    assert [topic.backlog("declared") for topic in world.segment_topics()] == [1]
    assert len(body.state.actions) == 1
    assert body.standing.startswith("MigrationRefused: 1 connections of clients that do not know scalable topics")
    assert not any(world.broker.topics[name].terminated for name in world.ordinary)
