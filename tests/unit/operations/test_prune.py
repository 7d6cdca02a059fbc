"""When a sealed segment may go (R17, R19)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scalable_topics.layout import Segment
from scalable_topics_operator.operations.protocols import Position, SegmentLook
from scalable_topics_operator.operations.prune import PruneFinding, drained, judge_segment
from tests.unit.operations.builders import MADE_AT_MS, cursor, sealed_look, sealed_segment

HOUR_LATER_MS = MADE_AT_MS + 3_600_000


@pytest.mark.parametrize(
    ("end", "mark_delete", "backlog", "expected"),
    [
        pytest.param("7:9", "7:9", 0, True, id="the last entry is acknowledged"),
        pytest.param("7:9", "7:8", 1, False, id="the last entry is not"),
        pytest.param("7:9", "7:-1", 10, False, id="nothing is"),
        pytest.param("7:9", "8:-1", 0, True, id="a cursor that moved on to a later ledger"),
        pytest.param("7:9", "6:99", 10, False, id="a cursor in an earlier ledger"),
        pytest.param("7:-1", "7:-1", 0, True, id="an empty segment"),
        pytest.param("8:-1", "7:9", 0, True, id="an empty last ledger, all read"),
        pytest.param("8:-1", "7:8", 1, False, id="an empty last ledger, one entry left"),
        pytest.param("7:9", "7:8", 0, False, id="a backlog of 0 alone proves nothing"),
        pytest.param("7:0", "7:-1", 1, False, id="one entry, unread"),
        pytest.param("7:0", "7:0", 0, True, id="one entry, read"),
    ],
)
def test_r17_drained_is_read_to_the_sealed_position(end: str, mark_delete: str, backlog: int, expected: bool) -> None:
    look = sealed_look({"reader": cursor(mark_delete, backlog=backlog)}, end=end)
    assert drained(look, Position.parse(end), "reader") == expected


def _judge(
    segment: Segment | None = None,
    look: SegmentLook | None = None,
    *,
    declared: frozenset[str] = frozenset(),
    now_ms: int = HOUR_LATER_MS,
    retention_minutes: int = 0,
) -> PruneFinding:
    return judge_segment(
        segment or sealed_segment(),
        look,
        declared=declared,
        now_ms=now_ms,
        retention_minutes=retention_minutes,
        settle_window_seconds=600,
    )


def test_r19_a_drained_segment_past_everything_may_go() -> None:
    look = sealed_look({"reader": cursor("7:9"), "declared": cursor("7:9")})
    assert _judge(look=look, declared=frozenset({"declared"})) == PruneFinding(0)


def test_r19_a_segment_without_subscriptions_may_go() -> None:
    assert _judge(look=sealed_look({})) == PruneFinding(0)


def test_r19_a_segment_without_a_topic_may_go() -> None:
    """Nothing keeps its record: what it held is lost already and was told of."""
    assert _judge(look=None, declared=frozenset({"declared"})) == PruneFinding(0)


@pytest.mark.parametrize(
    ("segment", "look"),
    [
        pytest.param(sealed_segment(), sealed_look({}, terminated=False), id="open"),
        pytest.param(sealed_segment(None), sealed_look({}), id="its end was never recorded"),
        pytest.param(sealed_segment("7:9"), sealed_look({}, end="7:10"), id="it grew after its end was recorded"),
        pytest.param(sealed_segment("7:9"), sealed_look({}, end="8:-1"), id="it was open and rolled over"),
    ],
)
def test_r14_an_unverified_seal_blocks(segment: Segment, look: SegmentLook) -> None:
    """Hazard A1-26680: entries may lie behind the recorded position, and a cursor at it has not read them."""
    finding = _judge(segment, look)
    assert (finding.blocked_by, finding.drained) == ("its seal is not verified", False)


def test_r14_entries_behind_the_recorded_end_are_not_pruned_away() -> None:
    look = sealed_look({"reader": cursor("7:9", backlog=1)}, end="7:10")
    assert _judge(look=look).blocked_by


def test_r17_an_undrained_subscription_blocks() -> None:
    """Hazard B4: one that nobody declared, too."""
    look = sealed_look({"reader": cursor("7:8", backlog=1), "done": cursor("7:9")})
    finding = _judge(look=look)
    assert finding == PruneFinding(0, "subscription reader has not drained it (1 entries left)", drained=False)


def test_r16_a_cursor_that_does_not_count_does_not_block() -> None:
    look = sealed_look({"a-reader": cursor("7:-1", backlog=10, counts=False)})
    assert _judge(look=look) == PruneFinding(0)


def test_r16_a_declared_subscription_counts_whatever_its_cursor_is() -> None:
    look = sealed_look({"declared": cursor("7:-1", backlog=10, counts=False)})
    assert "declared has not drained it" in _judge(look=look, declared=frozenset({"declared"})).blocked_by


def test_r17_a_declared_subscription_that_lost_its_cursor_blocks() -> None:
    finding = _judge(look=sealed_look({}), declared=frozenset({"declared"}))
    assert finding == PruneFinding(0, "subscription declared has lost its cursor on it", drained=False)


@pytest.mark.parametrize(
    ("age_seconds", "retention_minutes", "blocked_by"),
    [
        (0, 0, "sealed 0 s ago; it stays 600 s for unknown sends"),
        (599, 0, "sealed 599 s ago; it stays 600 s for unknown sends"),
        (600, 0, ""),
        (600, 10, ""),
        (600, 11, "its retention of 11 min is not over"),
        (659, 11, "its retention of 11 min is not over"),
        (660, 11, ""),
        (10**9, -1, "its retention is without end"),
    ],
)
def test_r19_settle_window_and_retention(age_seconds: int, retention_minutes: int, blocked_by: str) -> None:
    """R15: the settle window holds even without retention; a negative retention never ends."""
    look = sealed_look({"reader": cursor("7:9")})
    now_ms = MADE_AT_MS + age_seconds * 1000
    finding = _judge(look=look, now_ms=now_ms, retention_minutes=retention_minutes)
    assert finding == PruneFinding(0, blocked_by), "and it is drained, so that its successors need not wait"


def test_r17_positions_compare_as_numbers() -> None:
    assert Position.parse("10:2") > Position.parse("9:11")
    assert Position.parse("7:10") > Position.parse("7:9")
    assert str(Position.parse("7:-1")) == "7:-1"
    with pytest.raises(ValueError, match="invalid literal"):
        Position.parse("7")


def test_judging_changes_nothing() -> None:
    segment = sealed_segment()
    before = replace(segment)
    _judge(segment, sealed_look({"reader": cursor("7:9")}))
    assert segment == before
