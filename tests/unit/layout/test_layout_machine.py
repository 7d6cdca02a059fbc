"""Any sequence of operations keeps every invariant of DESIGN §4, and ids are never used twice (R9)."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from scalable_topics.layout import SegmentChange, SegmentLayout, from_record, to_record
from tests.unit.layout.strategies import assert_sound, changes, hashes, positions, unhurried


class LayoutMachine(RuleBasedStateMachine):
    """A topic's life: changes are journaled (reserved), then applied or rolled back; segments are pruned."""

    @initialize(segments=st.integers(1, 8), budget=st.integers(1, 64))
    def create(self, segments: int, budget: int) -> None:
        self.layout = SegmentLayout.initial(segments, bucket_budget=budget, created_at_ms=1)
        self.open: SegmentChange | None = None
        self.used = set(self.layout.segments)

    @precondition(lambda self: self.open is None)
    @rule(data=st.data())
    def journal(self, data: st.DataObject) -> None:
        change = data.draw(changes(self.layout))
        before = self.layout
        self.layout = before.reserve(change)
        assert self.layout.epoch == before.epoch
        assert dict(self.layout.segments) == dict(before.segments)
        assert self.used.isdisjoint(change.child_ids)
        self.used |= set(change.child_ids)
        self.open = change

    @precondition(lambda self: self.open is not None)
    @rule()
    def roll_back(self) -> None:
        self.open = None

    @precondition(lambda self: self.open is not None)
    @rule(now_ms=st.integers(2, 10**13))
    def commit(self, now_ms: int) -> None:
        change = self.open
        assert change is not None
        before = self.layout
        self.layout = before.apply(change, now_ms=now_ms)
        assert self.layout.epoch == before.epoch + 1
        for parent_id in change.parent_ids:
            parent = self.layout.segment(parent_id)
            assert (parent.is_active, parent.child_ids, parent.sealed_at_ms) == (
                False,
                change.child_ids,
                now_ms,
            )
        for planned in change.children:
            child = self.layout.segment(planned.segment_id)
            assert (child.hash_range, child.buckets, child.merge_depth) == (
                planned.hash_range,
                planned.buckets,
                planned.merge_depth,
            )
            assert (child.created_at_epoch, child.created_at_ms) == (self.layout.epoch, now_ms)
        self.open = None

    @precondition(lambda self: self.layout.sealed)
    @rule(data=st.data())
    def prune(self, data: st.DataObject) -> None:
        sealed = [segment.segment_id for segment in self.layout.sealed]
        chosen = data.draw(st.sets(st.sampled_from(sealed), min_size=1))
        before = self.layout
        self.layout = before.prune(chosen)
        assert self.layout.epoch == before.epoch + 1
        assert self.layout.segments.keys() == before.segments.keys() - chosen
        depths = {one: segment.merge_depth for one, segment in before.segments.items() if one not in chosen}
        assert {one: segment.merge_depth for one, segment in self.layout.segments.items()} == depths

    @precondition(lambda self: self.layout.sealed)
    @rule(data=st.data(), position=positions)
    def mark_end(self, data: st.DataObject, position: str) -> None:
        one = data.draw(st.sampled_from(self.layout.sealed)).segment_id
        before = self.layout
        self.layout = before.with_sealed_position(one, position)
        assert self.layout.segment(one).sealed_position == position
        assert self.layout.epoch == before.epoch

    @rule()
    def store_and_load(self) -> None:
        self.layout = from_record(to_record(self.layout))

    @rule(segment_hash=hashes)
    def each_hash_has_one_active_segment(self, segment_hash: int) -> None:
        covering = [one for one in self.layout.active if one.hash_range.contains(segment_hash)]
        assert [self.layout.find_active(segment_hash)] == covering

    @invariant()
    def sound(self) -> None:
        assert_sound(self.layout)


LayoutMachine.TestCase.settings = settings(unhurried, max_examples=50, stateful_step_count=30)
TestLayoutMachine = LayoutMachine.TestCase
