"""Where the cursors of a subscription go (R18, pip-468 seek)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import HashRange, Part, Segment, SegmentState
from scalable_topics_operator.operations.cursor_moves import Move, move_of
from scalable_topics_operator.operations.journal import Action, Operation, OperationKind, Result, Step
from scalable_topics_operator.operations.protocols import MessagePosition
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase, SubscriptionState
from scalable_topics_operator.operations.topic_state import TopicState, read_state, write_state
from tests.unit.operations.builders import REQUEST, split_layout

CREATED_MS, SEALED_MS = 2_000_000, 3_000_000


def _segment(*, sealed: bool, sealed_at_ms: int = SEALED_MS) -> Segment:
    segment = Segment(7, HashRange(0, 65535), created_at_ms=CREATED_MS)
    if not sealed:
        return segment
    return replace(segment, state=SegmentState.SEALED, sealed_at_epoch=1, sealed_at_ms=sealed_at_ms)


@pytest.mark.parametrize(
    ("to_ms", "sealed", "move"),
    [
        (None, False, Move.TO_THE_END),
        (None, True, Move.TO_THE_END),
        (SEALED_MS + 1, True, Move.TO_THE_END),
        (SEALED_MS, True, Move.TO_THE_END),
        (SEALED_MS - 1, True, Move.TO_THE_TIME),
        (SEALED_MS + 1, False, Move.TO_THE_TIME),
        (CREATED_MS + 1, False, Move.TO_THE_TIME),
        (CREATED_MS, False, Move.TO_THE_BEGINNING),
        (CREATED_MS, True, Move.TO_THE_BEGINNING),
        (0, True, Move.TO_THE_BEGINNING),
    ],
)
def test_a_segment_is_skipped_rewound_or_sought_by_when_it_lived(to_ms: int | None, sealed: bool, move: Move) -> None:
    assert move_of(_segment(sealed=sealed), to_ms) is move


def test_a_segment_sealed_nobody_knows_when_is_not_skipped() -> None:
    assert move_of(_segment(sealed=True, sealed_at_ms=0), SEALED_MS) is Move.TO_THE_TIME


@given(to_ms=st.integers(0, 2**53), sealed=st.booleans(), later_ms=st.integers(0, 2**53))
def test_a_later_time_never_goes_back(to_ms: int, sealed: bool, later_ms: int) -> None:
    order = [Move.TO_THE_BEGINNING, Move.TO_THE_TIME, Move.TO_THE_END]
    early, late = sorted((to_ms, later_ms))
    segment = _segment(sealed=sealed)
    assert order.index(move_of(segment, early)) <= order.index(move_of(segment, late))


def _operation(kind: OperationKind, seek_to_ms: int | None) -> Operation:
    return Operation(
        id="a1b2",
        kind=kind,
        step=Step.RELEASING,
        term=3,
        parents=(),
        children=(),
        subscriptions=("billing",),
        started_at="2026-01-01T00:00:00Z",
        request=REQUEST,
        next_segment_id=3,
        seek_to_ms=seek_to_ms,
    )


@pytest.mark.parametrize(
    "operation",
    [
        _operation(OperationKind.SEEK, 0),
        _operation(OperationKind.SKIP_ALL, None),
        replace(
            _operation(OperationKind.RESTORE, None),
            positions={
                Part(2): MessagePosition(7, -1),
                Part(0): MessagePosition(5, 3, 11),
                Part(0, 1): MessagePosition(5, 4),
            },
        ),
    ],
    ids=lambda operation: operation.kind,
)
def test_the_journal_and_the_history_tell_where_and_of_which_subscription(operation: Operation) -> None:
    action = operation.ended(Result.SUCCEEDED, at="2026-01-01T00:00:01Z", epoch=1)
    assert (operation.moves_cursors, action.subscription) == (True, "billing")
    state = TopicState(layout=split_layout(), operation=operation, actions=(action,))
    assert read_state(write_state({}, state)) == state


def test_other_operations_move_no_cursors() -> None:
    operation = replace(_operation(OperationKind.SPLIT, None), step=Step.CREATING)
    assert not operation.moves_cursors
    ended: Action = operation.ended(Result.SUCCEEDED, at="2026-01-01T00:00:01Z", epoch=1)
    assert ended.subscription == ""
    assert "subscription" not in ended.to_json()


@pytest.mark.parametrize("requested", [False, True])
@pytest.mark.parametrize("forced", [False, True])
def test_what_was_asked_of_a_subscription_is_remembered(requested: bool, forced: bool) -> None:
    entry = SubscriptionState(
        "billing", SubscriptionPhase.DELETING, latest=False, delete_with_entry=False, requested=requested, forced=forced
    )
    state = TopicState(subscriptions={"billing": entry})
    assert read_state(write_state({}, state)) == state
    assert not entry.is_kept
    assert replace(entry, phase=SubscriptionPhase.ACTIVE).is_kept is requested
