"""A layout rebuilt from its segment topics equals the one that was lost (R11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalable_topics.layout import (
    CreatedBy,
    HashRange,
    PlannedSegment,
    SegmentChange,
    SegmentLayout,
    SegmentState,
    classic_segment_name,
)
from scalable_topics_operator.operations.migrated_from import MigratedFrom
from scalable_topics_operator.operations.protocols import Position
from scalable_topics_operator.operations.rebuild import (
    ID_GAP,
    UnfinishedSeal,
    Witness,
    legacy_record,
    next_unused_id,
    outdated,
    rebuild,
)
from tests.unit.layout.strategies import changes, unhurried
from tests.unit.operations.builders import CLAIM, MADE_AT_MS, TOPIC, record_of, witness


@dataclass
class Life:
    """A topic's layout, and beside it what its segment topics say, as operations write them."""

    layout: SegmentLayout
    topics: dict[int, Witness] = field(default_factory=dict)
    operations: int = 0

    @classmethod
    def begin(cls, segments: int, buckets: int) -> Life:
        life = cls(SegmentLayout.initial(segments, bucket_budget=buckets, created_at_ms=MADE_AT_MS))
        life._make(life.layout, tuple(life.layout.segments))
        return life

    def reshape(self, change: SegmentChange, entries: int) -> None:
        """An operation that was committed; the parents end with that many entries."""
        self.operations += 1
        reserved = self.layout.reserve(change)
        ends = {parent: f"{parent + 1}:{entries - 1}" for parent in change.parent_ids}
        self.layout = reserved.apply(change, now_ms=MADE_AT_MS + self.operations, sealed_positions=ends)
        for parent in change.parent_ids:
            self.topics[parent] = replace(
                self.topics[parent],
                terminated=True,
                entries=entries,
                last_confirmed=Position.parse(ends[parent]),
            )
        self._make(self.layout, change.child_ids)

    def roll_back(self, change: SegmentChange, left_behind: set[int]) -> None:
        """An operation that never reached its seal; some of its topics appear late and stay."""
        self.operations += 1
        self.layout = self.layout.reserve(change)
        made = self.layout.apply(change, now_ms=MADE_AT_MS + self.operations)
        self._make(made, change.child_ids)
        for child in change.child_ids:
            if child not in left_behind:
                del self.topics[child]

    def prune(self, ids: set[int]) -> None:
        """Segments that left the layout and whose topics are gone."""
        self.layout = self.layout.prune(ids)
        for segment_id in ids:
            del self.topics[segment_id]

    def _make(self, layout: SegmentLayout, ids: tuple[int, ...]) -> None:
        for segment_id in ids:
            segment = layout.segment(segment_id)
            self.topics[segment_id] = Witness(
                record_of(segment, ids, f"operation-{self.operations}", layout.next_segment_id),
                classic_segment_name(TOPIC, segment.hash_range, segment_id),
                terminated=False,
                last_confirmed=Position(segment_id + 1, -1),
                entries=0,
            )


@st.composite
def lives(draw: st.DrawFn) -> Life:
    """A topic that was split, merged, rolled over and pruned, with operations that failed in between."""
    life = Life.begin(draw(st.integers(1, 5)), draw(st.integers(1, 20)))
    for _ in range(draw(st.integers(0, 8))):
        change = draw(changes(life.layout))
        if draw(st.integers(0, 4)) == 0:
            life.roll_back(change, draw(st.sets(st.sampled_from(change.child_ids))))
            continue
        life.reshape(change, draw(st.integers(0, 2)))
        sealed = [segment.segment_id for segment in life.layout.sealed]
        if draw(st.booleans()):
            life.prune(draw(st.sets(st.sampled_from(sealed), min_size=1)))
    return life


