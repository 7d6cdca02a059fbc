"""The consumers of a subscription: two-phase hand-over, incarnations and versions (DESIGN §9, R7, R18, R21)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from scalable_topics.layout import Part, SegmentLayout
from scalable_topics_operator.assignment.group import Group, Member, Version

LAYOUT = SegmentLayout.initial(4)
AT = "2026-11-29T10:00:00Z"


def _joined(*names: str, layout: SegmentLayout = LAYOUT) -> Group:
    group = Group()
    for name in names:
        group = group.join(name, f"{name}-1", (), AT)
    return group.settle(layout, 1)


def _assigned(group: Group) -> dict[str, list[Any]]:
    return {name: _shown(member.assigned) for name, member in group.members.items()}


def _releasing(group: Group) -> dict[str, list[Any]]:
    return {name: _shown(member.releasing) for name, member in group.members.items() if member.releasing}


def _shown(parts: Iterable[Part]) -> list[Any]:
    """Whole segments by their ids, and buckets as they are."""
    return sorted((part.segment_id if part.is_whole else part for part in parts), key=str)


def _whole(*ids: int) -> list[Part]:
    return [Part(one) for one in ids]


def test_a_segment_moves_only_after_its_reader_has_let_go() -> None:
    alone = _joined("a")
    taken = alone.join("b", "b-1", (), AT).settle(LAYOUT, 1)
    assert _assigned(taken) == {"a": [0, 1], "b": []}
    assert _releasing(taken) == {"a": [2, 3]}
    half = taken.release("a", "a-1", _whole(2)).settle(LAYOUT, 1)
    assert _assigned(half) == {"a": [0, 1], "b": [2]}
    whole = half.release("a", "a-1", _whole(3)).settle(LAYOUT, 1)
    assert _assigned(whole) == {"a": [0, 1], "b": [2, 3]}
    assert alone.version < taken.version < half.version < whole.version


def test_what_a_former_incarnation_releases_counts_for_nothing() -> None:
    """Hazard A3-26433b."""
    taken = _joined("a").join("b", "b-1", (), AT).settle(LAYOUT, 1)
    assert taken.release("a", "a-0", _whole(2, 3)) == taken
    assert taken.release("nobody", "a-1", _whole(2)) == taken


def test_only_the_present_incarnation_leaves() -> None:
    """Hazard A3-26433b."""
    again = _joined("a", "b").join("a", "a-2", (), AT)
    assert again.leave("a", "a-1") == again
    assert again.leave("a", "a-2").settle(LAYOUT, 1).members.keys() == {"b"}


def test_a_consumer_that_comes_back_has_what_it_had_and_nobody_is_disturbed() -> None:
    group = _joined("a", "b")
    back = group.join("a", "a-1", _whole(0, 1), AT).settle(LAYOUT, 1)
    restarted = group.join("a", "a-2", (), AT).settle(LAYOUT, 1)
    assert back == group
    assert _assigned(restarted) == _assigned(group)
    assert restarted.version == group.version


def test_what_was_taken_is_released_by_a_consumer_that_comes_back_without_it() -> None:
    taken = _joined("a").join("b", "b-1", (), AT).settle(LAYOUT, 1)
    back = taken.join("a", "a-2", _whole(3), AT).settle(LAYOUT, 1)
    assert _releasing(back) == {"a": [3]}
    assert _assigned(back)["b"] == [2]


def test_r7_a_forgotten_consumer_keeps_what_it_holds_and_nobody_else_reads() -> None:
    back = Group().join("b", "b-1", _whole(0, 3), AT).join("c", "c-1", _whole(0, 1), AT).settle(LAYOUT, 1)
    assert _assigned(back) == {"b": [0, 3], "c": [1, 2]}


def test_what_nobody_may_read_is_taken_from_one_that_says_it_holds_it() -> None:
    layout = SegmentLayout.initial(1).split(0, now_ms=1)
    group = Group().join("a", "a-1", _whole(1, 2), AT).settle(layout, 1)
    assert _assigned(group) == {"a": [0]}
    assert _releasing(group) == {"a": [1, 2]}


def test_a_child_goes_to_the_reader_of_its_parent() -> None:
    layout = SegmentLayout.initial(2)
    group = _joined("a", "b", layout=layout)
    layout = layout.split(1, now_ms=1)
    assert group.settle(layout, 1) == group
    drained = group.with_drained([1]).settle(layout, 1)
    assert _assigned(drained) == {"a": [0], "b": [2, 3]}
    assert _releasing(drained) == {}
    assert drained.version == Version(1, 1, 0)


def test_a_drained_segment_is_taken_and_its_parent_waited_for() -> None:
    """Hazard A2-26434f."""
    layout = SegmentLayout.initial(2).merge([0, 1], now_ms=1)
    group = _joined("a", "b", layout=layout)
    first = group.with_drained([0]).settle(layout, 1)
    assert _assigned(first) == {"a": [], "b": [1]}
    assert first.version > group.version
    both = first.with_drained([1]).settle(layout, 1)
    assert _assigned(both) == {"a": [], "b": [2]}


def test_pruned_segments_are_forgotten() -> None:
    """Hazard A3-25719."""
    layout = SegmentLayout.initial(1).split(0, now_ms=1)
    group = _joined("a", layout=layout).with_drained([0]).settle(layout, 1)
    pruned = group.settle(layout.prune([0]), 1)
    assert pruned.drained == frozenset()
    assert _assigned(pruned) == _assigned(group)


def test_r18_everything_is_taken_before_cursors_move_and_dealt_again_under_the_barrier() -> None:
    """Hazard A3-26274."""
    layout = SegmentLayout.initial(1).split(0, now_ms=1)
    group = _joined("a", "b", layout=layout).with_drained([0]).settle(layout, 1)
    taken = group.withhold(1)
    assert all(not member.assigned for member in taken.members.values())
    assert taken.version > group.version
    gone = taken.release("a", "a-1", _whole(1, 2)).release("b", "b-1", _whole(1, 2))
    again = gone.start_again().settle(layout, 1)
    assert [assigned for assigned in _assigned(again).values() if assigned] == [[0]]


def test_one_that_is_away_and_reads_nothing_lets_go_without_leaving() -> None:
    group = _joined("a", "b").withhold(1).let_go("a")
    assert group.members["a"] == Member("a", "a-1", AT)
    assert group.let_go("nobody") == group


def test_a_new_term_orders_before_everything() -> None:
    """Hazard A3-26273."""
    group = _joined("a")
    later = group.join("b", "b-1", (), AT).settle(LAYOUT, 2)
    assert later.version == Version(2, 0, 0)
    assert replace(later.version, term=3) > Version(2, 9, 9)


SHARED = SegmentLayout.initial(1, bucket_budget=4)


def _sharing(*names: str, layout: SegmentLayout = SHARED) -> Group:
    group = Group()
    for name in names:
        group = group.join(name, f"{name}-1", (), AT, shares=True)
    return group.settle(layout, 1)


def _all_let_go(group: Group, layout: SegmentLayout, *, fans_out: bool = True) -> Group:
    for name, member in group.members.items():
        group = group.release(name, member.incarnation, member.releasing)
    return group.settle(layout, 1, fans_out=fans_out)


def _buckets(segment: int, *buckets: int) -> list[Part]:
    return [Part(segment, bucket) for bucket in buckets]


def test_a_segment_becomes_shared_once_its_reader_has_let_go_of_the_whole() -> None:
    """Brokers take nobody with Key_Shared beside Exclusive, and keys must not have two readers (pip-486).

    Hazard A4-26208b.
    """
    taken = _sharing("a").join("b", "b-1", (), AT, shares=True).settle(SHARED, 1)
    assert _assigned(taken) == {"a": [], "b": []}
    assert _releasing(taken) == {"a": [0]}
    shared = _all_let_go(taken, SHARED)
    assert _assigned(shared) == {"a": _buckets(0, 0, 1), "b": _buckets(0, 2, 3)}
    assert _releasing(shared) == {}


def test_a_segment_is_read_whole_again_once_all_its_buckets_are_let_go_of() -> None:
    shared = _sharing("a", "b", "c")
    left = shared.leave("c", "c-1").leave("b", "b-1").settle(SHARED, 1)
    assert _assigned(left) == {"a": []}
    assert _releasing(left) == {"a": _buckets(0, 0, 1)}
    half = left.release("a", "a-1", _buckets(0, 0)).settle(SHARED, 1)
    assert _assigned(half) == {"a": []}
    assert _assigned(_all_let_go(half, SHARED)) == {"a": [0]}


def test_a_bucket_moves_only_after_its_reader_has_let_go_and_others_stay() -> None:
    """Hazard A4-26208c."""
    taken = _sharing("a", "b").join("c", "c-1", (), AT, shares=True).settle(SHARED, 1)
    assert _assigned(taken) == {"a": _buckets(0, 0, 1), "b": _buckets(0, 2), "c": []}
    assert _releasing(taken) == {"b": _buckets(0, 3)}
    assert _assigned(_all_let_go(taken, SHARED)) == {
        "a": _buckets(0, 0, 1),
        "b": _buckets(0, 2),
        "c": _buckets(0, 3),
    }


@pytest.mark.parametrize("how", ["leaves", "is removed", "has begun anew", "came back without it"])
def test_a_bucket_that_moves_comes_to_the_next_however_its_reader_goes(how: str) -> None:
    """Hazards A4-26208a and A4-26208d."""
    taken = _sharing("a", "b").join("c", "c-1", (), AT, shares=True).settle(SHARED, 1)
    match how:
        case "leaves":
            gone = taken.leave("b", "b-1")
        case "is removed":
            gone = taken.without("b")
        case "has begun anew":
            gone = taken.join("b", "b-2", (), AT, shares=True)
        case _:
            gone = taken.join("b", "b-1", _buckets(0, 2), AT, shares=True)
    after = gone.settle(SHARED, 1)
    assert Part(0, 3) in after.members["c"].assigned
    assert _releasing(after) == {}


def test_no_more_consumers_share_a_segment_than_it_has_buckets() -> None:
    shared = _sharing(*"abcde")
    assert sorted(len(parts) for parts in _assigned(shared).values()) == [0, 1, 1, 1, 1]
    single = _sharing("a", "b", layout=SegmentLayout.initial(1, bucket_budget=1))
    assert _assigned(single) == {"a": [0], "b": []}


def test_a_consumer_of_an_earlier_release_reads_whole_segments_only() -> None:
    """Beside it nobody reads buckets of the segment, and it waits where all others share (hazard A4-26208e)."""
    first = Group().join("a", "a-1", (), AT).join("b", "b-1", (), AT, shares=True).settle(SHARED, 1)
    assert _assigned(first) == {"a": [0], "b": []}
    shared = _sharing("b", "c").join("a", "a-1", (), AT).settle(SHARED, 1)
    assert _assigned(shared) == {"a": [], "b": _buckets(0, 0, 1), "c": _buckets(0, 2, 3)}
    back = shared.join("b", "b-2", (), AT).settle(SHARED, 1)
    assert sorted(map(str, _assigned(_all_let_go(back, SHARED)).values())) == ["[0]", "[]", "[]"]


def test_a_sealed_segment_is_fanned_out_unless_that_is_switched_off() -> None:
    layout = SHARED.split(0, now_ms=1)
    group = _sharing("a", "b", layout=layout)
    assert _assigned(group) == {"a": _buckets(0, 0, 1), "b": _buckets(0, 2, 3)}
    off = _all_let_go(group.settle(layout, 1, fans_out=False), layout, fans_out=False)
    assert _assigned(off) == {"a": [0], "b": []}
    children = _all_let_go(off.with_drained([0]).settle(layout, 1, fans_out=False), layout, fans_out=False)
    assert _assigned(children) == {"a": [1], "b": [2]}, "these are two, and need not be shared"


def test_those_who_shared_a_segment_share_the_one_that_follows_it() -> None:
    layout = SHARED.rebucket(0, 8, now_ms=1)
    group = _sharing("a", "b", layout=layout)
    after = _all_let_go(group.with_drained([0]).settle(layout, 1), layout)
    assert _assigned(after) == {"a": _buckets(1, 0, 1, 2, 3), "b": _buckets(1, 4, 5, 6, 7)}


def test_children_go_to_those_who_shared_their_parent_before_others() -> None:
    layout = SHARED.split(0, now_ms=1)
    group = _sharing("b", "c", "d", "e", layout=layout)
    assert all(group.members[name].assigned for name in "bcde")
    after = _all_let_go(group.join("a", "a-1", (), AT, shares=True).with_drained([0]).settle(layout, 1), layout)
    assert _assigned(after)["a"] == [], "a child has two buckets, and those who read before keep their keys"
    assert all(after.members[name].assigned for name in "bcde")


def test_buckets_of_a_consumer_that_was_forgotten_are_its_own_unless_somebody_has_the_segment() -> None:
    held = _buckets(0, 1, 3)
    assert Group().join("a", "a-1", held, AT, shares=True).members["a"].assigned == frozenset(held)
    whole = _sharing("b")
    assert whole.join("a", "a-1", held, AT, shares=True).members["a"].assigned == frozenset()
    both = Group().join("a", "a-1", [Part(0), *held], AT, shares=True)
    assert both.members["a"].assigned == {Part(0)}, "of what cannot be, one half is believed"
