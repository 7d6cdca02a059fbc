"""What must never be, judged at each effect: every commit, and every topic made or deleted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from scalable_topics.layout import (
    RING_SIZE,
    HashRange,
    Segment,
    SegmentLayout,
    TopicName,
    classic_segment_name,
    parse_classic_segment_name,
    parse_incarnation,
)
from scalable_topics_operator.operations.context import OperationSettings, TopicIntent
from scalable_topics_operator.operations.journal import OperationKind, Result, Step
from scalable_topics_operator.operations.layout_message import (
    MessageOrder,
    content_of,
    layout_message,
    message_order,
)
from scalable_topics_operator.operations.protocols import SegmentRecord
from scalable_topics_operator.operations.topic_state import TopicState
from tests.simulation.faults import Call
from tests.simulation.model_broker import ModelBroker, ModelTopic
from tests.simulation.model_clock import ModelClock
from tests.simulation.model_store import TopicObject

SETTINGS = OperationSettings(seal_look_seconds=0.01, publishers_wait_seconds=2.0, publishers_look_seconds=1.0)
"""Of every simulated process."""

FOREIGN_FIELDS: Mapping[str, Any] = {
    "conditions": [{"type": "Ready", "status": "True"}],
    "futureField": {"of": "a later release"},
}
"""Fields of a status that are not the operations'; every object starts with them."""


class Violation(AssertionError):
    """Something that must never be, is."""