@settings(unhurried, max_examples=150)
@given(lives())
def test_r11_any_history_is_rebuilt(life: Life) -> None:
    """All but the epoch, the next id and the time of sealing is the same; left-overs are told apart."""
    rebuilt = rebuild(list(life.topics.values()))
    assert rebuilt.problem == ""
    assert rebuilt.unfinished is None
    assert rebuilt.layout is not None
    assert dict(rebuilt.layout.segments).keys() == dict(life.layout.segments).keys()
    for segment_id, segment in life.layout.segments.items():
        again = rebuilt.layout.segment(segment_id)
        assert again == replace(segment, sealed_at_epoch=again.sealed_at_epoch, sealed_at_ms=again.sealed_at_ms)
        if segment.child_ids:
            assert again.sealed_at_epoch == segment.sealed_at_epoch
    left_over = {one.topic for one in life.topics.values()} - {
        classic_segment_name(TOPIC, one.hash_range, one.segment_id) for one in life.layout.segments.values()
    }
    assert set(rebuilt.discard) == left_over
    assert rebuilt.layout.epoch <= life.layout.epoch
    assert rebuilt.layout.next_segment_id >= life.layout.next_segment_id, "R9"


@settings(unhurried, max_examples=100)
@given(lives(), st.data())
def test_r11_a_status_lost_while_parents_are_being_sealed(life: Life, data: st.DataObject) -> None:
    """Whatever the seals had reached, the layout is the one before the operation or the one after it."""
    change = data.draw(changes(life.layout))
    before = life.layout
    life.roll_back(change, set(change.child_ids))
    sealed = data.draw(st.sets(st.sampled_from(change.parent_ids)))
    for parent in sealed:
        life.topics[parent] = replace(life.topics[parent], terminated=True)
    rebuilt = rebuild(list(life.topics.values()))
    assert rebuilt.layout is not None, rebuilt.problem
    layout = rebuilt.layout
    if sealed and rebuilt.unfinished is not None:
        assert [one.segment_id for one in layout.active] == [one.segment_id for one in before.active]
        finish = SegmentChange(
            CreatedBy(rebuilt.unfinished.created_by), rebuilt.unfinished.parents, rebuilt.unfinished.children
        )
        layout = layout.apply(finish, now_ms=1)
    after = life.layout.apply(change, now_ms=1) if sealed else before
    assert [one.hash_range for one in layout.active] == [one.hash_range for one in after.active]
    assert [one.segment_id for one in layout.active] == [one.segment_id for one in after.active]


@settings(unhurried, max_examples=60)
@given(lives(), st.randoms(use_true_random=False))
def test_r11_the_order_of_the_topics_does_not_matter(life: Life, rng: object) -> None:
    topics = list(life.topics.values())
    shuffled = list(topics)
    shuffle: Callable[[list[Witness]], None] = getattr(rng, "shuffle")  # noqa: B009
    shuffle(shuffled)
    one, other = rebuild(topics), rebuild(shuffled)
    assert one.layout == other.layout
    assert set(one.discard) == set(other.discard)


def _split_in_progress(*, parent_sealed: bool, entries: int = 0) -> list[Witness]:
    return [
        witness(0, "0000-ffff", operation="create", siblings=(0,), terminated=parent_sealed, entries=5),
        witness(1, "0000-7fff", operation="split", siblings=(1, 2), parents=(0,), epoch=1, entries=entries),
        witness(2, "8000-ffff", operation="split", siblings=(1, 2), parents=(0,), epoch=1),
    ]


def test_r11_an_operation_that_never_reached_its_seal_is_rolled_back() -> None:
    topics = _split_in_progress(parent_sealed=False)
    rebuilt = rebuild(topics)
    assert rebuilt.layout is not None
    assert [segment.segment_id for segment in rebuilt.layout.active] == [0]
    assert set(rebuilt.discard) == {topics[1].topic, topics[2].topic}


def test_r11_children_of_sealed_parents_count() -> None:
    rebuilt = rebuild(_split_in_progress(parent_sealed=True))
    assert rebuilt.layout is not None
    assert [segment.segment_id for segment in rebuilt.layout.active] == [1, 2]
    assert rebuilt.layout.segment(0).sealed_position == "1:4"
    assert not rebuilt.discard


