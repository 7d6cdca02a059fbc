"""Work that an operator is killed in the middle of: how it is asked for, when it is done, what must then be true."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from scalable_topics_operator.cluster.kube_client import Body, Resource
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from tests.support import manifests
from tests.support.crash_steps import STEPS, Death, Kind, Server, Step
from tests.support.fault_proxy import FaultProxy, Hold
from tests.support.proxied_operator import ProxiedOperator
from tests.support.pulsar_client import PulsarClient
from tests.support.waiting import eventually
from tests.support.world import World, condition, has_ended, is_ready, phase
from tests.support.world_making import random_name

DECLARED, FOUND, MORE = "declared", "found", "more"
_MESSAGES = ("m0", "m1", "m2")
_CONFLICT = 409
# Calls that are held without an answer make a connection share its workers sparingly: others wait their turn.
_ARRIVAL_SECONDS = 150.0
_DONE_SECONDS = 120.0
_EVERY_SECONDS = 1.0
_PARTITIONS = 2
_INITIAL_SEGMENTS = {Kind.SPLIT: 1, Kind.REBUCKET: 1, Kind.ROLLBACK: 1, Kind.PRUNE: 1}
_REQUESTS: dict[Kind, dict[str, Any]] = {
    Kind.SPLIT: {"kind": "Split", "segment": 0},
    Kind.ROLLBACK: {"kind": "Split", "segment": 0},
    Kind.MERGE: {"kind": "Merge", "segments": [0, 1]},
    Kind.REBUCKET: {"kind": "Rebucket", "segment": 0, "buckets": 8},
    Kind.PRUNE: {"kind": "Prune"},
    Kind.SEEK: {"kind": "Seek", "subscription": DECLARED, "timestamp": "2026-01-01T00:00:00Z"},
    Kind.SKIP_ALL: {"kind": "SkipAll", "subscription": DECLARED},
    Kind.RESTORE: {"kind": "Restore", "subscription": DECLARED},
}
_ACTIVE_RANGES = {
    Kind.SPLIT: ["[0000, 7fff]", "[8000, ffff]"],
    Kind.ROLLBACK: ["[0000, 7fff]", "[8000, ffff]"],
    Kind.PRUNE: ["[0000, 7fff]", "[8000, ffff]"],
    Kind.MERGE: ["[0000, ffff]"],
    Kind.REBUCKET: ["[0000, ffff]"],
    Kind.SEEK: ["[0000, 7fff]", "[8000, ffff]"],
    Kind.SKIP_ALL: ["[0000, 7fff]", "[8000, ffff]"],
    Kind.RESTORE: ["[0000, 7fff]", "[8000, ffff]"],
}
# Messages of each segment that are left to a subscription at last.
_LEFT = {
    Kind.SEEK: {DECLARED: len(_MESSAGES), FOUND: len(_MESSAGES)},
    Kind.SKIP_ALL: {DECLARED: 0, FOUND: len(_MESSAGES)},
    Kind.RESTORE: {DECLARED: len(_MESSAGES) - 1, FOUND: len(_MESSAGES)},
}
_MADE_SEGMENT = re.compile(r"-segment-[0-9a-f]{4}-[0-9a-f]{4}-(\d+)$")


async def survive(
    bench: ProxiedOperator, steps: Sequence[tuple[Kind, Step]], death: Death, *, late_seconds: float = 0.0
) -> None:
    """Kill the operator once while it is at all of these steps, each on a topic of its own.

    Starts another and checks that all the work is done as if nothing had been. Steps of a roll-back are reached
    through an earlier death, so that they come alone. What arrives late does so when the work has been done, and no
    sooner than `late_seconds` after the death.
    """
    cases = [Case(Scenario.of(kind, bench), step) for kind, step in steps]
    rolling_back = {kind for kind, _ in steps} == {Kind.ROLLBACK}
    await bench.start()
    await _each(cases, lambda case: case.scenario.prepare())
    if rolling_back:
        before_the_seal = next(step for step in STEPS[Kind.SPLIT] if step.name == "last cursor made")
        await _each(cases, lambda case: case.arm(Death.AFTER, before_the_seal))
        await _each(cases, lambda case: case.scenario.ask())
        await _kill_at(bench, cases)
        for case in cases:
            case.hold.released.set()
    await _each(cases, lambda case: case.arm(death, case.step))
    if rolling_back:
        await bench.start()
    else:
        await _each(cases, lambda case: case.scenario.ask())
    await _kill_at(bench, cases)
    for case in cases:
        if death is Death.BEFORE:
            case.hold.drop()
        elif death is Death.AFTER:
            case.hold.released.set()
    died_at = time.monotonic()
    await bench.start()
    await _each(cases, lambda case: case.scenario.until_done())
    if death is Death.LATE:
        await asyncio.sleep(max(0.0, died_at + late_seconds - time.monotonic()))
        await _each(cases, _arrive_late)
    await _each(cases, lambda case: case.scenario.verify())


async def endure(
    bench: ProxiedOperator, steps: Sequence[tuple[Kind, Step]], disturb: Callable[[], Awaitable[None]]
) -> None:
    """Disturb the servers once while the operator is at all of these steps, each on a topic of its own.

    The held writes go on when `disturb` returns. Checks that all the work is done as if nothing had been.
    """
    cases = [Case(Scenario.of(kind, bench), step) for kind, step in steps]
    await bench.start()
    process = bench.operator.pid
    await _each(cases, lambda case: case.scenario.prepare())
    await _each(cases, lambda case: case.arm(Death.BEFORE, case.step))
    await _each(cases, lambda case: case.scenario.ask())
    await _each(cases, lambda case: case.reach())
    await disturb()
    for case in cases:
        case.hold.released.set()
    await _each(cases, lambda case: case.scenario.until_done())
    await _each(cases, lambda case: case.scenario.verify())
    assert bench.operator.pid == process, "nobody helped"


@dataclass(slots=True)
class Case:
    """A scenario and the step at which the operator dies in it."""

    scenario: Scenario
    step: Step
    hold: Hold = field(init=False)

    async def arm(self, death: Death, step: Step) -> None:
        """Hold a step's call when it comes."""
        self.hold = self.scenario.hold(step, death)

    async def reach(self) -> None:
        """Wait until the operator has come to the held call."""
        try:
            await asyncio.wait_for(self.hold.arrived.wait(), _ARRIVAL_SECONDS)
        except TimeoutError:
            log = self.scenario.bench.operator.log_text()[-2000:]
            raise AssertionError(f"not reached within {_ARRIVAL_SECONDS:.0f} s\n{log}") from None


