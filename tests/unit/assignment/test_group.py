"""The consumers of a subscription: two-phase hand-over, incarnations and versions (DESIGN §9, R7, R18, R21)."""

from __future__ import annotations

from dataclasses import replace

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.assignment.group import Group, Member, Version

LAYOUT = SegmentLayout.initial(4)
AT = "2026-11-29T10:00:00Z"


def _joined(*names: str, layout: SegmentLayout = LAYOUT) -> Group:
    group = Group()
    for name in names:
        group = group.join(name, f"{name}-1", (), AT)
    return group.settle(layout, 1)


def _assigned(group: Group) -> dict[str, list[int]]:
    return {name: sorted(member.assigned) for name, member in group.members.items()}


def _releasing(group: Group) -> dict[str, list[int]]:
    return {name: sorted(member.releasing) for name, member in group.members.items() if member.releasing}


def test_a_segment_moves_only_after_its_reader_has_let_go() -> None:
    alone = _joined("a")
    taken = alone.join("b", "b-1", (), AT).settle(LAYOUT, 1)
    assert _assigned(taken) == {"a": [0, 1], "b": []}
    assert _releasing(taken) == {"a": [2, 3]}
    half = taken.release("a", "a-1", [2]).settle(LAYOUT, 1)
    assert _assigned(half) == {"a": [0, 1], "b": [2]}
    whole = half.release("a", "a-1", [3]).settle(LAYOUT, 1)
    assert _assigned(whole) == {"a": [0, 1], "b": [2, 3]}
    assert alone.version < taken.version < half.version < whole.version


def test_what_a_former_incarnation_releases_counts_for_nothing() -> None:
    """Hazard A3-26433b."""
    taken = _joined("a").join("b", "b-1", (), AT).settle(LAYOUT, 1)
    assert taken.release("a", "a-0", [2, 3]) == taken
    assert taken.release("nobody", "a-1", [2]) == taken


def test_only_the_present_incarnation_leaves() -> None:
    """Hazard A3-26433b."""
    again = _joined("a", "b").join("a", "a-2", (), AT)
    assert again.leave("a", "a-1") == again
    assert again.leave("a", "a-2").settle(LAYOUT, 1).members.keys() == {"b"}


def test_a_consumer_that_comes_back_has_what_it_had_and_nobody_is_disturbed() -> None:
    group = _joined("a", "b")
    back = group.join("a", "a-1", [0, 1], AT).settle(LAYOUT, 1)
    restarted = group.join("a", "a-2", (), AT).settle(LAYOUT, 1)
    assert back == group
    assert _assigned(restarted) == _assigned(group)
    assert restarted.version == group.version


def test_what_was_taken_is_released_by_a_consumer_that_comes_back_without_it() -> None:
    taken = _joined("a").join("b", "b-1", (), AT).settle(LAYOUT, 1)
    back = taken.join("a", "a-2", [3], AT).settle(LAYOUT, 1)
    assert _releasing(back) == {"a": [3]}
    assert _assigned(back)["b"] == [2]


def test_r7_a_forgotten_consumer_keeps_what_it_holds_and_nobody_else_reads() -> None:
    back = Group().join("b", "b-1", [0, 3], AT).join("c", "c-1", [0, 1], AT).settle(LAYOUT, 1)
    assert _assigned(back) == {"b": [0, 3], "c": [1, 2]}


def test_what_nobody_may_read_is_taken_from_one_that_says_it_holds_it() -> None:
    layout = SegmentLayout.initial(1).split(0, now_ms=1)
    group = Group().join("a", "a-1", [1, 2], AT).settle(layout, 1)
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
    gone = taken.release("a", "a-1", [1, 2]).release("b", "b-1", [1, 2])
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