def test_r11_children_that_were_written_to_count_even_if_the_seal_came_undone() -> None:
    """Hazard A1-26680 met by a loss of the status: the messages in the children must not go."""
    rebuilt = rebuild(_split_in_progress(parent_sealed=False, entries=1))
    assert rebuilt.layout is not None
    assert [segment.segment_id for segment in rebuilt.layout.active] == [1, 2]
    assert rebuilt.layout.segment(0).state is SegmentState.SEALED
    assert rebuilt.layout.segment(0).sealed_position is None, "it is to be sealed again"
    assert not rebuilt.discard


def test_r11_children_that_have_children_count_even_if_the_seal_came_undone() -> None:
    first, second, third = _split_in_progress(parent_sealed=False)
    merged = witness(3, "0000-ffff", operation="merge", siblings=(3,), parents=(1, 2), epoch=2)
    topics = [first, replace(second, terminated=True), replace(third, terminated=True), merged]
    rebuilt = rebuild(topics)
    assert rebuilt.layout is not None
    assert [segment.segment_id for segment in rebuilt.layout.active] == [3]
    assert [segment.segment_id for segment in rebuilt.layout.sealed] == [0, 1, 2]


def test_r11_a_half_sealed_operation_is_to_be_finished() -> None:
    topics = [
        witness(0, "0000-7fff", operation="create", siblings=(0, 1), terminated=True, entries=3),
        witness(1, "8000-ffff", operation="create", siblings=(0, 1), entries=3),
        witness(2, "0000-ffff", operation="merge", siblings=(2,), parents=(0, 1), epoch=1),
    ]
    rebuilt = rebuild(topics)
    assert rebuilt.layout is not None
    assert [segment.segment_id for segment in rebuilt.layout.active] == [0, 1]
    assert rebuilt.unfinished == UnfinishedSeal(
        "merge", CreatedBy.MERGE, (0, 1), (PlannedSegment(2, HashRange.full(), 1, 0),)
    )
    change = SegmentChange(CreatedBy.MERGE, rebuilt.unfinished.parents, rebuilt.unfinished.children)
    assert rebuilt.layout.apply(change, now_ms=1).active[0].segment_id == 2


def _half_sealed_migration(*made: Witness) -> list[Witness]:
    """Of two partitions one is sealed, and these are their children."""
    source = MigratedFrom(2, MADE_AT_MS)
    partitions = [
        Witness(legacy_record(number, source, CLAIM), topic, number == 0, Position(number, 4), 5, is_legacy=True)
        for number, topic in enumerate(source.topics(TOPIC))
    ]
    return [*partitions, *made]


def test_r11_a_half_sealed_migration_is_to_be_finished() -> None:
    children = [
        witness(number, part, operation="migrate", siblings=(2, 3), parents=(0, 1))
        for number, part in ((2, "0000-7fff"), (3, "8000-ffff"))
    ]
    rebuilt = rebuild(_half_sealed_migration(*children))
    assert rebuilt.unfinished is not None
    assert [child.segment_id for child in rebuilt.unfinished.children] == [2, 3]


@pytest.mark.parametrize("repaired", [False, True])
def test_r11_a_half_sealed_migration_that_lacks_a_segment_is_not_finished_with_those_there_are(repaired: bool) -> None:
    """Somebody deleted one of its segments as the status was lost; maybe drift repair made one again. None of them was
    written to, and the old topics get others.
    """
    operation, siblings = ("repair-3", (3,)) if repaired else ("migrate", (2, 3))
    child = witness(3, "8000-ffff", operation=operation, siblings=siblings, parents=(0, 1))
    rebuilt = rebuild(_half_sealed_migration(child))
    assert rebuilt.unfinished is None
    assert rebuilt.discard == (child.topic,)
    assert rebuilt.layout is not None
    assert rebuilt.layout.is_synthetic
    assert rebuilt.layout.next_segment_id > 3, "its ids are not given out again (R9)"


