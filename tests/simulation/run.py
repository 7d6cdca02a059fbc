"""Runs a world until nothing moves any more, and judges what is left."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from scalable_topics.layout import (
    LayoutError,
    SegmentLayout,
    classic_segment_name,
    layout_topic_name,
    parse_classic_segment_name,
)
from scalable_topics_operator.cluster.kube_errors import KubeError
from scalable_topics_operator.cluster.status_store import StaleStatus
from scalable_topics_operator.operations.errors import BackendRefused, BackendUnavailable, NotYet
from scalable_topics_operator.operations.layout_message import content_of
from scalable_topics_operator.operations.protocols import Position
from scalable_topics_operator.operations.rebuild import Witness, legacy_record, rebuild
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase
from tests.simulation.auditor import Violation, message_of, tiling_problem
from tests.simulation.faults import Crash, NoFaults
from tests.simulation.model_backend import OLD
from tests.simulation.model_store import TopicObject
from tests.simulation.operator_process import DRIFT_SECONDS, OperatorProcess
from tests.simulation.world import TOPIC, World

_ROUNDS = 80
_SAME_REFUSALS = 3
_BACK_OFF_SECONDS = 10
_CALM_ROUNDS = 8


class Run:
    """Operator processes over one world, one for each installation, replaced whenever it dies."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._processes: dict[str, OperatorProcess] = {}
        self._started = 0
        self._deposed_ones: list[asyncio.Task[None]] = []

    def restart(self) -> None:
        """End every process; the next ones know only what is recorded."""
        self._processes.clear()

    async def settle(self) -> None:
        """Reconcile until a whole round changes nothing and nothing is left to do, faults included."""
        refusals = 0
        for _ in range(_ROUNDS):
            before = self.world.pulse()
            outcomes = [await self._reconcile(body) for body in self.world.objects if not body.gone]
            self._raise_violation()
            still = before == self.world.pulse() and "retry" not in outcomes
            refusals = refusals + 1 if still and "refused" in outcomes else 0
            if still and ("refused" not in outcomes or refusals >= _SAME_REFUSALS):
                if not self.world.land(at_the_end=False):
                    self._check_told()
                    return
                self._raise_violation()
        raise Violation(f"nothing settles in {_ROUNDS} rounds: {[body.standing for body in self.world.objects]}")

    async def settle_once(self, body: TopicObject) -> None:
        """Reconcile one object once."""
        await self._reconcile(body)
        self._raise_violation()

    async def calm(self) -> None:
        """Let everything under way arrive, and every periodic check run, with nothing going wrong any more. Clients
        that do not know scalable topics leave.
        """
        self.world.plan = NoFaults()
        self.world.land(at_the_end=True)
        await self._let_deposed_end()
        self.world.trace.append("-- no faults from here on")
        for topic in self.world.broker.topics.values():
            topic.producers = {name for name in topic.producers if not name.startswith(OLD)}
        for _ in range(_CALM_ROUNDS):
            before = self.world.pulse()
            self.world.clock.advance(DRIFT_SECONDS + 1)
            await self.settle()
            if before == self.world.pulse():
                return

    async def _reconcile(self, body: TopicObject) -> str:
        process = self._processes.get(body.installation)
        if process is None:
            self._started += 1
            process = OperatorProcess(self.world, f"p{self._started}", body.installation, self._started)
            self._processes[body.installation] = process
        body.standing = ""
        try:
            if await self._deposed(process.reconcile(body)):
                del self._processes[body.installation]
                self.world.clock.advance(15)
                return "retry"
        except Crash:
            del self._processes[body.installation]
            self.world.clock.advance(15)
        except (BackendUnavailable, KubeError, StaleStatus) as error:
            # Longer than producers hold: whatever was announced before is not any more.
            self.world.clock.advance(_BACK_OFF_SECONDS)
            self.world.trace.append(f"   retried: {error}")
        except NotYet as waiting:
            self.world.clock.advance(_BACK_OFF_SECONDS)
            self.world.press_readers()
            self.world.trace.append(f"   waits: {waiting}")
        except (BackendRefused, LayoutError) as error:
            body.standing = f"{type(error).__name__}: {error}"
            self.world.clock.advance(30)
            self.world.trace.append(f"   stuck: {body.standing}")
            return "refused"
        else:
            return "done"
        return "retry"

    async def _deposed(self, reconcile: Coroutine[Any, Any, None]) -> bool:
        """Run a reconcile to its end, or until another process takes over; it then goes on by itself."""
        self.world.deposed = asyncio.Event()
        working = asyncio.create_task(reconcile)
        taken_over = asyncio.create_task(self.world.deposed.wait())
        await asyncio.wait({working, taken_over}, return_when=asyncio.FIRST_COMPLETED)
        self.world.deposed = None
        if working.done():
            taken_over.cancel()
            await working
            return False
        working.add_done_callback(_heard)
        self._deposed_ones.append(working)
        return True

    async def _let_deposed_end(self) -> None:
        """Whatever deposed processes still do, they do now."""
        await asyncio.gather(*self._deposed_ones, return_exceptions=True)
        self._deposed_ones.clear()

    def _check_told(self) -> None:
        """R20: whoever follows the layout topic knows what is committed, without waiting for drift repair."""
        self.world.listener.follow()
        if self.world.auditor.deposed and self.world.auditor.losses > 1:
            # Who was deposed and goes on publishes what was committed before the record was restored.
            return
        for body in self.world.objects:
            if not (body.gone or body.deleting or body.standing):
                expected = message_of(body, body.state)
                kept = self.world.listener.kept
                _require(
                    kept is not None and content_of(kept) == expected,
                    f"R20: who follows the layout topic knows {kept}, committed is {expected}",
                )

    def _raise_violation(self) -> None:
        if self.world.auditor.first is not None:
            raise self.world.auditor.first