async def _kill_at(bench: ProxiedOperator, cases: Sequence[Case]) -> None:
    """Kill the operator once every call that is to be held has come."""
    await _each(cases, lambda case: case.reach())
    bench.operator.kill()
    for case in cases:
        case.hold.orphaned = True


async def _arrive_late(case: Case) -> None:
    """Let a call of the dead process reach its server; a status it would write is long another one."""
    case.hold.released.set()
    await case.hold.answered.wait()
    call = case.hold.call
    assert call is not None
    is_status = case.step.server is Server.KUBERNETES and call.method == "PATCH"
    if is_status and case.scenario.kind is not Kind.DELETE:
        assert call.status == _CONFLICT, f"R8: the write of a dead process was taken: {call}"


async def _each(cases: Sequence[Case], act: Callable[[Case], Awaitable[None]]) -> None:
    """Do something in all cases at once, and say in which of them it went wrong."""
    results = await asyncio.gather(*map(act, cases), return_exceptions=True)
    errors = []
    for case, result in zip(cases, results, strict=True):
        if isinstance(result, Exception):
            result.add_note(f"{case.scenario.kind}, {case.step.name}")
            errors.append(result)
        elif isinstance(result, BaseException):
            raise result
    if errors:
        raise ExceptionGroup("not all of them survived", errors)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One piece of work on a topic of its own.

    Args:
        kind: which.
        bench: the operator and its proxies.
        name: of the ScalableTopic and, in the world's Pulsar namespace, of the topic.
    """

    kind: Kind
    bench: ProxiedOperator
    name: str

    @classmethod
    def of(cls, kind: Kind, bench: ProxiedOperator) -> Scenario:
        """A scenario under a name nobody else has."""
        return cls(kind, bench, random_name(kind.value))

    @property
    def world(self) -> World:
        """Sees the servers directly."""
        return self.bench.world

    @property
    def operation_name(self) -> str:
        """Name of the SegmentOperation it is about."""
        return f"{self.name}-op"

    async def prepare(self) -> None:
        """Bring a topic to where the work can be asked for."""
        if self.kind is Kind.CREATE:
            return
        if self.kind is Kind.MIGRATE:
            await self._make_ordinary()
            return
        await self.world.apply(self._topic_manifest())
        await self._until(TOPICS, self.name, is_ready, "is Ready")
        for segment in await self.world.segment_topics(self.name):
            await self.world.pulsar.create_subscription(segment, FOUND)
            if self.kind in _LEFT:
                with PulsarClient(self.bench.pulsar.service_url, self.bench.pulsar.superuser_token) as client:
                    await client.send(segment, *_MESSAGES)
            if self.kind in (Kind.SEEK, Kind.RESTORE):
                await self.world.pulsar.skip_all(segment, DECLARED)

    async def ask(self) -> None:
        """Ask for the work."""
        match self.kind:
            case Kind.CREATE | Kind.MIGRATE:
                await self.world.apply(self._topic_manifest())
            case Kind.SUBSCRIBE:
                await self.world.change(TOPICS, self.name, {"subscriptions": [{"name": DECLARED}, {"name": MORE}]})
            case Kind.UNSUBSCRIBE:
                await self.world.change(TOPICS, self.name, {"subscriptions": [{"name": DECLARED}]})
            case Kind.DELETE:
                await self.world.delete(TOPICS, self.name)
            case _:
                if self.kind is Kind.PRUNE:
                    # Right before the prune, so that the prune is not overtaken by the operator's own.
                    split = manifests.operation(f"a-split-of-{self.name}", self.name, "Split", segment=0)
                    await self.world.apply(split)
                request = dict(_REQUESTS[self.kind])
                if self.kind is Kind.RESTORE:
                    request["positions"] = await self._first_messages()
                await self.world.apply(
                    manifests.operation(self.operation_name, self.name, request.pop("kind"), **request)
                )

    async def _make_ordinary(self) -> None:
        """An ordinary topic of two partitions, of which nobody has read anything."""
        name = self.world.topic_name(self.name).persistent
        await self.world.pulsar.create_partitioned(name, _PARTITIONS)
        with PulsarClient(self.bench.pulsar.service_url, self.bench.pulsar.superuser_token) as client:
            for partition in self._partitions():
                for subscription in (DECLARED, FOUND):
                    await self.world.pulsar.create_subscription(partition, subscription)
                await client.send(partition, *_MESSAGES)

    def _partitions(self) -> list[str]:
        name = self.world.topic_name(self.name).persistent
        return [f"{name}-partition-{number}" for number in range(_PARTITIONS)]

    async def _first_messages(self) -> list[dict[str, int]]:
        """The position of the first message of each segment."""
        names = await self.world.segment_names(self.name, self.name)
        return [
            {
                "segment": segment_id,
                "ledgerId": (await self.world.pulsar.internal(topic))["ledgers"][0]["ledgerId"],
                "entryId": 0,
            }
            for segment_id, topic in names.items()
        ]

    def hold(self, step: Step, death: Death) -> Hold:
        """Hold the step's call when it comes."""
        step = step.for_topic(self.name)
        return self._proxy(step.server).hold(
            step.method, step.path, body=step.body, after=death is Death.AFTER, skip=step.number
        )

    async def until_done(self) -> None:
        """Wait until the work is done."""
        if self.kind is Kind.DELETE:
            await self.world.until_gone(TOPICS, self.name, within_seconds=_DONE_SECONDS)
            return
        if self.kind in _REQUESTS:
            body = await self._until(SEGMENT_OPERATIONS, self.operation_name, has_ended, "has ended")
            assert phase(body) == "Succeeded", body["status"]
        await self._until(TOPICS, self.name, _is_done, "is Ready and has nothing left to delete")

    async def verify(self) -> None:
        """Check that the work was done once and completely, and that nothing is left of what died."""
        if self.kind is Kind.DELETE:
            await eventually(self._nothing_left, what=f"all topics of {self.name} are gone")
            return
        await eventually(
            self._disagreement,
            lambda why: not why,
            what=f"brokers and record of {self.name} agree",
            every_seconds=_EVERY_SECONDS,
        )
        body = await self.world.get(TOPICS, self.name)
        assert is_ready(body)
        assert condition(body, "Stalled")["status"] == "False"
        self._check_ids()
        if self.kind in _REQUESTS:
            await self._check_operation(body)
        if self.kind is Kind.MIGRATE:
            await self._check_migrated(body)
        await self.world.delete(TOPICS, self.name)

    def steps_of(self, kind: Kind) -> list[Step]:
        """The steps of a kind for this topic."""
        return [step.for_topic(self.name) for step in STEPS[kind]]

    def _topic_manifest(self) -> manifests.Manifest:
        subscriptions: list[dict[str, str]] = [{"name": DECLARED}]
        if self.kind is Kind.UNSUBSCRIBE:
            subscriptions.append({"name": MORE, "deletionPolicy": "Delete"})
        manifest = manifests.topic(
            self.name,
            f"{self.world.pulsar_namespace}/{self.name}",
            initial=_INITIAL_SEGMENTS.get(self.kind, 2),
            permissions=[{"role": "client", "actions": ["consume", "produce"]}],
            deletionPolicy="Delete" if self.kind is Kind.DELETE else "Retain",
        )
        manifest["spec"]["subscriptions"] = subscriptions
        if self.kind is Kind.MIGRATE:
            manifest["spec"]["migrateFrom"] = {"topic": manifest["spec"]["topic"]}
        return manifest

    async def _until(self, resource: Resource, name: str, holds: Callable[[Body], bool], what: str) -> Body:
        # Many wait together: they must not keep the API server busy.
        return await eventually(
            lambda: self.world.get(resource, name),
            holds,
            what=f"{resource.kind} {name} {what}",
            within_seconds=_DONE_SECONDS,
            every_seconds=_EVERY_SECONDS,
        )

    def _proxy(self, server: Server) -> FaultProxy:
        return self.bench.kube if server is Server.KUBERNETES else self.bench.admin

    async def _disagreement(self) -> str:
        wanted = {DECLARED} if self.kind is Kind.CREATE else {DECLARED, FOUND}
        if self.kind is Kind.SUBSCRIBE:
            wanted |= {MORE}
        try:
            await self.world.assert_brokers_agree(self.name, self.name, wanted)
            if self.kind is Kind.UNSUBSCRIBE:
                for segment in await self.world.segment_topics(self.name):
                    assert MORE not in await self.world.pulsar.subscriptions(segment)
            for segment in await self.world.segment_topics(self.name) if self.kind in _LEFT else ():
                found = (await self.world.pulsar.stats(segment))["subscriptions"]
                assert {name: found[name]["msgBacklog"] for name in found} == _LEFT[self.kind], segment
        except (AssertionError, TimeoutError) as difference:
            # A broker that topics have just come to may leave a question unanswered.
            return str(difference) or f"they differ: {type(difference).__name__}"
        return ""

    async def _nothing_left(self) -> bool:
        claim = self.world.topic_name(self.name).persistent
        return not await self.world.segment_topics(self.name) and not await self.world.pulsar.exists(claim)

    def _check_ids(self) -> None:
        """R9: no id of a segment was ever used by two operations."""
        users: dict[int, set[str]] = defaultdict(set)
        for call in self.bench.admin.writes():
            made = _MADE_SEGMENT.search(call.path) if f"/{self.name}-segment-" in call.path else None
            if made and call.method == "PUT":
                record = json.loads(json.loads(call.body)["scalabletopics.io/segment"])
                users[int(made[1])].add(record["operation"])
        assert users
        assert all(len(operations) == 1 for operations in users.values()), dict(users)

    async def _check_migrated(self, topic: Body) -> None:
        """Hazard B17: what was is sealed with all it held, and there is one set of segments that take writes."""
        layout = await self.world.layout(self.name)
        assert [segment.topic for segment in layout.sealed] == self._partitions()
        assert [str(segment.hash_range) for segment in layout.active] == ["[0000, 7fff]", "[8000, ffff]"]
        assert topic["status"]["migratedFrom"]["partitions"] == _PARTITIONS
        for partition in self._partitions():
            assert await self.world.pulsar.terminated(partition)
            found = (await self.world.pulsar.stats(partition))["subscriptions"]
            left = {name: found[name]["msgBacklog"] for name in (DECLARED, FOUND)}
            assert left == dict.fromkeys((DECLARED, FOUND), len(_MESSAGES)), partition

    async def _check_operation(self, topic: dict[str, Any]) -> None:
        """Hazard C29: it was done once, under the ids that its journal had reserved, and nothing was done besides."""
        operation = await self.world.get(SEGMENT_OPERATIONS, self.operation_name)
        about_it = [action for action in topic["status"]["actions"] if action["request"]["name"] == self.operation_name]
        done = [action for action in about_it if action["result"] == "Succeeded"]
        assert [action["id"] for action in done] == [operation["status"]["operationId"]]
        assert done[0]["children"] == operation["status"].get("children", [])
        assert {action["result"] for action in about_it} <= {"Succeeded", "RolledBack"}
        layout = await self.world.layout(self.name)
        given_up = {child for action in about_it if action["result"] == "RolledBack" for child in action["children"]}
        assert not given_up & layout.segments.keys(), "R9: an id that was given up is in use"
        assert [str(segment.hash_range) for segment in layout.active] == _ACTIVE_RANGES[self.kind]
        if self.kind is Kind.REBUCKET:
            assert layout.active[0].buckets == 8


def _is_done(topic: Body) -> bool:
    return is_ready(topic) and not topic["status"].get("deleting")