class Auditor:
    """Judges effects as they happen.

    Args:
        broker: the brokers.
        objects: all ScalableTopic objects.
        calls: all calls so far.
        topic_of: full name of a segment's topic.
        clock: the time.
        foreign: fields of a status that are not the operations'.

    Attributes:
        dropped: topics deleted behind the operator's back, and at which call.
        losses: how often a status was lost.
        late: what happens now is a request that was long under way.
        sent_at: the number of the call that it is, if it was under way for long.
        deposed: another process took over from one that was at work.
        pruned: topics of the segments that left the layout.
        first: the first violation, which its own process may have swallowed.
    """

    def __init__(
        self,
        broker: ModelBroker,
        objects: list[TopicObject],
        calls: list[Call],
        topic_of: Callable[[TopicName, Segment], str],
        clock: ModelClock,
        foreign: Mapping[str, Any] = FOREIGN_FIELDS,
    ) -> None:
        self._foreign = foreign
        self._broker = broker
        self._objects = objects
        self._calls = calls
        self._topic_of = topic_of
        self._clock = clock
        self._committed: list[Any] = []
        self._newest: dict[str, tuple[MessageOrder, str, float]] = {}
        self._was_told_late = False
        self._journaled: dict[tuple[str, int], str] = {}
        self._made: dict[int, tuple[HashRange, str]] = {}
        self._forgotten: dict[tuple[int, str], int] = {}
        self.dropped: dict[str, int] = {}
        self.losses = 0
        self.late = False
        self.sent_at: int | None = None
        self.deposed = False
        self.pruned: set[str] = set()
        self.first: Violation | None = None

    def forget_ids(self) -> None:
        """A topic was deleted for good: its name and ids are free again."""
        self._journaled.clear()
        self._made.clear()
        self._forgotten.clear()
        self.pruned.clear()

    def status_lost(self, *, restored: bool = False) -> None:
        """What only the status knew is forgotten: reserved ids, and used ones of which no topic tells any more.

        A first loss is bridged by the ids that a rebuilt layout skips; a restored status gives some out again, and so
        does a migration that is begun anew, where one that was called off has left nothing behind.
        """
        journaled = {segment_id: operation for (_, segment_id), operation in self._journaled.items()}
        self._journaled.clear()
        self.pruned.clear()
        self.losses += 2 if restored else 1
        if restored and (self._was_told_late or self._broker.was_ordinary):
            # Whoever tells clients of a restored record reads the last message, which may be one that came late, and of
            # a migration that was called off none is left.
            self._newest.clear()
        if self.losses > 1 or (self._broker.was_ordinary and not self._is_claimed()):
            told = {topic.record.segment_id for topic in self._broker.topics.values() if topic.record}
            untold = {segment_id: made[1] for segment_id, made in self._made.items() if segment_id not in told}
            self._made = {segment_id: made for segment_id, made in self._made.items() if segment_id in told}
            # A process that was deposed may act on for any of its operations, and take away what told of them.
            forgotten = {**untold, **(journaled if self.deposed else {})}
            self._forgotten |= dict.fromkeys(forgotten.items(), len(self._calls))

    # Topics

    def created(self, topic: ModelTopic) -> None:
        """R9: an id is one segment for ever. Repairs make the same segment again."""
        record = topic.record
        if record is None or (self.dropped and (self.losses or len(self._objects) > 1)):
            # Of what was deleted behind the operator's back nothing tells once the status is lost too.
            return
        segment_id, now = record.segment_id, (record.hash_range, record.operation_id)
        made = self._made.setdefault(segment_id, now)
        repaired = record.operation_id.startswith("repair-") and made[0] == record.hash_range
        if any((segment_id, operation) in self._forgotten for _, operation in (made, now)):
            # Nobody could know that the id was in use.
            self._made[segment_id] = now
        elif made != now and not repaired:
            self._fail(f"R9: id {segment_id} was {made} and is made again as {topic.name} {record.operation_id}")

    def deleted(self, topic: ModelTopic) -> None:
        """Nothing that counts is ever deleted: no live segment, no unread entry (R8, R9, R19)."""
        parsed = parse_classic_segment_name(topic.name)
        if parsed is None or topic.record is None:
            # What a client made is its own affair: brokers refuse to delete what it is connected to.
            return
        bodies = [body for body in self._objects if not body.gone and body.topic == parsed[0]]
        if any(self._deletes_its_own(body) for body in bodies):
            return
        if self._is_of_a_forgotten_life(topic.record):
            # Two disasters at once: what alone told of the id was lost while a request for its former segment was under
            # way, and no broker can tell this one from that. To whoever looks, somebody has deleted it.
            self.dropped[topic.name] = len(self._calls) - 1
            return
        for state in [body.state for body in bodies]:
            layout, operation = state.layout, state.operation
            if layout and parsed[2] in layout.segments and layout.segment(parsed[2]).hash_range == parsed[1]:
                self._fail(f"{topic.name} was deleted and is a segment of the record")
            if operation and operation.step is Step.SEALING:
                for child in operation.children:
                    if (child.segment_id, child.hash_range) == (parsed[2], parsed[1]):
                        self._fail(f"R8: {topic.name} was deleted after its operation's point of no return")
            if topic.name in {gone.topic for gone in state.deleting}:
                # It was drained when it left the layout; a cursor that came late is nobody's.
                return
            if topic.entries and layout:
                self._fail(f"{topic.name} was deleted with {len(topic.entries)} entries")
        if topic.undrained:
            self._fail(f"R19: {topic.name} was deleted before {sorted(topic.undrained)} drained it")

    def terminated(self, name: str) -> None:
        """R8: a live segment is sealed only once the journal says that it will be."""
        bodies = [body for body in self._objects if not body.gone]
        shown = [(body, body.state.shown_layout(body.topic)) for body in bodies]
        sealing = {
            self._topic_of(body.topic, layout.segment(parent))
            for body, layout in shown
            if layout and body.state.operation and body.state.operation.step is Step.SEALING
            for parent in body.state.operation.parents
        }
        active = {self._topic_of(body.topic, segment) for body, layout in shown if layout for segment in layout.active}
        if name in active - sealing and not self.losses:
            self._fail(f"R8: {name} was sealed, and no journal says so")
        if name in sealing and not self.late and not self.deposed:
            self._check_announced(name)

    def _check_announced(self, name: str) -> None:
        """R13: whoever follows the layout topic has left the segment and still holds, with some time to spare."""
        usable_seconds = SETTINGS.hold_seconds - SETTINGS.hold_margin_seconds
        for _, message, published_at_seconds in self._newest.values():
            told = json.loads(message)
            parents = told.get("announcement", {}).get("parents", ())
            announced = any(one["topic"] == name and one["id"] in parents for one in told["segments"])
            if announced and self._clock.seconds - published_at_seconds < usable_seconds:
                return
        self._fail(f"R13: {name} was sealed, and no announcement of it holds")

    def published(self, message: str) -> None:
        """R20: nothing is told that was never committed, and what is told only goes forward."""
        if content_of(message) not in self._committed:
            self._fail(f"R20: never committed: {message}")
        uid, _ = parse_incarnation(json.loads(message)["incarnation"])
        order = message_order(message, uid)
        assert order is not None
        self._was_told_late = self._was_told_late or self.late
        newest = self._newest.get(uid)
        if newest is not None and order == newest[0] and message != newest[1]:
            self._fail(f"R20: clients cannot tell {message} from {newest[1]}")
        if newest is not None and order < newest[0] and not self.late and not self.deposed:
            self._fail(f"R20: {message} was published after {newest[1]}")
        if newest is None or order > newest[0]:
            self._newest[uid] = (order, message, self._clock.seconds)

    def moved_under_readers(self, subscription: str) -> None:
        """R18: cursors of an ordered subscription move only once its consumers have let go."""
        self._fail(f"R18: cursors of {subscription} were moved while its consumers read")

    # Commits

    def committed(self, body: TopicObject, before: TopicState, after: TopicState, intent: TopicIntent) -> None:
        """Judge a new version of the record against the one before and against the brokers."""
        if before.incarnation != after.incarnation and before.layout != after.layout:
            # R12: rebuilt, whatever was recorded before.
            before = replace(before, layout=None, operation=None)
        if after.shown_layout(body.topic) is not None:
            self._committed.append(message_of(body, after))
        self._check_foreign_fields(body, before, after)
        self._check_journal(body, before, after)
        if after.layout is None:
            return
        problem = tiling_problem(after.layout)
        if problem:
            self._fail(problem)
        self._check_new_segments(body, before, after, intent)
        self._check_sealed(body, before, after)
        self._check_left(body, before, after)
        self._check_reachable(body, after)

    def _check_foreign_fields(self, body: TopicObject, before: TopicState, after: TopicState) -> None:
        """Hazard A1-26008: what others keep in the status and later releases keep in the layout survives."""
        for key, value in self._foreign.items():
            if body.status.get(key) != value:
                self._fail(f"A1-26008: status field {key} became {body.status.get(key)!r}")
        if before.layout is None or after.layout is None:
            return
        if before.layout.extra != after.layout.extra:
            self._fail(f"A1-26008: unknown fields of the layout became {dict(after.layout.extra)}")
        for segment_id, segment in before.layout.segments.items():
            kept = after.layout.segments.get(segment_id)
            if kept is not None and kept.extra != segment.extra:
                self._fail(f"A1-26008: unknown fields of {segment} were changed")

    def _check_journal(self, body: TopicObject, before: TopicState, after: TopicState) -> None:
        was, now = before.operation, after.operation
        if was is not None and was.step is Step.SEALING and (now is None or now.id != was.id):
            deleted = now is not None and now.kind is OperationKind.DELETE
            ended = [action for action in after.actions if action.id == was.id]
            if not deleted and not (ended and ended[-1].result is Result.SUCCEEDED):
                self._fail(f"R8: {was.kind} {was.id} was past its point of no return and did not succeed")
        if was is not None and now is not None and was.id == now.id and was.step is Step.SEALING is not now.step:
            self._fail(f"R8: {was.kind} went back from {was.step} to {now.step}")
        if was is not None and was.kind is OperationKind.CREATE and now is None and after.layout is None:
            # The name was lost before the claim, so nothing was made under this journal.
            for child in was.children:
                self._journaled.pop((body.uid, child.segment_id), None)
        for child in now.children if now else ():
            if now and self._journaled.setdefault((body.uid, child.segment_id), now.id) != now.id:
                self._fail(f"R9: id {child.segment_id} is reserved twice")
        if before.layout and after.layout and after.layout.next_segment_id < before.layout.next_segment_id:
            self._fail("R9: nextSegmentId went back")
        if before.layout and after.layout and after.layout.epoch not in (before.layout.epoch, before.layout.epoch + 1):
            self._fail(f"the epoch went from {before.layout.epoch} to {after.layout.epoch}")

    def _check_new_segments(
        self, body: TopicObject, before: TopicState, after: TopicState, intent: TopicIntent
    ) -> None:
        """R16: a new active segment has every counting cursor of its parents and every declared one."""
        layout = after.layout
        assert layout is not None
        known = before.layout.segments if before.layout else {}
        # A rebuild can tell only of the last operation whether it had ended (R17).
        last_parents = layout.segments[max(layout.segments)].parent_ids
        for segment in layout.active:
            if segment.segment_id in known or (before.layout is None and segment.parent_ids != last_parents):
                continue
            name = self._topic_of(body.topic, segment)
            topic = self._broker.topics.get(name)
            if topic is None:
                # What vanishes while a layout is rebuilt is made again by drift repair; without it there is a hole.
                is_rebuilt = before.layout is None
                if name not in self.dropped or (self._was_seen_missing(name) and not is_rebuilt):
                    self._fail(f"{segment} was committed and has no topic")
                continue
            if topic.record is None:
                continue
            parents = self._existing(body, layout.parents_of(segment.segment_id))
            # Who subscribes to a seal that came undone unseen is found by nobody before the commit.
            parents = [parent for parent in parents if not parent.reopened_unseen]
            wanted = frozenset().union(*(parent.counting for parent in parents))
            if before.layout is not None:
                wanted |= intent.subscriptions.keys()
                wanted |= {name for name, entry in after.subscriptions.items() if entry.is_kept}
            missing = wanted - topic.cursors.keys() - after.not_discovered
            if missing:
                self._fail(f"R16: {segment} was committed without the cursors {sorted(missing)}")
            if before.layout is not None and topic.cursors.keys() & after.not_discovered:
                self._fail(f"R16: {segment} has cursors of {sorted(after.not_discovered)}, which are being deleted")

    def _check_sealed(self, body: TopicObject, before: TopicState, after: TopicState) -> None:
        """R14: no parent takes writes beside its committed children, and none has writes in flight."""
        layout = after.layout
        assert layout is not None
        shown = before.shown_layout(body.topic)
        if shown is None:
            self._check_rebuilt_seals(body, layout)
            return
        for segment in layout.sealed:
            known = shown.segments.get(segment.segment_id)
            topic = self._broker.topics.get(self._topic_of(body.topic, segment))
            if known is None or not known.is_active or topic is None or not (topic.record or segment.is_legacy):
                continue
            if not topic.terminated and not topic.reopened_unseen:
                self._fail(f"R14: {segment} takes writes beside its children")
            if topic.pending_adds:
                self._fail(f"A1-26678: {segment} has {topic.pending_adds} writes in flight")
            # A deposed process may commit what it verified before another one had to seal again.
            if topic.terminated and segment.sealed_position != str(topic.last_confirmed) and not self.deposed:
                self._fail(f"R14: {segment} ends at {topic.last_confirmed}, not {segment.sealed_position}")
            if topic.terminated and not self.deposed:
                self._check_settled(segment, topic, after.settled.get(segment.segment_id, {}))

    def _check_settled(self, segment: Segment, topic: ModelTopic, settled: Mapping[str, int]) -> None:
        """R15: who was attached to the end is told what was stored, and is told right."""
        stored = {producer: topic.last_sequence_id(producer) for producer in settled}
        if settled != stored:
            self._fail(f"R15: {segment} holds {stored}, and {dict(settled)} is told")
        # A lost status takes the names with it.
        unsettled = topic.attached_at_seal - settled.keys()
        if unsettled and not self.losses:
            self._fail(f"R15: {segment} was sealed under {sorted(unsettled)}, who are not told what was stored")

    def _check_rebuilt_seals(self, body: TopicObject, layout: SegmentLayout) -> None:
        """R11: an open segment is counted as sealed only when what covers its hashes was written to."""
        for segment in layout.sealed:
            topic = self._broker.topics.get(self._topic_of(body.topic, segment))
            newer = [one for key, one in layout.segments.items() if key > segment.segment_id]
            later = self._existing(body, [one for one in newer if one.hash_range.overlaps(segment.hash_range)])
            used = any(one.entries or one.terminated for one in later)
            if topic is not None and topic.record is not None and not topic.terminated and not used:
                self._fail(f"R11: {segment} takes writes and was rebuilt as sealed")

    def _check_left(self, body: TopicObject, before: TopicState, after: TopicState) -> None:
        """R17, R19: what leaves the layout is drained, and so is everything that comes before it."""
        layout = after.layout
        assert layout is not None
        if before.layout is None:
            return
        gone = [segment for key, segment in before.layout.segments.items() if key not in layout.segments]
        self.pruned |= {self._topic_of(body.topic, segment) for segment in gone}
        for segment in gone:
            deleting = {entry.segment_id for entry in after.deleting}
            if segment.segment_id not in deleting:
                self._fail(f"B6: {segment} left the layout and is not listed to be deleted")
            for one in before.layout.lineage(segment.segment_id):
                if one.segment_id > segment.segment_id:
                    continue
                topic = self._broker.topics.get(self._topic_of(body.topic, one))
                if topic is not None and topic.undrained:
                    self._fail(f"R19: {segment} left the layout before {sorted(topic.undrained)} drained {one}")

    def _check_reachable(self, body: TopicObject, after: TopicState) -> None:
        """Every entry that some subscription has not read is in a segment of the record."""
        layout = after.layout
        assert layout is not None
        if body.deleting:
            return
        if self.dropped and (len(self._objects) > 1 or self.losses > 1):
            # Producers of a topic that was deleted, or of a record that was restored, write to whatever has the name of
            # its segments; drift repair reports what it finds there.
            return
        recorded = {self._topic_of(body.topic, segment) for segment in layout.segments.values()}
        children = {child.segment_id for child in after.operation.children} if after.operation else set()
        for name, topic in self._broker.topics.items():
            parsed = parse_classic_segment_name(name)
            if parsed is None or parsed[0] != body.topic or topic.record is None or name in recorded:
                continue
            if topic.undrained and parsed[2] not in children:
                self._fail(f"{name} holds entries that {sorted(topic.undrained)} cannot reach")

    def _was_seen_missing(self, name: str) -> bool:
        # A deposed process may have seen it while the one that commits did not.
        return not self.deposed and any(call.target == name for call in self._calls[self.dropped[name] :])

    def _deletes_its_own(self, body: TopicObject) -> bool:
        operation, claimed = body.state.operation, self._broker.topics.get(body.topic.persistent)
        owner = claimed.claim.resource_uid if claimed is not None and claimed.claim is not None else body.uid
        return operation is not None and operation.kind is OperationKind.DELETE and owner == body.uid

    def _is_of_a_forgotten_life(self, record: SegmentRecord) -> bool:
        """Whether the request that comes late was sent for another segment of that id, of which a lost status told."""
        return self.sent_at is not None and any(
            self.sent_at < lost_at
            for (segment_id, operation), lost_at in self._forgotten.items()
            if segment_id == record.segment_id and operation != record.operation_id
        )

    def _is_claimed(self) -> bool:
        names = {body.topic.persistent for body in self._objects}
        found = [self._broker.partitioned.get(name) or self._broker.topics.get(name) for name in names]
        return any(one is not None and one.claim is not None for one in found)

    def _existing(self, body: TopicObject, segments: Iterable[Segment]) -> list[ModelTopic]:
        names = (self._topic_of(body.topic, segment) for segment in segments)
        return [self._broker.topics[name] for name in names if name in self._broker.topics]

    def _fail(self, what: str) -> None:
        violation = Violation(what)
        self.first = self.first or violation
        raise violation


def message_of(body: TopicObject, state: TopicState) -> Any:
    """What clients are told of a state, whoever tells them."""
    hold_ms = int(SETTINGS.hold_seconds * 1000)
    return content_of(layout_message(body.topic, state, term=0, hold_ms=hold_ms, segment_topic=_segment_topic))


def _segment_topic(topic: TopicName, segment: Segment) -> str:
    return segment.topic or classic_segment_name(topic, segment.hash_range, segment.segment_id)


def tiling_problem(layout: SegmentLayout) -> str:
    """How the active ranges fail to cover the ring, each hash once; empty if they do."""
    expected = 0
    for segment in sorted(layout.active, key=lambda one: one.hash_range.start):
        if segment.hash_range.start != expected:
            break
        expected = segment.hash_range.end + 1
    return "" if expected == RING_SIZE else f"hash {expected} is not covered by exactly one active segment"
