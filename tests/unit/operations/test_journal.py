"""The journal's form in `status`, and layouts rebuilt from what segments say (R8, R9, R11)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import HashRange, PlannedSegment, Segment, SegmentLayout
from scalable_topics_operator.api.scalable_topic import ScalableTopic
from scalable_topics_operator.operations.journal import (
    ACTIONS_KEPT,
    Action,
    DeletingSegment,
    Operation,
    OperationKind,
    Request,
    Result,
    Step,
    SubscriptionPhase,
    SubscriptionState,
    TopicState,
    read_state,
    write_state,
)
from scalable_topics_operator.operations.protocols import Claim, Position, SegmentRecord
from scalable_topics_operator.operations.rebuild import Witness, rebuild

REQUEST = Request("SegmentOperation", "split-0", "uid")
CLAIM = Claim("installation", "cluster", "uid", "ns", "orders", "Classic")


def full_state() -> TopicState:
    layout = SegmentLayout.initial(2).split(0, now_ms=5)
    return TopicState(
        layout=layout,
        operation=Operation(
            id="op",
            kind=OperationKind.MERGE,
            step=Step.ROLLING_BACK,
            term=3,
            parents=(2, 3),
            children=(PlannedSegment(4, HashRange(0, 0x7FFF), 2, 1),),
            subscriptions=("a", "b"),
            started_at="2026-01-01T00:00:00Z",
            request=REQUEST,
            next_segment_id=5,
            result=Result.FAILED,
            message="denied",
        ),
        deleting=(DeletingSegment(0, "persistent://t/n/x-segment-0000-7fff-0", 9),),
        subscriptions={"a": SubscriptionState("a", SubscriptionPhase.DELETING, True, True)},
        actions=(action(1),),
        incarnation="uid.0",
    )


def action(number: int) -> Action:
    return Action(
        f"op{number}", "Split", "2026-01-01T00:00:00Z", number, (number,), (number + 1,), Result.SUCCEEDED, REQUEST
    )


def test_a_state_reads_back_as_it_was_written() -> None:
    assert read_state(write_state({}, full_state())) == full_state()


def test_what_operations_do_not_own_survives_every_write() -> None:
    """Hazard A1-26008."""
    before: dict[str, Any] = {"conditions": [{"type": "Ready"}], "later": {"field": 1}, "operation": {"id": "gone"}}
    after = write_state(before, TopicState())
    assert after == {"conditions": [{"type": "Ready"}], "later": {"field": 1}}


def test_the_schema_of_the_status_knows_every_field_of_the_journal() -> None:
    """Hazard C35: what the schema does not know is pruned silently."""
    status = write_state({}, full_state())
    parsed = ScalableTopic.model_validate(
        {"spec": {"topic": "t/n/x", "connectionRef": {"name": "c"}}, "status": status}
    ).status
    assert parsed.operation is not None
    known = parsed.operation.model_dump(by_alias=True, exclude_none=True)
    assert status["operation"].keys() <= known.keys()
    assert parsed.deleting[0].model_dump(by_alias=True, exclude_none=True) == status["deleting"][0]


def test_the_history_is_bounded() -> None:
    """R29."""
    state = TopicState()
    for number in range(30):
        state = state.finished(action(number))
    assert [entry.epoch for entry in state.actions] == list(range(30 - ACTIONS_KEPT, 30))


def test_only_subscriptions_being_deleted_are_not_discovered() -> None:
    """R16."""
    assert full_state().not_discovered == {"a"}


def witnesses(layout: SegmentLayout) -> list[Witness]:
    """What the segments of a layout say of themselves, on brokers that agree with it."""
    siblings: dict[tuple[int, ...], list[Segment]] = {}
    for segment in layout.segments.values():
        siblings.setdefault(segment.parent_ids, []).append(segment)
    return [
        Witness(
            record=SegmentRecord(
                segment_id=segment.segment_id,
                hash_range=segment.hash_range,
                parent_ids=segment.parent_ids,
                buckets=segment.buckets,
                merge_depth=segment.merge_depth,
                created_at_epoch=segment.created_at_epoch,
                created_at_ms=segment.created_at_ms,
                created_by=segment.created_by.value,
                operation_id=f"op-{segment.created_at_epoch}",
                sibling_ids=tuple(one.segment_id for one in siblings[segment.parent_ids]),
                next_segment_id=layout.next_segment_id,
                claim=CLAIM,
            ),
            topic=f"topic-{segment.segment_id}",
            terminated=not segment.is_active,
            last_confirmed=Position(1, 5),
            entries=6,
        )
        for segment in layout.segments.values()
    ]


@given(st.integers(1, 4), st.lists(st.tuples(st.sampled_from("smr"), st.integers(0, 50)), max_size=8))
def test_a_layout_is_rebuilt_from_its_segments(initial: int, steps: list[tuple[str, int]]) -> None:
    """R11: the same segments, states, edges and buckets; ids never used again."""
    layout = SegmentLayout.initial(initial)
    for kind, choice in steps:
        active = layout.active
        if kind == "s":
            layout = layout.split(active[choice % len(active)].segment_id, now_ms=1)
        elif kind == "m" and len(active) > 1:
            at = choice % (len(active) - 1)
            layout = layout.merge([active[at].segment_id, active[at + 1].segment_id], now_ms=1)
        elif kind == "r":
            chosen = active[choice % len(active)]
            layout = layout.rebucket(chosen.segment_id, chosen.buckets % 1024 + 1, now_ms=1)
    rebuilt = rebuild(witnesses(layout))
    assert rebuilt.problem == ""
    assert rebuilt.layout is not None
    assert rebuilt.unfinished is None
    assert rebuilt.discard == ()
    assert rebuilt.layout.next_segment_id >= layout.next_segment_id

    def shape(of: SegmentLayout) -> list[tuple[object, ...]]:
        return [
            (one.segment_id, one.hash_range, one.state, one.parent_ids, one.child_ids, one.buckets, one.merge_depth)
            for one in of.segments.values()
        ]

    assert shape(rebuilt.layout) == shape(layout)


def test_a_segment_made_again_by_drift_repair_is_no_rival_of_its_sibling() -> None:
    found = witnesses(SegmentLayout.initial(1).split(0, now_ms=1))
    repaired = [
        Witness(
            SegmentRecord(
                **{
                    name: getattr(one.record, name)
                    for name in SegmentRecord.__slots__
                    if name not in ("operation_id", "sibling_ids")
                },
                operation_id=f"repair-{one.record.segment_id}" if one.record.segment_id else one.record.operation_id,
                sibling_ids=(one.record.segment_id,),
            ),
            one.topic,
            one.terminated,
            one.last_confirmed,
            one.entries,
        )
        for one in found
    ]
    rebuilt = rebuild(repaired)
    assert rebuilt.problem == ""
    assert rebuilt.layout is not None
    assert [one.segment_id for one in rebuilt.layout.active] == [1, 2]
    assert rebuilt.discard == ()


def test_nothing_is_rebuilt_from_segments_that_leave_a_hole() -> None:
    layout = SegmentLayout.initial(2).split(0, now_ms=1)
    found = [one for one in witnesses(layout) if one.record.segment_id != 3]
    assert "do not make a layout" in rebuild(found).problem