def _heard(task: asyncio.Task[None]) -> None:
    """How a deposed process ends is nobody's concern; what it must not do the auditor remembers."""
    if not task.cancelled():
        task.exception()


def check_end(world: World) -> None:
    """What must hold once everything is calm. Raises Violation."""
    for body in world.objects:
        if body.gone or _waits_for_a_person(world, body):
            continue
        _require(not body.standing, f"{body.uid} is stuck: {body.standing}")
        _check_record(world, body)
        _check_no_leak(world, body)
        _check_published(world, body)
        check_rebuild(world, body)


def _waits_for_a_person(world: World, body: TopicObject) -> bool:
    """Whether it is right that a topic is stuck.

    What somebody deleted and no status tells of leaves a hole, and so does a creation whose status was lost while
    producers of a life before wrote to what there was of it; a late call of an object that is gone may put its claim
    back; ids given out twice after a restored status, or written to by producers of a life before, make rivals (R11);
    and clients who are attached keep a topic from being deleted, and its name from the next object.
    """
    former = world.auditor.losses > 0 and len(world.objects) > 1
    holed = (bool(world.auditor.dropped) or former) and "do not make a layout" in body.standing
    in_the_way = any(other.deleting and not other.gone for other in world.objects)
    taken = "was taken over" in body.standing and _claimed_by_the_dead(world)
    twice_told = world.auditor.losses > 1 or (bool(world.auditor.dropped) and len(world.objects) > 1)
    rivals = twice_told and any(why in body.standing for why in ("both replace", "are both first"))
    nothing = "to migrate; create it" in body.standing and TOPIC.persistent not in world.broker.topics
    return bool(body.standing) and (nothing or holed or taken or rivals or in_the_way)


def _claimed_by_the_dead(world: World) -> bool:
    claimed = world.broker.partitioned.get(TOPIC.persistent) or world.broker.topics.get(TOPIC.persistent)
    if claimed is None or claimed.claim is None or claimed.claim.released:
        return False
    return any(body.gone and body.uid == claimed.claim.resource_uid for body in world.objects)


def _check_record(world: World, body: TopicObject) -> None:
    state = body.state
    layout = state.layout
    _require(layout is not None, "there is no layout")
    assert layout is not None
    _require(state.operation is None, f"the journal is still open: {state.operation}")
    _require(not body.operations, f"SegmentOperations never ended: {body.operations}")
    _require(not state.deleting, f"still to be deleted: {state.deleting}")
    _require(not tiling_problem(layout), tiling_problem(layout))
    claim = world.broker.partitioned.get(TOPIC.persistent) or world.broker.topics.get(TOPIC.persistent)
    _require(
        claim is not None and claim.claim is not None and claim.claim.resource_uid == body.uid, f"the claim is {claim}"
    )
    for name in world.ordinary or [TOPIC.persistent]:
        found = world.broker.topics.get(name)
        _require(found is not None and found.terminated, f"{name} takes writes")
    phases = {name: entry.phase for name, entry in state.subscriptions.items()}
    waiting = frozenset(name for name, phase in phases.items() if phase is SubscriptionPhase.DELETING)
    kept = {name for name, entry in state.subscriptions.items() if entry.is_kept}
    _require(not body.wishes, f"wishes were never recorded: {body.wishes}")
    _require(
        phases.keys() - waiting == (body.intent.subscriptions.keys() | kept) - waiting
        and SubscriptionPhase.CREATING not in phases.values(),
        f"the subscriptions are {phases}",
    )
    for name in waiting:
        used = any(name in topic.cursors and topic.cursors[name].consumers for topic in world.segment_topics())
        _require(used, f"subscription {name} is never deleted")
    for segment in layout.active:
        topic = world.topic_of(segment)
        _require(topic.record is not None, f"active {segment} was made by a client")
        _require(not topic.terminated, f"active {segment} is sealed")
        lost = frozenset(name for name, phase in phases.items() if phase is SubscriptionPhase.CURSOR_LOST)
        missing = phases.keys() - topic.cursors.keys() - lost - waiting
        _require(not missing, f"active {segment} has no cursor of {sorted(missing)}")
        _require(topic.protected, f"active {segment} may be deleted by its broker when it is idle")
    for segment in layout.sealed:
        if world.name_of(segment) in world.auditor.dropped:
            continue
        topic = world.topic_of(segment)
        _require(topic.terminated, f"sealed {segment} takes writes")
        _require(not topic.pending_adds, f"sealed {segment} has {topic.pending_adds} writes in flight")
        _require(
            Position.parse(str(segment.sealed_position)) == topic.last_confirmed,
            f"sealed {segment} ends at {topic.last_confirmed}, its record says {segment.sealed_position}",
        )


