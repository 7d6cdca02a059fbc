"""The record of an ordered subscription, and how its topic says that it stands (R16, R17, R18, R21)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import WHOLE, Part, SegmentLayout, to_record
from scalable_topics_operator.assignment.group import Group, Member, Version
from scalable_topics_operator.controllers.conditions import Standing, find_condition
from scalable_topics_operator.controllers.ordered_subscriptions import subscription_object_name
from scalable_topics_operator.controllers.subscription_status import Phase, read_group, situation_of, write_group

NOW = "2026-11-29T10:00:00Z"
SEGMENTS = st.frozensets(st.integers(0, 9))
PARTS = st.frozensets(st.builds(Part, st.integers(0, 9), st.integers(WHOLE, 3)))
MEMBERS = st.builds(
    Member, st.text("abc", min_size=1), st.text("123", min_size=1), st.just(NOW), PARTS, PARTS, st.booleans()
)
GROUPS = st.builds(
    Group,
    st.lists(MEMBERS, max_size=4).map(lambda members: {member.name: member for member in members}),
    SEGMENTS,
    st.builds(Version, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
)


def _written(before: dict[str, Any], group: Group, term: int = 3) -> dict[str, Any]:
    return write_group(before, group, Phase.ACTIVE, Standing.healthy(), term=term, generation=1, now=NOW)


@given(GROUPS)
def test_what_is_written_is_read(group: Group) -> None:
    assert read_group(_written({}, group)) == group


@given(GROUPS)
def test_nothing_is_written_twice(group: Group) -> None:
    once = _written({}, group)
    assert _written(once, group, term=4) == once


def test_what_an_earlier_release_has_recorded_is_read() -> None:
    """It knew of whole segments only."""
    consumer = {
        "name": "a",
        "incarnation": "1",
        "registeredAt": NOW,
        "assignments": [{"segment": 3}],
        "releasing": [4, 5],
    }
    member = read_group({"consumers": [consumer]}).members["a"]
    assert member == Member("a", "1", NOW, frozenset({Part(3)}), frozenset({Part(4), Part(5)}))


def test_r21_the_term_is_written_with_an_assignment() -> None:
    first = _written({}, Group(version=Version(3, 1, 0)), term=3)
    assert first["term"] == 3
    assert _written(first, Group(version=Version(4, 1, 0)), term=4)["term"] == 4


def test_what_others_wrote_stays() -> None:
    assert _written({"later": "field"}, Group())["later"] == "field"


def _topic(**status: Any) -> dict[str, Any]:
    layout = SegmentLayout.initial(2).split(0, now_ms=1)
    return {"status": {"layout": to_record(layout), **status}}


def _operation(kind: str, *subscriptions: str) -> dict[str, Any]:
    request = {"kind": "SegmentOperation", "name": "x", "uid": "y"}
    return {
        "id": "1",
        "kind": kind,
        "step": "Releasing" if kind in ("Seek", "SkipAll") else "Sealing",
        "term": 1,
        "parents": [1],
        "subscriptions": list(subscriptions),
        "startedAt": NOW,
        "request": request,
        "nextSegmentId": 9,
    }


def _entry(phase: str, **more: Any) -> dict[str, Any]:
    return {"subscriptions": [{"name": "billing", "phase": phase, **more}]}


@pytest.mark.parametrize(
    ("topic", "phase", "reason"),
    [
        pytest.param(None, Phase.PENDING, "TopicMissing", id="no topic"),
        pytest.param({}, Phase.PENDING, "TopicNotReady", id="a topic that is not made yet"),
        pytest.param(_topic(), Phase.PENDING, "CursorsMissing", id="R18: no cursors yet"),
        pytest.param(_topic(**_entry("Creating")), Phase.PENDING, "CursorsMissing", id="cursors are being made"),
        pytest.param(_topic(**_entry("Active")), Phase.ACTIVE, "Reconciled", id="all is well"),
        pytest.param(_topic(**_entry("Deleting")), Phase.DELETING, "Deleting", id="R16: being deleted"),
        pytest.param(_topic(**_entry("CursorLost")), Phase.CURSOR_LOST, "CursorLost", id="R17: a lost cursor"),
        pytest.param(
            _topic(**_entry("Active"), operation=_operation("Split", "billing")),
            Phase.ACTIVE,
            "Reconciled",
            id="a split goes on beside it",
        ),
        pytest.param(
            _topic(**_entry("Active"), operation=_operation("Seek", "billing")),
            Phase.SEEKING,
            "Seeking",
            id="R18: its cursors are to be moved",
        ),
        pytest.param(
            _topic(**_entry("Active"), operation=_operation("SkipAll", "another")),
            Phase.ACTIVE,
            "Reconciled",
            id="the cursors of another one are to be moved",
        ),
    ],
)
def test_how_a_subscription_stands(topic: dict[str, Any] | None, phase: Phase, reason: str) -> None:
    situation = situation_of("shop/orders", topic, "billing")
    assert (situation.phase, situation.standing.reason) == (phase, reason)


def test_r18_segments_out_of_scope_are_told() -> None:
    situation = situation_of("shop/orders", _topic(**_entry("Active", outOfScope=[0])), "billing")
    assert situation.out_of_scope == {0}


def test_a_subscription_that_loses_its_cursor_is_stalled() -> None:
    situation = situation_of("shop/orders", _topic(**_entry("CursorLost")), "billing")
    status = write_group({}, Group(), situation.phase, situation.standing, term=1, generation=1, now=NOW)
    assert find_condition(status, "Stalled")["status"] == "True"


_LABELS = st.lists(st.from_regex(r"\A[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z"), min_size=1, max_size=4)


@given(_LABELS.map(".".join).filter(lambda name: len(name) <= 253), st.text(min_size=1, max_size=255))
def test_objects_are_named_as_kubernetes_allows(topic: str, subscription: str) -> None:
    name = subscription_object_name(topic, subscription)
    assert len(name) <= 253
    assert name == name.lower()
    assert all(part and part[0].isalnum() and part[-1].isalnum() for part in name.split("."))


def test_names_tell_subscriptions_apart() -> None:
    names = {subscription_object_name("orders", name) for name in ("a b", "a-b", "A-b", "a_b")}
    assert len(names) == 4
    assert all(name.startswith("orders-a-b-") for name in names)


def test_r2_where_brokers_own_the_layout_nothing_is_assigned() -> None:
    situation = situation_of("shop/orders", _topic(**_entry("Active"), backend="Native"), "billing")
    assert (situation.phase, situation.standing.reason, situation.layout) == (Phase.ACTIVE, "Reconciled", None)
