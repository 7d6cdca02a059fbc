"""R38: the peer's cases of a topic's controller, nearly all prose: each is a test here that bears its name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from scalable_topics.layout import HashRange, Segment, SegmentState
from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.cluster.election import Election, LeaseTimes, Purpose, Write
from scalable_topics_operator.cluster.lease_record import LeaseRecord
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS
from scalable_topics_operator.load.sample import LoadSample, SegmentSample
from scalable_topics_operator.load.topic_load import SampledSegment, TopicLoad
from scalable_topics_operator.operations.context import DeclaredSubscription, TopicIntent
from scalable_topics_operator.operations.cursor_moves import Move, move_of
from scalable_topics_operator.operations.requests import SkipAllRequest, SplitRequest
from tests.conformance.peer_case import PeerCase, judge, load_cases
from tests.conformance.session_driver import Leader, persisted
from tests.simulation.auditor import SETTINGS
from tests.simulation.faults import Call, Fault, FaultKind, NoFaults
from tests.simulation.model_store import TopicObject
from tests.simulation.run import Run
from tests.simulation.world import World
from tests.unit.gateway.model_reconcile import ordered, reconciled, recorded
from tests.unit.gateway.replica import replica
from tests.unit.gateway.rest_world import TOPIC_URL, rest_world
from tests.unit.gateway.topics import created, split

CASES = {case.name: case for case in load_cases() if case.area == "Controller"}
_DAY_SECONDS = 86_400.0
_SUBSCRIPTION_URL = f"{TOPIC_URL}/subscriptions/sub-a"


class Unavailable(NoFaults):
    """Nobody answers the first call of a verb."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self.failed = False

    def at(self, call: Call) -> Fault | None:
        if self.failed or call.verb != self._verb:
            return None
        self.failed = True
        return Fault(FaultKind.UNAVAILABLE)


async def _topic(segments: int, **intent: Any) -> tuple[Run, TopicObject]:
    """A topic just made."""
    run = Run(World())
    body = run.world.declare(TopicIntent(initial_segments=segments, **intent))
    await run.settle()
    return run, body


async def _stored_stream(given: dict[str, Any]) -> dict[str, Any]:
    async with rest_world() as world, reconciled(world):
        assert (await world.ask("PUT", f"{_SUBSCRIPTION_URL}?type=STREAM")).status == 204
        assert len(world.kubernetes.all_of(SUBSCRIPTIONS)) == 1
        kind = (await world.ask("GET", _SUBSCRIPTION_URL)).body["type"]
    declared = {"sub-a": DeclaredSubscription(by_object=True)}
    run, _ = await _topic(given["segments"], subscriptions=declared)
    made = [call for call in run.world.calls if call.verb == "subscribe"]
    return {"type": kind, "segmentCursorCalls": len(made)}


async def _stored_queue(given: dict[str, Any]) -> dict[str, Any]:
    async with rest_world() as world, reconciled(world):
        assert (await world.ask("PUT", f"{_SUBSCRIPTION_URL}?type=QUEUE")).status == 204
        return {"type": (await world.ask("GET", _SUBSCRIPTION_URL)).body["type"]}


async def _registered(given: dict[str, Any]) -> dict[str, Any]:
    leader = Leader(given["segments"])
    leader.register("c1", "1")
    return {"assigned": leader.counts()["c1"], "persisted": _names(leader)}


async def _registered_again(given: dict[str, Any]) -> dict[str, Any]:
    leader = Leader(status=persisted(*given["persisted"]))
    leader.register("c1", "99")
    return {"assigned": leader.counts()["c1"], "persisted": _names(leader)}


async def _survived(given: dict[str, Any]) -> dict[str, Any]:
    (names,) = given["persisted"].values()
    return {"consumers": len(Leader(status=persisted(*names)).group.members)}


def _names(leader: Leader) -> list[str]:
    return [consumer["name"] for consumer in leader.recorded()["consumers"]]


async def _unknown_consumer(given: dict[str, Any], how: str) -> dict[str, Any]:
    elsewhere, leader = Leader(), Leader(status=persisted("other"))
    session, _ = elsewhere.register("c1", "1")
    assert session is not None
    if how == "leaves":
        leader.room.left(session)
    else:
        leader.room.lost(session, leader.now)
    leader.turn()
    assert leader.counts() == {"other": 4}
    return {"error": None}


async def _split_with_consumer(given: dict[str, Any]) -> dict[str, Any]:
    leader = Leader(given["segments"])
    _, connection = leader.register("c1", "1")
    leader.layout = leader.layout.split(0, now_ms=1)
    leader.group = leader.group.with_drained([0])
    leader.turn()
    told = {segment["id"] for segment in connection.frames[-1]["segments"]}
    return {"active": len(told & {segment.segment_id for segment in leader.layout.active})}