def test_r11_of_two_sets_of_children_the_later_wins_if_the_other_is_empty() -> None:
    topics = _split_in_progress(parent_sealed=True)
    again = witness(3, "0000-ffff", operation="rollover", siblings=(3,), parents=(0,), epoch=1, entries=2)
    rebuilt = rebuild([*topics, again])
    assert rebuilt.layout is not None
    assert [segment.segment_id for segment in rebuilt.layout.active] == [3]
    assert set(rebuilt.discard) == {topics[1].topic, topics[2].topic}


def test_r11_two_sets_of_children_that_overlap_in_part_are_rivals_too() -> None:
    topics = [
        witness(0, "0000-7fff", operation="create", siblings=(0, 1), terminated=True),
        witness(1, "8000-ffff", operation="create", siblings=(0, 1), terminated=True),
        witness(2, "0000-3fff", operation="split", siblings=(2, 3), parents=(0,), epoch=1),
        witness(4, "0000-ffff", operation="merge", siblings=(4,), parents=(0, 1), epoch=1),
    ]
    rebuilt = rebuild(topics)
    assert rebuilt.layout is not None
    assert [segment.segment_id for segment in rebuilt.layout.active] == [4]
    assert rebuilt.discard == (topics[2].topic,)


def test_r11_two_sets_of_children_with_messages_need_a_person() -> None:
    topics = _split_in_progress(parent_sealed=True, entries=4)
    again = witness(3, "0000-ffff", operation="rollover", siblings=(3,), parents=(0,), epoch=1, entries=2)
    rebuilt = rebuild([*topics, again])
    assert rebuilt.layout is None
    assert rebuilt.problem == "segments [1] and [3] both replace [0] and [1] hold messages"
    assert not rebuilt.discard, "nothing may be deleted then"


def test_r11_two_sets_of_first_segments_need_a_person_once_the_earlier_holds_messages() -> None:
    """Ids are given out twice only after a status came back from a backup; found by seed 670 of the simulation."""
    used = witness(0, "0000-ffff", operation="create-again", siblings=(0,), entries=3)
    left = witness(3, "8000-ffff", operation="create", siblings=(2, 3))
    assert rebuild([used, left]).problem == "segments [0] and [3] are both first of their hashes and [0] hold messages"
    rebuilt = rebuild([replace(used, entries=0), witness(1, "0000-ffff", operation="create", siblings=(1,), entries=2)])
    assert rebuilt.layout is not None
    assert [segment.segment_id for segment in rebuilt.layout.active] == [1]


def test_r11_a_sealed_segment_is_known_by_what_covers_its_hashes_when_its_children_are_gone() -> None:
    """The middle generation was empty, so it was pruned first; the oldest still holds messages."""
    topics = [
        witness(0, "0000-ffff", operation="create", siblings=(0,), terminated=True, entries=9),
        witness(3, "0000-ffff", operation="merge", siblings=(3,), parents=(1, 2), epoch=2),
    ]
    rebuilt = rebuild(topics)
    assert rebuilt.layout is not None
    oldest = rebuilt.layout.segment(0)
    assert (oldest.state, oldest.child_ids, oldest.sealed_position) == (SegmentState.SEALED, (), "1:8")
    assert oldest.sealed_at_ms >= rebuilt.layout.segment(3).created_at_ms, "not too early for its retention"


def test_r11_an_idle_segment_of_a_creation_whose_others_were_pruned_counts() -> None:
    topics = [
        witness(1, "8000-ffff", operation="create", siblings=(0, 1)),
        witness(2, "0000-3fff", operation="split", siblings=(2, 3), parents=(0,), epoch=1),
        witness(3, "4000-7fff", operation="split", siblings=(2, 3), parents=(0,), epoch=1),
    ]
    rebuilt = rebuild(topics)
    assert rebuilt.layout is not None
    assert [segment.segment_id for segment in rebuilt.layout.active] == [2, 3, 1]


