"""The checker of guarantees can fail: each fault it knows is found, and only that one."""

from __future__ import annotations

import pytest

from scalable_topics.layout import HashRange, SegmentLayout, key_hash, segment_hash
from tests.support.guarantee_checker import Findings, Latencies, Numbered, StoredSegment, check, near_changes
from tests.support.guarantee_plan import PlannedChange, plan_changes, plan_segment_change

LOW, HIGH = HashRange.parse_descriptor("0000-7fff"), HashRange.parse_descriptor("8000-ffff")
KEY = next(f"k{n}" for n in range(100) if segment_hash(key_hash(f"k{n}")) < 0x8000)
SENT = [Numbered("p", KEY, number) for number in range(6)]


def found(
    parent: list[Numbered] | None,
    child: list[Numbered],
    *,
    received: list[Numbered] | None = None,
    acknowledged: list[Numbered] | None = None,
) -> Findings:
    """Check a parent and one of its children."""
    segments = [StoredSegment(1, LOW, child), StoredSegment(0, HashRange.full(), parent)]
    return check(SENT, acknowledged or SENT, segments, SENT if received is None else received)


def test_everything_once_and_in_order_is_well() -> None:
    assert not found(SENT[:3], SENT[3:])


def test_lost() -> None:
    findings = found(SENT[:3], SENT[4:])
    assert findings == Findings(lost=[SENT[3]])
    assert "lost 1" in str(findings)


def test_what_was_never_acknowledged_is_not_lost() -> None:
    assert not found(SENT[:3], SENT[4:], acknowledged=[message for message in SENT if message != SENT[3]])


def test_duplicated_within_a_segment_and_across() -> None:
    assert found([*SENT[:3], SENT[2]], SENT[3:]) == Findings(duplicated=[SENT[2]])
    assert found(SENT[:3], SENT[2:]) == Findings(duplicated=[SENT[2]])


def test_disordered_within_a_segment_and_across() -> None:
    assert found([SENT[1], SENT[0], SENT[2]], SENT[3:]) == Findings(disordered=[SENT[0]])
    assert found([*SENT[:2], SENT[3]], [SENT[2], *SENT[4:]]) == Findings(disordered=[SENT[2]])


def test_other_producers_have_an_order_of_their_own() -> None:
    others = [Numbered("q", KEY, number) for number in range(6)]
    stored = [*others[3:], *SENT]
    findings = check([*SENT, *others], SENT, [StoredSegment(0, LOW, stored)], SENT)
    assert not findings


def test_misrouted() -> None:
    assert check(SENT, SENT, [StoredSegment(0, HIGH, SENT)], SENT).misrouted == [(message, 0) for message in SENT]


def test_unreceived() -> None:
    assert found(SENT[:3], SENT[3:], received=SENT[1:]) == Findings(unreceived=[SENT[0]])


def test_strange() -> None:
    stranger = Numbered("x", KEY, 0)
    assert found(SENT[:3], [*SENT[3:], stranger]) == Findings(strange=[stranger])


def test_what_was_received_from_a_pruned_segment_is_not_lost() -> None:
    assert not found(None, SENT[3:])
    assert found(None, SENT[3:], received=SENT[1:]) == Findings(lost=[SENT[0]], unreceived=[SENT[0]])


def test_payloads_are_read_back_whatever_their_size() -> None:
    for size_bytes in (0, 200):
        assert Numbered.parse(SENT[3].payload(size_bytes)) == SENT[3]
    assert len(SENT[3].payload(200)) == 200
    with pytest.raises(ValueError, match="unpack"):
        Numbered.parse(b"something else")


def test_latencies_are_told_apart_by_the_changes() -> None:
    sends = [(0.0, 0.01), (4.0, 1.5), (5.5, 0.02), (9.0, 0.03)]
    near, quiet = near_changes(sends, [(5.0, 6.0)], 1.0)
    assert (near.count, near.max_seconds) == (2, 1.5)
    assert (quiet.count, quiet.max_seconds) == (2, 0.03)
    assert Latencies.of([]) == Latencies(0, 0.0, 0.0, 0.0)
    spread = Latencies.of(number / 100 for number in range(101))
    assert (spread.p50_seconds, spread.p99_seconds, spread.max_seconds) == (0.5, 0.99, 1.0)


def test_a_plan_is_repeated_by_its_seed() -> None:
    plan = plan_changes(7, seconds=20, every_seconds=2)
    assert plan == plan_changes(7, seconds=20, every_seconds=2)
    assert plan != plan_changes(8, seconds=20, every_seconds=2)
    assert [change.at_seconds for change in plan] == sorted(change.at_seconds for change in plan)
    assert plan[0].kind == "split"
    assert {change.kind for seed in range(5) for change in plan_changes(seed, seconds=20, every_seconds=2)} == {
        "split",
        "merge",
    }


def test_a_planned_change_fits_the_layout_there_is() -> None:
    one = SegmentLayout.initial(1)
    merge = PlannedChange(0.0, "merge", 0.99)
    split = plan_segment_change(one, merge, most_active=4)
    assert split is not None
    assert split.parent_ids == (0,)
    two = one.reserve(split).apply(split, now_ms=0)
    merged = plan_segment_change(two, merge, most_active=4)
    assert merged is not None
    assert merged.parent_ids == (1, 2)
    full = plan_segment_change(two, PlannedChange(0.0, "split", 0.0), most_active=2)
    assert full is not None
    assert full.parent_ids == (1, 2)
    assert plan_segment_change(one, merge, most_active=1) is None