async def _not_found(given: dict[str, Any]) -> dict[str, Any]:
    async with rest_world() as world:
        answer = await world.ask("GET", "/admin/v2/scalable/acme/shop/nowhere")
    run = Run(World())
    await run.settle()
    made = [call for call in run.world.calls if call.verb == "create"]
    return {"error": "not-found" if answer.status == 404 else None, "createSegmentCalls": len(made)}


async def _initialised(given: dict[str, Any]) -> dict[str, Any]:
    run, body = await _topic(given["segments"])
    run.restart()
    await run.settle()
    layout = body.state.layout
    assert layout is not None
    election = Election("one", 1, LeaseTimes(15.0), "one:81", nobody_led_until_seconds=15.0)
    _look(election, {}, 0.0)
    return {"leader": 0 in election.held, "active": len(layout.active), "epoch": layout.epoch}


def _look(election: Election, leases: dict[str, LeaseRecord], now_seconds: float) -> None:
    """One look at the Leases, and what comes of it."""
    election.observe(list(leases.values()), now_seconds)
    for one in election.decide(now_seconds):
        _write(election, leases, one, now_seconds)


def _write(election: Election, leases: dict[str, LeaseRecord], one: Write, now_seconds: float) -> None:
    if one.purpose is Purpose.FORGET:
        leases.pop(one.lease.name, None)
        return
    leases[one.lease.name] = replace(one.lease, version=str(len(leases) + int(one.lease.version or 0) + 1))
    election.written(one, leases[one.lease.name], now_seconds)


async def _handed_over(given: dict[str, Any]) -> dict[str, Any]:
    leases: dict[str, LeaseRecord] = {}
    first = Election("one", 1, LeaseTimes(15.0), "one:81", nobody_led_until_seconds=15.0)
    second = Election("two", 1, LeaseTimes(15.0), "two:81")
    _look(first, leases, 0.0)
    _look(second, leases, 1.0)
    assert 0 in first.held
    assert 0 not in second.held
    for one in [*first.release([0]), *first.leave()]:
        _write(first, leases, one, 2.0)
    _look(second, leases, 3.0)
    return {"secondIsLeader": 0 in second.held}


async def _pruned_in_time(given: dict[str, Any]) -> dict[str, Any]:
    run, body = await _topic(1)
    run.world.broker.retention_minutes = given["retentionMin"]
    run.world.ask(body, SplitRequest(0))
    await run.settle()
    parent = run.world.name_of(body.state.layout.segment(0)) if body.state.layout is not None else ""
    pruned = []
    since_ms = 0
    for at_ms in given["sealedAgoMs"]:
        run.world.clock.advance((at_ms - since_ms) / 1000)
        since_ms = at_ms
        await run.settle()
        assert body.state.layout is not None
        pruned.append(0 not in body.state.layout.segments)
    run.world.clock.advance(SETTINGS.settle_window_seconds)
    await run.settle()
    load, config = TopicLoad(), AutoScaleConfig()
    for at_ms, names in ((1_000, {0: parent}), (2_000, {})):
        seen = LoadSample(at_ms, 0.0, {parent: SegmentSample(Rates(), {})})
        load.take(seen, {number: SampledSegment(name, 0) for number, name in names.items()}, config, 60.0)
    return {
        "pruned": pruned,
        "backingDeleted": parent not in run.world.broker.topics,
        "loadRecordDeleted": 0 not in load.records,
    }


async def _kept_for_ever(given: dict[str, Any]) -> dict[str, Any]:
    run, body = await _topic(1)
    run.world.broker.retention_minutes = given["retentionMin"]
    run.world.ask(body, SplitRequest(0))
    await run.settle()
    run.world.clock.advance(given["sealedAgoDays"] * _DAY_SECONDS)
    await run.settle()
    assert body.state.layout is not None
    return {"pruned": 0 not in body.state.layout.segments}


async def _broker_away(given: dict[str, Any]) -> dict[str, Any]:
    """The try fails, and is repeated: whoever asked is not told that all is done."""
    run, body = await _topic(2, subscriptions={"sub-a": DeclaredSubscription()})
    plan = run.world.plan = Unavailable("skip_all")
    name = run.world.ask(body, SkipAllRequest("sub-a"))
    await run.settle_once(body)
    error = given["segmentAnswers"] if plan.failed and name not in body.outcomes else None
    await run.settle()
    assert body.outcomes[name] == "Succeeded", "tried again"
    return {"error": error}