def test_r11_a_segment_that_drift_repair_made_again_belongs_to_its_siblings() -> None:
    repaired = replace(
        witness(1, "0000-7fff", operation="repair-1", siblings=(1,), parents=(0,), epoch=1, entries=1),
    )
    first, _, third = _split_in_progress(parent_sealed=True)
    rebuilt = rebuild([first, repaired, third])
    assert rebuilt.layout is not None
    assert [segment.segment_id for segment in rebuilt.layout.active] == [1, 2]


def test_r11_what_an_interrupted_creation_left_behind_is_no_topic() -> None:
    topics = [
        witness(0, "0000-3fff", operation="create", siblings=(0, 1, 2, 3)),
        witness(2, "8000-bfff", operation="create", siblings=(0, 1, 2, 3)),
    ]
    rebuilt = rebuild(topics)
    assert (rebuilt.layout, rebuilt.problem) == (None, "")
    assert set(rebuilt.discard) == {one.topic for one in topics}
    assert next_unused_id([one.record for one in topics]) == 4, "R9: those under way have ids of their own"


def test_r11_a_merge_rolled_back_is_not_finished_after_one_of_its_parents_was_replaced() -> None:
    """Its child appeared late and stayed; segment 9, which replaced parent 4, was pruned since."""
    topics = [
        witness(4, "0000-3fff", operation="split", siblings=(4, 5), terminated=True),
        witness(5, "4000-ffff", operation="split", siblings=(4, 5)),
        witness(7, "0000-ffff", operation="merge", siblings=(7,), parents=(4, 5)),
        witness(10, "0000-3fff", operation="rebucket", siblings=(10,), parents=(9,)),
    ]
    rebuilt = rebuild(topics)
    assert rebuilt.unfinished is None
    assert rebuilt.layout is not None
    assert [segment.segment_id for segment in rebuilt.layout.active] == [10, 5]
    assert rebuilt.discard == (topics[2].topic,)


def test_r11_a_hole_that_held_messages_needs_a_person() -> None:
    topics = [witness(0, "0000-3fff", operation="create", siblings=(0, 1), entries=1)]
    rebuilt = rebuild(topics)
    assert rebuilt.layout is None
    assert "no active segment covers [4000, ffff]" in rebuilt.problem
    assert not rebuilt.discard


def test_r11_a_split_that_was_interrupted_is_rolled_back_whoever_sealed_its_parent() -> None:
    """Somebody terminated the segment (hazard B1) that was being split, and only one child was made."""
    parent, child, _ = _split_in_progress(parent_sealed=True)
    rebuilt = rebuild([parent, child])
    assert rebuilt.layout is not None
    assert [segment.segment_id for segment in rebuilt.layout.active] == [0], "drift repair rolls it over"
    assert rebuilt.discard == (child.topic,)


def test_r11_a_child_that_is_missing_beside_one_that_was_written_to_needs_a_person() -> None:
    parent, child, _ = _split_in_progress(parent_sealed=True, entries=1)
    rebuilt = rebuild([parent, child])
    assert rebuilt.layout is None
    assert "no active segment covers [8000, ffff]" in rebuilt.problem


@pytest.mark.parametrize(
    ("next_segment_id", "uncommitted", "children_used", "parent_sealed", "expected"),
    [
        pytest.param(3, (), True, True, False, id="the record knows them"),
        pytest.param(1, (), True, True, True, id="it does not, and they were written to"),
        pytest.param(1, (), True, False, True, id="even if the seal came undone"),
        pytest.param(1, (), False, True, True, id="their parent was sealed for them"),
        pytest.param(1, (), False, False, False, id="a forgotten operation left them behind"),
        pytest.param(3, (1, 2), False, True, False, id="the journal is about to make them"),
        pytest.param(3, (1, 2), True, True, True, id="the journal says nobody knows them, and they were written to"),
    ],
)
def test_r11_a_record_older_than_the_segments_is_recognised(
    next_segment_id: int, uncommitted: tuple[int, ...], children_used: bool, parent_sealed: bool, expected: bool
) -> None:
    """A status restored from a backup would make the brokers repeat what was done since."""
    topics = _split_in_progress(parent_sealed=parent_sealed, entries=int(children_used))
    assert outdated(next_segment_id, uncommitted, topics) == expected


