"""The pure decisions of operations: names, pruning, the way to a desired count, requests."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import LayoutError, Segment, SegmentLayout, SegmentState
from scalable_topics_operator.operations.claims import Verdict, judge_name
from scalable_topics_operator.operations.context import TopicIntent, TotalPolicies
from scalable_topics_operator.operations.desired import next_change
from scalable_topics_operator.operations.protocols import Claim, CursorLook, NameState, Position, SegmentLook
from scalable_topics_operator.operations.prune import drained, judge_segment
from scalable_topics_operator.operations.requests import MergeRequest, RebucketRequest, SplitRequest, plan

MINE = Claim("installation", "cluster", "uid", "ns", "orders", "Classic")
SEALED_AT_MS = 1_000_000


@pytest.mark.parametrize(
    ("name", "owner_alive", "adopt", "verdict", "reason"),
    [
        (NameState(False), False, False, Verdict.FREE, ""),
        (NameState(True), False, True, Verdict.REFUSED, "NameTaken"),
        (NameState(True, partitions=3), False, True, Verdict.REFUSED, "NameTaken"),
        (NameState(True, claim=MINE), True, False, Verdict.OURS, ""),
        (NameState(True, claim=replace(MINE, resource_uid="old")), False, False, Verdict.RECOVERABLE, ""),
        (NameState(True, claim=replace(MINE, resource_uid="o", released=True)), True, False, Verdict.RECOVERABLE, ""),
        (NameState(True, claim=replace(MINE, resource_uid="other")), True, True, Verdict.REFUSED, "Conflict"),
        (NameState(True, claim=replace(MINE, installation_id="x")), False, False, Verdict.REFUSED, "ClaimedElsewhere"),
        (NameState(True, claim=replace(MINE, kubernetes_uid="x")), False, False, Verdict.REFUSED, "ClaimedElsewhere"),
        (NameState(True, claim=replace(MINE, installation_id="x")), False, True, Verdict.ADOPTABLE, ""),
        (NameState(True, claim=replace(MINE, backend="Native")), True, True, Verdict.REFUSED, "BackendMismatch"),
    ],
)
def test_whose_a_name_is(name: NameState, owner_alive: bool, adopt: bool, verdict: Verdict, reason: str) -> None:
    """R1, R2."""
    judgement = judge_name(name, MINE, owner_alive=owner_alive, adopt=adopt)
    assert (judgement.verdict, judgement.reason) == (verdict, reason)
    assert bool(judgement.message) == (verdict is Verdict.REFUSED)


def cursor(mark_delete: str, backlog: int = 0, *, counts: bool = True) -> CursorLook:
    return CursorLook(counts=counts, mark_delete=Position.parse(mark_delete), backlog=backlog, consumers=0)


def look(cursors: dict[str, CursorLook], *, terminated: bool = True, last: str = "7:9") -> SegmentLook:
    return SegmentLook(
        terminated=terminated,
        last_confirmed=Position.parse(last),
        pending_adds=0,
        entries=10,
        producers=0,
        cursors=cursors,
    )


@pytest.mark.parametrize(
    ("sealed", "mark_delete", "backlog", "expected"),
    [
        ("7:9", "7:9", 0, True),
        ("7:9", "7:8", 1, False),
        ("7:9", "8:-1", 0, True),  # the cursor has moved on to an empty ledger
        ("8:-1", "7:9", 0, True),  # the segment ended in an empty ledger, the cursor stands before it
        ("8:-1", "7:8", 1, False),
        ("7:9", "6:100", 10, False),
    ],
)
def test_drained_at_the_edges_of_ledgers(sealed: str, mark_delete: str, backlog: int, expected: bool) -> None:
    """R17."""
    assert drained(look({"s": cursor(mark_delete, backlog)}), Position.parse(sealed), "s") is expected


def judged(
    seen: SegmentLook | None,
    *,
    declared: frozenset[str] = frozenset(),
    age_seconds: float = 10_000,
    retention_minutes: int = 0,
    sealed_position: str | None = "7:9",
) -> str:
    segment = Segment(
        0,
        SegmentLayout.initial(1).active[0].hash_range,
        state=SegmentState.SEALED,
        child_ids=(1, 2),
        sealed_at_epoch=1,
        sealed_at_ms=SEALED_AT_MS,
        sealed_position=sealed_position,
    )
    return judge_segment(
        segment,
        seen,
        declared=declared,
        now_ms=SEALED_AT_MS + int(age_seconds * 1000),
        retention_minutes=retention_minutes,
        settle_window_seconds=600,
    ).blocked_by


def test_what_is_drained_settled_and_past_retention_may_go() -> None:
    assert judged(look({"s": cursor("7:9")}), declared=frozenset({"s"})) == ""


@pytest.mark.parametrize(
    ("blocked_by", "why"),
    [
        (judged(look({"s": cursor("7:3", 6)})), "s has not drained it (6 entries left)"),
        (judged(look({}), declared=frozenset({"s"})), "lost its cursor"),
        (judged(look({}), age_seconds=30), "unknown sends"),
        (judged(look({}), retention_minutes=-1), "without end"),
        (judged(look({}), retention_minutes=10_000), "is not over"),
        (judged(look({}, terminated=False)), "seal"),
        (judged(look({}), sealed_position=None), "seal"),
    ],
)
def test_what_holds_a_sealed_segment_is_said(blocked_by: str, why: str) -> None:
    """R17, R19, hazard B4: an unread cursor that nobody declared holds it, too."""
    assert why in blocked_by


def test_cursors_that_do_not_count_hold_nothing() -> None:
    """R16."""
    assert judged(look({"reader-x": cursor("7:0", 9, counts=False)})) == ""


@given(st.integers(1, 40), st.integers(1, 40))
def test_the_way_to_a_desired_count_arrives_and_ends(initial: int, desired: int) -> None:
    """R30, hazards C51 and C52: one at a time, in the right direction, and then still."""
    layout = SegmentLayout.initial(initial)
    for _ in range(abs(initial - desired)):
        change = next_change(layout, desired)
        assert change is not None
        before = len(layout.active)
        layout = layout.reserve(change).apply(change, now_ms=1)
        assert abs(len(layout.active) - desired) == abs(before - desired) - 1
    assert len(layout.active) == desired
    assert next_change(layout, desired) is None


def test_growing_by_halves_keeps_the_ring_even() -> None:
    layout = SegmentLayout.initial(1)
    while change := next_change(layout, 8):
        layout = layout.reserve(change).apply(change, now_ms=1)
    assert {segment.hash_range.size for segment in layout.active} == {8192}


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (SplitRequest(9), "there is no segment 9"),
        (SplitRequest(0, at=0xFFFF), "outside"),
        (MergeRequest((0, 2)), "do not touch"),
        (MergeRequest((0, 0)), "twice"),
        (RebucketRequest(0, 1), "already has 1"),
        (SplitRequest(0, into=4), "has no room for 4 more"),
    ],
)
def test_a_request_that_cannot_be_done_is_refused_in_words(
    request_: SplitRequest | MergeRequest | RebucketRequest, message: str
) -> None:
    with pytest.raises(LayoutError, match=message):
        plan(SegmentLayout.initial(4), request_, max_records=7)


def test_totals_are_shared_and_never_become_nothing() -> None:
    """R27: -1 is no bound and stays so; a share is rounded up."""
    intent = TopicIntent(
        total=TotalPolicies(retention_megabytes=-1, backlog_quota_bytes=1000, publish_messages_per_second=2)
    )
    share = intent.policies_for(3)
    assert (share.retention_megabytes, share.backlog_quota_bytes, share.publish_messages_per_second) == (-1, 334, 1)
    assert share.dispatch_bytes_per_second is None
