"""What a producer does with its sends while the layout changes under it (docs/contract.md "Producing"). Pure.

The plan owns the lanes. It is told what happens (sends, outcomes, layouts, the clock) and answers with effects for the
I/O around it. Its invariants: a key's messages reach a segment only after everything of them on an older segment is
known; nothing is sent twice unless its outcome is unknown and cannot be found out; nothing waits without a reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from scalable_topics.layout import equal_splits
from scalable_topics.sdk.effects import (
    CloseProducer,
    Effect,
    FlushProducer,
    Forgotten,
    HandOver,
    OpenProducer,
    Outcome,
    ReadTail,
    RetryLater,
    Stored,
    Undecidable,
)
from scalable_topics.sdk.layout_message import Announcement, FollowedSegment, LayoutMessage
from scalable_topics.sdk.routing_table import RoutingTable
from scalable_topics.sdk.segment_lane import KEYLESS, Connection, Fate, LaneKey, SegmentLane, Send

MOST_LANES_AHEAD = 64
"""Producers opened before there is a message for them, at most; more are opened when they are needed."""


class SendPlan:
    """The sends of one producer object over the segments of its topic.

    Args:
        per_bucket: one lane an entry bucket, so that no batch mixes buckets; for producers that batch.
        name_producer: makes a producer name that is unique for ever.
    """

    def __init__(self, *, per_bucket: bool, name_producer: Callable[[LaneKey], str]) -> None:
        self._per_bucket = per_bucket
        self._name_producer = name_producer
        self._layout: LayoutMessage | None = None
        self._lanes: dict[LaneKey, SegmentLane] = {}
        self._coming: dict[LaneKey, SegmentLane] = {}
        self._draining: list[SegmentLane] = []
        self._held_segments: frozenset[int] = frozenset()
        self._table = RoutingTable((), per_bucket=per_bucket, lane=self._lane)
        self._effects: list[Effect] = []
        self._closing = False
        self.hold_until: float | None = None
        """Monotonic time at which an announced hold ends; None outside holds."""

    @property
    def layout(self) -> LayoutMessage | None:
        """The layout followed."""
        return self._layout

    @property
    def lanes(self) -> tuple[SegmentLane, ...]:
        """All lanes: those in use, those opened ahead, and those with undecided sends on sealed segments."""
        return (*self._lanes.values(), *self._coming.values(), *self._draining)

    def take_effects(self) -> list[Effect]:
        """What is to be done now; asked for after every call that may have changed something."""
        if self._coming:
            self._open_coming()
        effects, self._effects = self._effects, []
        return effects

    def submit(self, send: Send) -> SegmentLane | None:
        """Take a send; answers the lane to hand it to at once, or None if it waits its turn."""
        hash_value = send.hash_value
        lane = self._table.keyless() if hash_value is None else self._table.keyed(hash_value)
        if lane.admit(send):
            return lane
        if len(lane.queue) == 1:
            if send.travels_alone and lane.may_take:
                self._effects.append(FlushProducer(lane))
            self._advance(lane)
        return None

    def follow(self, message: LayoutMessage, now: float) -> None:
        """Follow a message of the layout topic that supersedes the last one.

        Args:
            message: what was published.
            now: monotonic time in seconds.
        """
        changes = message.changes_layout(self._layout)
        previous = None if self._layout is None else self._layout.announcement
        self._layout = message
        if changes:
            self._change_layout(message)
        else:
            self._requeue(self._settle_draining(message))
        self._obey(message.announcement, previous, now)

    def open_ahead(self) -> None:
        """Open keyed lanes of all active segments before there are messages for them."""
        if self._layout is not None:
            for key, segment in self._lanes_ahead(self._layout.active):
                lane = self._lane(key, segment)
                if lane.connection is Connection.NONE and not lane.held:
                    self._open(lane)

    def producer_opened(self, lane: SegmentLane, generation: int, producer: Any) -> None:
        """The producer that was asked for is there."""
        if lane.generation != generation or lane.connection is not Connection.OPENING:
            self._effects.append(CloseProducer(lane, producer))
            return
        lane.connection = Connection.OPEN
        lane.producer = producer
        lane.failures = 0
        lane.refresh()
        self._advance(lane)

    def producer_failed(self, lane: SegmentLane, generation: int, *, terminated: bool) -> None:
        """The producer could not be opened, because the segment is terminated or for a reason that may pass."""
        if lane.generation != generation or lane.connection is not Connection.OPENING:
            return
        lane.connection = Connection.NONE
        if terminated:
            lane.fate = Fate.REFUSED
        else:
            lane.failures += 1
            lane.rests = True
            self._effects.append(RetryLater(lane, lane.failures))
        lane.refresh()

    def retry(self, lane: SegmentLane) -> None:
        """The delay of a `RetryLater` is over."""
        lane.rests = False
        self._advance(lane)

    def send_failed(self, send: Send, attempt: int, outcome: Outcome) -> bool:
        """An attempt at a send did not succeed; answers whether that is news."""
        lane = send.lane
        if self._closing or attempt != send.attempt or lane is None:
            return False
        if lane.inflight.get(send.sequence_id) is not send:
            return False
        if outcome is Outcome.REJECTED:
            del lane.inflight[send.sequence_id]
            self._progress(lane)
        elif lane.fate is Fate.LIVE:
            # The send stays where it is: that keeps the order, and what follows it waits behind it.
            if outcome is Outcome.UNKNOWN:
                self._doubt(lane)
            else:
                # pulsar-client has let go of it already; it is not asked again before a later layout.
                lane.fate = Fate.REFUSED
                lane.connection, lane.producer = Connection.NONE, None
                lane.refresh()
        return True

    def acknowledged(self, attempts: Iterable[tuple[Send, int, Any]]) -> list[Send]:
        """These attempts at sends succeeded, with these positions; answers the sends for which that is news."""
        stored: list[Send] = []
        touched: dict[SegmentLane, Send] = {}
        for send, attempt, position in attempts:
            lane = send.lane
            if attempt == send.attempt and lane is not None and lane.inflight.pop(send.sequence_id, None) is not None:
                send.position = position
                stored.append(send)
                touched[lane] = send
        for lane, send in touched.items():
            lane.last_acknowledged_id = send.sequence_id
            lane.last_position = send.position
            if lane.queue or not lane.inflight:
                self._progress(lane)
        return stored

    def tail_read(self, lane: SegmentLane, inquiry: int, last_sequence_id: int | None) -> None:
        """The tail of the lane's segment has been read; None if that was not possible."""
        if lane.inquiry != inquiry or lane.fate not in (Fate.DOUBTFUL, Fate.SEALED) or not self._knows(lane):
            return
        unsent = self._decide(lane, last_sequence_id)
        if lane in self._draining:
            self._draining.remove(lane)
            self._close(lane)
            self._requeue(unsent)
            return
        lane.fate = Fate.LIVE
        lane.requeue(unsent)
        self._advance(lane)

    def on_time(self, now: float) -> None:
        """The clock has moved; ends a hold that nothing followed (R13: holders go on alone)."""
        if self.hold_until is not None and now >= self.hold_until:
            self._hold(frozenset())

    def close(self) -> None:
        """Open no producer any more (hazard A5-26615), and close all."""
        self._closing = True
        for lane in self.lanes:
            self._close(lane)

    def _progress(self, lane: SegmentLane) -> None:
        """Look whether something waited for the sends of the lane that have their outcome now."""
        if lane not in self._draining:
            self._advance(lane)
        elif not lane.inflight:
            self._draining.remove(lane)
            self._close(lane)
            self._regate()

    def _change_layout(self, message: LayoutMessage) -> None:
        active = message.active
        topics = {segment.segment_id: segment.topic for segment in active}
        gone = [lane for lane in self._lanes.values() if topics.get(lane.key.segment_id) != lane.segment.topic]
        kept = {key: lane for key, lane in self._lanes.items() if lane not in gone}
        for key, lane in self._coming.items():
            if topics.get(key.segment_id) == lane.segment.topic:
                kept[key] = lane
            else:
                self._close(lane)
        self._coming = {}
        self._lanes = kept
        self._table = RoutingTable(active, per_bucket=self._per_bucket, lane=self._lane, routing=message.routing)
        loose = self._settle_draining(message)
        for lane in gone:
            loose += lane.empty_queue()
            self._seal(lane)
        loose += self._settle_draining(message)
        self._ask_tails(message)
        for lane in kept.values():
            if lane.fate is Fate.REFUSED:
                self._revive(lane)
        self._requeue(loose)

    def _seal(self, lane: SegmentLane) -> None:
        if lane.inflight:
            self._draining.append(lane)
        else:
            self._close(lane)

    def _ask_tails(self, message: LayoutMessage) -> None:
        """Have the tails read of what the layout does not settle; a pruned segment cannot be asked any more."""
        for lane in list(self._draining):
            if lane.key.segment_id not in message.segments:
                self._decide(lane, None)
                self._draining.remove(lane)
                self._close(lane)
            elif lane.fate is not Fate.SEALED:
                lane.fate = Fate.SEALED
                lane.refresh()
                self._ask_tail(lane)

    def _settle_draining(self, message: LayoutMessage) -> list[Send]:
        """Decide what the layout itself settles; answers the sends that were never stored."""
        unsent: list[Send] = []
        for lane in list(self._draining):
            last = message.settled.get(lane.key.segment_id, {}).get(lane.producer_name)
            if last is not None:
                unsent += self._decide(lane, last)
                self._draining.remove(lane)
                self._close(lane)
        return unsent

    def _decide(self, lane: SegmentLane, last_sequence_id: int | None) -> list[Send]:
        if last_sequence_id is None:
            undecided = list(lane.inflight.values())
            lane.inflight.clear()
            self._effects += [Undecidable(send) for send in undecided]
            return []
        verdict = lane.decide(last_sequence_id)
        self._effects += [Stored(send) for send in verdict.stored]
        self._effects += [Forgotten(send) for send in verdict.unsent if send.is_told]
        return [send for send in verdict.unsent if not send.is_told]

    def _revive(self, lane: SegmentLane) -> None:
        """A later layout still has a segment that refused as active: ask it once more (and not before)."""
        if lane.inflight:
            self._doubt(lane)
        else:
            self._close(lane)
            lane.fate = Fate.LIVE
            self._advance(lane)

    def _doubt(self, lane: SegmentLane) -> None:
        """Give the lane's producer up, so that nothing more of it gets stored, and see what has been."""
        lane.fate = Fate.DOUBTFUL
        self._close(lane)
        self._ask_tail(lane)

    def _ask_tail(self, lane: SegmentLane) -> None:
        lane.inquiry += 1
        self._effects.append(ReadTail(lane, lane.inquiry))

    def _obey(self, announcement: Announcement | None, previous: Announcement | None, now: float) -> None:
        if announcement is None:
            self._hold(frozenset())
            for lane in self._coming.values():
                self._close(lane)
            self._coming = {}
            return
        parents = frozenset(announcement.parents)
        used = [
            lane
            for key, lane in self._lanes.items()
            if key.segment_id in parents and (lane.connection is not Connection.NONE or lane.queue)
        ]
        self.hold_until = now + announcement.hold_seconds
        self._hold(parents, until=self.hold_until)
        again = previous is not None and previous.operation == announcement.operation
        self._open_children(announcement, used, again=again)

    def _open_children(self, announcement: Announcement, used: list[SegmentLane], *, again: bool) -> None:
        wanted: dict[LaneKey, FollowedSegment] = {}
        if any(lane.is_keyed for lane in used):
            wanted.update(self._lanes_ahead(announcement.children))
        if not all(lane.is_keyed for lane in used):
            wanted.update((LaneKey(child.segment_id, KEYLESS), child) for child in announcement.children)
        for key, lane in list(self._coming.items()):
            # Announced again, the parents are not in use any more, since they were left when it was announced first.
            if not again and (key not in wanted or wanted[key].topic != lane.segment.topic):
                self._close(self._coming.pop(key))
        for key, child in wanted.items():
            if key not in self._coming and key not in self._lanes:
                self._coming[key] = SegmentLane(key, child)

    def _open_coming(self) -> None:
        """Open producers on the children once those on the parents are closed: that is what the leader waits for."""
        if any(lane.held and lane.connection is not Connection.NONE for lane in self._lanes.values()):
            return
        for lane in self._coming.values():
            if lane.connection is Connection.NONE and not lane.rests and lane.fate is Fate.LIVE:
                self._open(lane)

    def _hold(self, segments: frozenset[int], until: float | None = None) -> None:
        self.hold_until = until
        self._held_segments = segments
        for lane in self._lanes.values():
            held = lane.key.segment_id in segments
            if held and not lane.held and lane.inflight and lane.connection is Connection.OPEN:
                self._effects.append(FlushProducer(lane))
            lane.held = held
            lane.refresh()
            self._advance(lane)

    def _requeue(self, sends: Iterable[Send]) -> None:
        """Route sends anew, each to its place in the application's order, then let go what waited for them."""
        by_lane: dict[int, tuple[SegmentLane, list[Send]]] = {}
        for send in sorted(sends, key=lambda send: send.order):
            lane = self._table.keyless() if send.hash_value is None else self._table.keyed(send.hash_value)
            by_lane.setdefault(id(lane), (lane, []))[1].append(send)
        for lane, waiting in by_lane.values():
            lane.requeue(waiting)
        self._regate()

    def _regate(self) -> None:
        """Let a keyed lane send only if no undecided send of an older segment can have one of its keys."""
        ranges = [lane.segment.hash_range for lane in self._draining if lane.is_keyed]
        for lane in self._lanes.values():
            lane.gated = lane.is_keyed and any(lane.segment.hash_range.overlaps(range_) for range_ in ranges)
            lane.refresh()
            self._advance(lane)

    def _advance(self, lane: SegmentLane) -> None:
        if lane.fate is not Fate.LIVE or self._closing:
            return
        if lane.held:
            if lane.connection is Connection.OPEN and not lane.inflight:
                self._close(lane)
            return
        if not lane.queue or lane.rests:
            return
        if lane.connection is Connection.NONE:
            self._open(lane)
        elif lane.may_take:
            self._effects.append(HandOver(lane))

    def _open(self, lane: SegmentLane) -> None:
        if not self._closing:
            generation = lane.begin_producer(self._name_producer(lane.key))
            self._effects.append(OpenProducer(lane, generation))

    def _close(self, lane: SegmentLane) -> None:
        producer, lane.producer = lane.producer, None
        lane.connection = Connection.NONE
        lane.refresh()
        if producer is not None:
            self._effects.append(CloseProducer(lane, producer))

    def _lane(self, key: LaneKey, segment: FollowedSegment) -> SegmentLane:
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = SegmentLane(key, segment)
            lane.held = key.segment_id in self._held_segments
            lane.gated = lane.is_keyed and any(
                lane.segment.hash_range.overlaps(other.segment.hash_range) for other in self._draining if other.is_keyed
            )
        return lane

    def _lanes_ahead(self, segments: Iterable[FollowedSegment]) -> list[tuple[LaneKey, FollowedSegment]]:
        """The keyed lanes of these segments that are opened ahead: first buckets first."""
        by_bucket: dict[int, list[tuple[LaneKey, FollowedSegment]]] = defaultdict(list)
        for segment in segments:
            for bucket in range(len(equal_splits(segment.buckets)) + 1 if self._per_bucket else 1):
                by_bucket[bucket].append((LaneKey(segment.segment_id, bucket), segment))
        ahead = [lane for bucket in sorted(by_bucket) for lane in by_bucket[bucket]]
        return ahead[:MOST_LANES_AHEAD]

    def _knows(self, lane: SegmentLane) -> bool:
        return lane in self._draining or self._lanes.get(lane.key) is lane