def test_r11_nothing_to_rebuild_from() -> None:
    assert rebuild([]).problem == "no segment of the topic carries a record"


def test_r16_cursors_that_the_last_operation_did_not_carry_over_are_named() -> None:
    first, second, third = _split_in_progress(parent_sealed=True)
    topics = [
        replace(first, subscriptions=frozenset({"early", "late"})),
        replace(second, subscriptions=frozenset({"early"})),
        replace(third, subscriptions=frozenset({"early", "late", "own"})),
    ]
    assert rebuild(topics).carry_over == {second.topic: frozenset({"late"})}


def test_r17_cursors_missing_on_older_segments_are_not_made_again() -> None:
    """Only the last operation can have died before its commit; elsewhere a missing cursor was lost."""
    first, second, third = _split_in_progress(parent_sealed=True)
    topics = [
        replace(first, subscriptions=frozenset({"lost"})),
        replace(second, terminated=True, subscriptions=frozenset({"kept"})),
        third,
        witness(3, "0000-3fff", operation="again", siblings=(3, 4), parents=(1,), epoch=2, subscriptions=("kept",)),
        witness(4, "4000-7fff", operation="again", siblings=(3, 4), parents=(1,), epoch=2),
    ]
    rebuilt = rebuild(topics)
    assert rebuilt.carry_over == {topics[4].topic: frozenset({"kept"})}


def test_r9_ids_used_by_forgotten_operations_are_skipped() -> None:
    rebuilt = rebuild(_split_in_progress(parent_sealed=True))
    assert rebuilt.layout is not None
    assert rebuilt.layout.next_segment_id == 3 + ID_GAP


def test_r11_only_the_last_operation_can_be_half_sealed() -> None:
    """One queue a topic (R10): an earlier one had ended before, so what it left behind is no operation."""
    initial = [
        witness(number, part, operation="create", siblings=(0, 1, 2, 3), terminated=number % 2 == 0)
        for number, part in enumerate(("0000-3fff", "4000-7fff", "8000-bfff", "c000-ffff"))
    ]
    earlier = witness(4, "0000-7fff", operation="one", siblings=(4,), parents=(0, 1), epoch=1)
    later = witness(5, "8000-ffff", operation="two", siblings=(5,), parents=(2, 3), epoch=1)
    rebuilt = rebuild([*initial, earlier, later])
    assert rebuilt.unfinished is not None
    assert rebuilt.unfinished.operation_id == "two"
    assert rebuilt.discard == (earlier.topic,)


@pytest.mark.parametrize("later_parent_sealed", [False, True])
def test_r11_what_a_rolled_back_operation_left_behind_is_not_taken_for_a_seal(later_parent_sealed: bool) -> None:
    """A merge of 0 and 1 was rolled back and its late topic stayed; then a merge of 1 and 2 sealed 1."""
    topics = [
        witness(0, "0000-3fff", operation="create", siblings=(0, 1, 2), entries=1),
        witness(1, "4000-7fff", operation="create", siblings=(0, 1, 2), entries=1, terminated=True),
        witness(2, "8000-ffff", operation="create", siblings=(0, 1, 2), entries=1, terminated=later_parent_sealed),
        witness(3, "0000-7fff", operation="rolled back", siblings=(3,), parents=(0, 1), epoch=1),
        witness(4, "4000-ffff", operation="later", siblings=(4,), parents=(1, 2), epoch=1),
    ]
    rebuilt = rebuild(topics)
    assert rebuilt.layout is not None
    assert rebuilt.discard == (topics[3].topic,)
    assert [segment.segment_id for segment in rebuilt.layout.active] == ([0, 4] if later_parent_sealed else [0, 1, 2])
    assert (rebuilt.unfinished is None) == later_parent_sealed