def _check_published(world: World, body: TopicObject) -> None:
    """R20: whoever starts to read the layout topic now is told of what is committed, and so are those who follow it."""
    found = world.broker.topics.get(layout_topic_name(TOPIC))
    _require(found is not None and bool(found.messages), "R20: no layout was published")
    assert found is not None
    expected = message_of(body, body.state)
    _require(
        content_of(found.messages[-1]) == expected, f"R20: published is {found.messages[-1]}, committed {expected}"
    )


def _check_no_leak(world: World, body: TopicObject) -> None:
    layout = body.state.layout
    assert layout is not None
    recorded = {classic_segment_name(TOPIC, one.hash_range, one.segment_id) for one in layout.segments.values()}
    reported = " ".join(message for reason, message in body.reports if reason == "StraySegment")
    for topic in world.segment_topics():
        parsed = parse_classic_segment_name(topic.name)
        of_another_life = topic.record is None or world.auditor.losses > 1
        if parsed is not None and parsed[2] >= layout.next_segment_id and of_another_life:
            # No id of this life: a client uses a name of its own, or one of a life that was deleted or lost.
            continue
        was_pruned = topic.record is not None and topic.name in world.auditor.pruned
        in_use = (topic.entries or topic.producers) and topic.name in reported and not was_pruned
        known = topic.name in recorded or in_use
        _require(bool(known), f"{topic.name} is left behind")


def check_rebuild(world: World, body: TopicObject) -> None:
    """R11: what the segment topics say of themselves makes the same layout."""
    layout = body.state.layout
    assert layout is not None
    if world.auditor.dropped or world.auditor.losses > 1:
        return
    witnesses = [*_legacy_witnesses(world, layout), *witnesses_of(world)]
    rebuilt = rebuild(witnesses)
    _require(rebuilt.layout is not None, f"R11: cannot be rebuilt: {rebuilt.problem}")
    _require(rebuilt.unfinished is None and not rebuilt.discard, f"R11: rebuilt differently: {rebuilt}")
    assert rebuilt.layout is not None
    for segment_id, segment in layout.segments.items():
        again = rebuilt.layout.segments.get(segment_id)
        facts = (segment.hash_range, segment.state, segment.buckets, segment.merge_depth, segment.created_by)
        _require(
            again is not None
            and facts == (again.hash_range, again.state, again.buckets, again.merge_depth, again.created_by)
            and (segment.parent_ids, segment.child_ids) == (again.parent_ids, again.child_ids)
            and segment.sealed_position == again.sealed_position,
            f"R11: {segment} was {segment} and is rebuilt as {again}",
        )
    _require(rebuilt.layout.segments.keys() == layout.segments.keys(), "R11: other segments were rebuilt")
    _require(
        world.auditor.losses > 0 or rebuilt.layout.next_segment_id >= layout.next_segment_id,
        f"R9: the next id was {layout.next_segment_id} and is rebuilt as {rebuilt.layout.next_segment_id}",
    )


def _legacy_witnesses(world: World, layout: SegmentLayout) -> list[Witness]:
    """What was migrated and is still in the layout, as whoever rebuilds it takes it to be."""
    named = world.broker.partitioned.get(TOPIC.persistent) or world.broker.topics.get(TOPIC.persistent)
    if named is None or named.claim is None or named.migrated_from is None:
        return []
    source, claim = named.migrated_from, named.claim
    kept = [segment for segment in layout.sealed if segment.is_legacy]
    found = ((segment.segment_id, world.broker.topics[world.name_of(segment)]) for segment in kept)
    return [
        Witness(
            legacy_record(segment_id, source, claim),
            topic.name,
            topic.terminated,
            topic.last_confirmed,
            len(topic.entries),
            is_legacy=True,
        )
        for segment_id, topic in found
    ]


def witnesses_of(world: World) -> Sequence[Witness]:
    """What every segment topic says of itself now."""
    return [
        Witness(topic.record, topic.name, topic.terminated, topic.last_confirmed, len(topic.entries))
        for topic in world.segment_topics()
        if topic.record is not None
    ]


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise Violation(what)