async def _cursor_missing(given: dict[str, Any]) -> dict[str, Any]:
    run, body = await _topic(2, subscriptions={"sub-a": DeclaredSubscription()})
    assert body.state.layout is not None
    lacks = run.world.topic_of(body.state.layout.segment(0))
    del lacks.cursors["sub-a"]
    name = run.world.ask(body, SkipAllRequest("sub-a"))
    await run.settle()
    assert "sub-a" not in lacks.cursors
    return {"error": None if body.outcomes[name] == "Succeeded" else body.outcomes[name]}


async def _moves(given: dict[str, Any]) -> dict[str, Any]:
    outcome: dict[str, Any] = {"skipAll": [], "seek": {}}
    for one in given["segments"]:
        sealed_at_ms = one.get("sealed", 0)
        state = SegmentState.SEALED if "sealed" in one else SegmentState.ACTIVE
        segment = Segment(
            one["id"], HashRange(0, 0xFFFF), state, created_at_ms=one["created"], sealed_at_ms=sealed_at_ms
        )
        match move_of(segment, given["seekMs"]):
            case Move.TO_THE_END:
                outcome["skipAll"].append(one["id"])
            case Move.TO_THE_BEGINNING:
                outcome["seek"][str(one["id"])] = 0
            case Move.TO_THE_TIME:
                outcome["seek"][str(one["id"])] = given["seekMs"]
    return outcome


async def _through_a_follower(given: dict[str, Any]) -> dict[str, Any]:
    async with rest_world(wait_seconds=0.05) as world, reconciled(world):
        async with replica(world.kube, cache=world.replica.cache, clusters=world.clusters) as follower:
            follower.known.leader = Peer("r-leader", world.replica.gateway.address, is_me=False)
            made = await world.ask("POST", f"{TOPIC_URL}/split/0", at=follower)
            passed_on = await world.ask("PUT", f"{_SUBSCRIPTION_URL}?type=QUEUE", at=follower)
            follower.known.leader = None
            refused = await world.ask("PUT", f"{_SUBSCRIPTION_URL}?type=QUEUE", at=follower)
        return {"split": made.status, "createSub": passed_on.status, "withoutLeader": refused.status}


async def _counted(given: dict[str, Any]) -> dict[str, Any]:
    async with rest_world() as world:
        world.change_topic(split(created(given["segments"]), 0))
        for name, consumers in given["subs"].items():
            ordered(world, name, {"consumers": [{"name": one, "registeredAt": ""} for one in consumers]})
            recorded(world, name)
        record = (await world.ask("GET", TOPIC_URL)).body
        shown = (await world.ask("GET", f"{TOPIC_URL}/subscriptions")).body
    states = [segment["state"] for segment in record["segments"].values()]
    return {
        "epoch": record["epoch"],
        "total": len(states),
        "active": states.count("ACTIVE"),
        "sealed": states.count("SEALED"),
        "subs": len(shown),
        "consumers": {one["subscription"]: len(one["assignment"]["consumers"]) for one in shown},
    }


Story = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
STORIES: dict[str, Story] = {
    "STREAM subscription is stored and put on every active segment": _stored_stream,
    "registration persists and assigns all": _registered,
    "registrations survive into the new leader": _survived,
    "no metadata, no creation": _not_found,
    "GC waits for retention, then prunes and cleans up": _pruned_in_time,
    "clear backlog surfaces 503": _broker_away,
    "split with a registered consumer": _split_with_consumer,
    "initialise wins leadership and loads the layout": _initialised,
    "seek tolerates 404 (no cursor there)": _cursor_missing,
    "disconnect on an unknown subscription is a no-op": lambda given: _unknown_consumer(given, "is lost"),
    "every write operation refuses a non-leader": _through_a_follower,
    "QUEUE subscription is stored": _stored_queue,
    "stats after a split with two subscriptions": _counted,
    "negative retention keeps for ever": _kept_for_ever,
    "leave on an unknown subscription is a no-op": lambda given: _unknown_consumer(given, "leaves"),
    "closing hands leadership over": _handed_over,
    "re-registration does not duplicate": _registered_again,
    "seek by time: three kinds of segment": _moves,
}


@pytest.mark.parametrize("case", CASES.values(), ids=str)
async def test_peer_case(case: PeerCase) -> None:
    """Hazard A2-25980g."""
    judge(case, await STORIES[case.name](case.given))


def test_no_story_is_left_over() -> None:
    assert STORIES.keys() == CASES.keys()


async def test_what_retention_holds_back_is_pruned_without_it() -> None:
    """So that the case of keeping for ever cannot pass because nothing is ever pruned."""
    assert await _kept_for_ever({"retentionMin": 0, "sealedAgoDays": 1}) == {"pruned": True}
