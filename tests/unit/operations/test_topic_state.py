"""What operations remember in a status, and what of it is not theirs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import WHOLE, CreatedBy, LayoutError, Part, PlannedSegment, SegmentLayout
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.operations.journal import (
    Action,
    Operation,
    OperationKind,
    Request,
    Result,
    Step,
)
from scalable_topics_operator.operations.migrated_from import MigratedFrom, Migration
from scalable_topics_operator.operations.protocols import MessagePosition
from scalable_topics_operator.operations.pruned_segment import PrunedSegment
from scalable_topics_operator.operations.segment_policies import SegmentPolicies
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase, SubscriptionState
from scalable_topics_operator.operations.topic_state import (
    ACTIONS_KEPT,
    DeletingSegment,
    TopicState,
    read_state,
    write_state,
)
from tests.unit.layout.strategies import hash_ranges, layouts, unhurried, unknown_fields
from tests.unit.operations.builders import REQUEST, split_layout, split_operation

texts = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=8)
ids = st.integers(0, 2**40)
counts = st.none() | st.integers(-1, 2**40)
policies = st.builds(
    SegmentPolicies,
    message_ttl_seconds=counts,
    retention_minutes=counts,
    retention_megabytes=counts,
    backlog_quota_bytes=counts,
    backlog_quota_action=st.none() | texts,
    publish_messages_per_second=counts,
    publish_bytes_per_second=counts,
    dispatch_messages_per_second=counts,
    dispatch_bytes_per_second=counts,
    schema_compatibility_strategy=st.none() | texts,
    deduplication=st.none() | st.booleans(),
)
by_text = st.dictionaries(texts, texts, max_size=2)
sources = st.builds(MigratedFrom, st.integers(0, 99), ids, by_text, policies, by_text)
requests = st.builds(Request, texts, texts, texts)
planned = st.builds(PlannedSegment, ids, hash_ranges(), st.integers(1, 1024), st.integers(0, 9))
operations = st.builds(
    Operation,
    id=texts,
    kind=st.sampled_from(OperationKind),
    step=st.sampled_from(Step),
    term=ids,
    parents=st.lists(ids, max_size=3).map(tuple),
    children=st.lists(planned, max_size=3).map(tuple),
    subscriptions=st.lists(texts, max_size=3).map(tuple),
    started_at=texts,
    request=requests,
    next_segment_id=ids,
    announcements=st.integers(0, 9),
    in_doubt=st.lists(texts, max_size=3).map(tuple),
    result=st.none() | st.sampled_from(Result),
    message=st.just("") | texts,
    reason=st.just("") | texts,
    seek_to_ms=st.none() | ids,
    positions=st.dictionaries(
        st.builds(Part, ids, st.integers(WHOLE, 3)),
        st.builds(MessagePosition, ids, ids, st.integers(-1, 99)),
        max_size=2,
    ),
    migration=st.none() | st.builds(Migration, sources, st.booleans()),
)
pruned_segments = st.builds(
    PrunedSegment,
    segment_id=ids,
    hash_range=hash_ranges(),
    child_ids=st.lists(ids, max_size=3).map(tuple),
    created_by=st.sampled_from(CreatedBy),
    created_at_ms=ids,
    sealed_at_ms=ids,
    pruned_at_ms=ids,
)
actions = st.builds(
    Action,
    id=texts,
    kind=texts,
    at=texts,
    epoch=ids,
    parents=st.lists(ids, max_size=3).map(tuple),
    children=st.lists(ids, max_size=3).map(tuple),
    result=st.sampled_from(Result),
    request=requests,
    message=st.just("") | texts,
    reason=st.just("") | texts,
    subscription=st.just("") | texts,
)
subscriptions = st.builds(SubscriptionState, texts, st.sampled_from(SubscriptionPhase), st.booleans(), st.booleans())
tails = st.dictionaries(texts, st.integers(-1, 2**40), min_size=1, max_size=3)


def _with_settled(state: TopicState, last: list[dict[str, int]]) -> TopicState:
    """Only what belongs to a segment of the layout is kept."""
    segments = sorted(state.layout.segments) if state.layout else []
    return replace(state, settled=dict(zip(segments, last, strict=False)))


states = st.builds(
    TopicState,
    layout=st.none() | layouts(max_steps=3),
    operation=st.none() | operations,
    deleting=st.lists(st.builds(DeletingSegment, ids, texts, ids, st.booleans()), max_size=2).map(tuple),
    subscriptions=st.lists(subscriptions, max_size=3).map(lambda found: {entry.name: entry for entry in found}),
    actions=st.lists(actions, max_size=3).map(tuple),
    incarnation=st.just("") | texts,
    clocks=st.builds(Clocks, st.none() | ids, st.none() | ids, st.none() | ids),
    migrated_from=st.none() | sources,
    pruned=st.lists(pruned_segments, max_size=3).map(tuple),
).flatmap(lambda state: st.lists(tails, max_size=2).map(lambda last: _with_settled(state, last)))


def _through_the_api_server(status: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(status))
    return found


@unhurried
@given(states, unknown_fields)
def test_a_state_survives_being_written_and_read(state: TopicState, others: dict[str, Any]) -> None:
    """Hazard A1-26008: what else is in the status stays as it is."""
    status = _through_the_api_server(write_state(others, state))
    assert read_state(status) == state
    assert {key: value for key, value in status.items() if key in others} == others


@unhurried
@given(states, states, unknown_fields)
def test_a_write_replaces_the_whole_state_before_it(
    before: TopicState, after: TopicState, others: dict[str, Any]
) -> None:
    status = write_state(write_state(others, before), after)
    assert read_state(status) == after
    assert status.keys() >= others.keys()


def test_hazard_a1_26008_fields_of_a_later_release_in_the_layout_survive_a_commit() -> None:
    status = write_state({}, TopicState(layout=split_layout()))
    status["layout"]["autoScalePolicy"] = {"enabled": False}
    status["layout"]["segments"][1]["tier"] = "hot"
    state = read_state(status)
    assert state.layout is not None
    change = state.layout.plan_split(2)
    changed = TopicState(layout=state.layout.reserve(change).apply(change, now_ms=1))
    again = write_state(status, changed)
    assert again["layout"]["autoScalePolicy"] == {"enabled": False}
    assert again["layout"]["segments"][1]["tier"] == "hot"


def test_an_empty_status_is_a_topic_that_was_never_made() -> None:
    assert read_state({}) == TopicState()
    assert write_state({}, TopicState()) == {}


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"layout": {"version": 2}}, id="a layout of another version"),
        pytest.param({"layout": {"version": 1, "epoch": 0, "nextSegmentId": 0, "segments": []}}, id="no segments"),
        pytest.param({"operation": {"id": "x", "kind": "Explode"}}, id="an unknown operation"),
        pytest.param({"subscriptions": [{"name": "x", "phase": "Lost"}]}, id="an unknown phase"),
        pytest.param({"deleting": [{"id": 1}]}, id="a field is missing"),
    ],
)
def test_a_broken_record_is_refused(status: dict[str, Any]) -> None:
    """DESIGN §4: nothing may act on it."""
    with pytest.raises((LayoutError, KeyError, ValueError)):
        read_state(status)


def test_finishing_closes_the_journal_and_keeps_the_last_actions() -> None:
    """R29: the last 20."""
    state = TopicState(layout=SegmentLayout.initial(1), operation=split_operation())
    for number in range(ACTIONS_KEPT + 5):
        action = Action(f"action-{number}", "Split", "now", number, (0,), (1, 2), Result.SUCCEEDED, REQUEST)
        state = state.finished(action)
    assert state.operation is None
    assert [action.epoch for action in state.actions] == list(range(5, ACTIONS_KEPT + 5))


def test_r16_only_what_is_being_deleted_is_not_discovered() -> None:
    found = {
        phase.value: SubscriptionState(phase.value, phase, latest=False, delete_with_entry=True)
        for phase in SubscriptionPhase
    }
    assert TopicState(subscriptions=found).not_discovered == {"Deleting"}
