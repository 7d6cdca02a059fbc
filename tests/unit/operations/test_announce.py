"""How a seal is announced, and how what producers are in doubt about is found (R13, R15, R20)."""

from __future__ import annotations

import json
from dataclasses import replace

from scalable_topics_operator.operations.errors import BackendUnavailable
from scalable_topics_operator.operations.journal import Step
from scalable_topics_operator.operations.requests import SplitRequest
from tests.simulation.auditor import SETTINGS
from tests.simulation.faults import Call, Fault, FaultKind, NoFaults
from tests.simulation.run import Run
from tests.simulation.scripts import INTENT
from tests.simulation.world import World


class _Failing(NoFaults):
    """A verb fails so many times; what it asked for has happened all the same."""

    def __init__(self, verb: str, times: int, kind: FaultKind) -> None:
        self._verb = verb
        self._left = times
        self._kind = kind

    def at(self, call: Call) -> Fault | None:
        if call.verb != self._verb or not self._left:
            return None
        self._left -= 1
        return Fault(self._kind)


async def _created() -> Run:
    run = Run(World())
    run.world.declare(replace(INTENT, initial_segments=1))
    await run.settle()
    return run


def _messages(world: World) -> list[dict[str, object]]:
    return [json.loads(text) for topic in world.broker.topics.values() for text in topic.messages]


async def test_r13_an_announcement_whose_fate_is_unknown_is_made_again_under_a_higher_number() -> None:
    """Producers hold from the first time they see one, so the same again would not make them hold longer."""
    run = await _created()
    world = run.world
    body = world.objects[0]
    world.ask(body, SplitRequest(0))
    world.plan = _Failing("publish", 2, FaultKind.LOST_REPLY)
    await run.settle()
    assert body.state.layout is not None
    assert body.state.layout.epoch == 1
    steps = [one["step"] for one in _messages(world) if "announcement" in one]
    assert len(steps) >= 2
    assert len(set(steps)) == len(steps)


async def test_r13_nothing_is_sealed_while_it_cannot_be_announced() -> None:
    run = await _created()
    world = run.world
    body = world.objects[0]
    world.ask(body, SplitRequest(0))
    world.plan = _Failing("publish", 3, FaultKind.UNAVAILABLE)
    for _ in range(3):
        await run.settle_once(body)
        assert body.state.operation is not None
        assert body.state.operation.step is Step.ANNOUNCING
        assert not any(topic.terminated for topic in world.active_topics())
    await run.settle()
    assert body.state.operation is None


async def test_r13_a_refused_announcement_calls_the_change_off_before_anything_is_sealed() -> None:
    run = await _created()
    world = run.world
    body = world.objects[0]
    name = world.ask(body, SplitRequest(0))
    world.plan = _Failing("publish", 1, FaultKind.DENIED)
    await run.settle()
    assert body.outcomes[name] == "Failed"
    assert body.state.layout is not None
    assert (body.state.layout.epoch, len(body.state.layout.active)) == (0, 1)
    assert len(world.segment_topics()) == 1, "its children are gone"


async def test_r20_a_commit_is_not_undone_when_it_cannot_be_published_and_is_published_later() -> None:
    run = await _created()
    world = run.world
    body = world.objects[0]
    world.ask(body, SplitRequest(0))
    epoch_told_by = [one["epoch"] for one in _messages(world)]

    class _AfterTheSeal(_Failing):
        def at(self, call: Call) -> Fault | None:
            sealed = body.state.layout is not None and body.state.layout.epoch == 1
            return super().at(call) if sealed else None

    world.plan = _AfterTheSeal("publish", 2, FaultKind.UNAVAILABLE)
    await run.settle()
    assert body.state.layout is not None
    assert body.state.layout.epoch == 1
    assert epoch_told_by == [0]
    assert _messages(world)[-1]["epoch"] == 1


async def test_r15_producers_still_attached_are_told_what_they_stored() -> None:
    run = await _created()
    world = run.world
    body = world.objects[0]
    world.ask(body, SplitRequest(0))
    await run.settle()
    parent = world.topic_of(body.state.layout.segment(0)) if body.state.layout else None
    assert parent is not None
    assert body.state.settled == {0: {"deaf": parent.last_sequence_id("deaf")}}
    assert "listener" not in body.state.settled[0], "it had left, and has nothing in doubt"


async def test_r13_brokers_too_slow_for_the_hold_are_asked_again() -> None:
    run = await _created()
    world = run.world
    body = world.objects[0]
    world.ask(body, SplitRequest(0))

    class _Slow(NoFaults):
        def at(self, call: Call) -> Fault | None:
            if call.verb == "producers" and body.state.operation is not None and _slow:
                world.clock.advance(_slow.pop())
            return None

    _slow = [SETTINGS.hold_seconds]
    world.plan = _Slow()
    await run.settle()
    assert any(BackendUnavailable.__name__ in line or "took too long" in line for line in world.trace)
    assert body.state.layout is not None
    assert body.state.layout.epoch == 1
