"""What is shown of a topic: columns, segments, subscriptions, what holds segments, load."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from scalable_topics.layout import SegmentLayout, to_record
from scalable_topics_operator.api.scalable_topic import ScalableTopic
from scalable_topics_operator.cli.columns import shown, value
from scalable_topics_operator.cli.description import show_description
from scalable_topics_operator.cli.drain_command import drain_rows, held_by
from scalable_topics_operator.cli.get_command import topics_table
from scalable_topics_operator.cli.layout_command import LayoutOptions, layout_json, layout_view
from scalable_topics_operator.cli.segment_facts import SegmentFacts, TopicFacts, facts_of
from scalable_topics_operator.cli.segment_table import segments_table
from scalable_topics_operator.cli.subscriptions_command import show_subscriptions, subscription_rows
from scalable_topics_operator.cli.topic_view import TopicView, age, amount, seconds_since

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LAYOUT = SegmentLayout.initial(2, bucket_budget=8, created_at_ms=1_767_268_800_000).split(0, now_ms=1_767_268_860_000)
BODY: dict[str, Any] = {
    "metadata": {"name": "orders", "namespace": "shop", "uid": "u", "creationTimestamp": "2026-01-01T11:00:00Z"},
    "spec": {
        "topic": "orders",
        "connectionRef": {"name": "pulsar", "namespace": "ops"},
        "subscriptions": [{"name": "billing"}, {"name": "new"}],
    },
    "status": {
        "topic": "topic://public/default/orders",
        "backend": "Classic",
        "segments": {"active": 3, "sealed": 1},
        "layout": to_record(LAYOUT),
        "lastAction": "Split 0→2,3",
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "Reconciled", "message": "well", "lastTransitionTime": "x"}
        ],
        "subscriptions": [
            {"name": "billing", "phase": "Active"},
            {"name": "audit", "phase": "Active", "outOfScope": [0], "initialPosition": "Latest"},
        ],
        "operation": {
            "kind": "Merge",
            "parents": [2, 3],
            "children": [{"id": 4, "range": "0000-7fff"}],
            "step": "Sealing",
            "startedAt": "2026-01-01T11:59:30Z",
            "request": {"kind": "SegmentOperation", "name": "by-hand"},
        },
        "actions": [
            {
                "kind": "Split",
                "at": "2026-01-01T11:30:00Z",
                "epoch": 1,
                "parents": [0],
                "children": [2, 3],
                "result": "Succeeded",
                "reason": "msgRateIn",
                "request": {"kind": "Policy", "name": "p"},
            }
        ],
        "reports": [{"reason": "StraySegment", "message": "is not part of it"}],
    },
}
STSUB: dict[str, Any] = {
    "metadata": {"name": "orders-billing", "namespace": "shop"},
    "spec": {"scalableTopic": "orders", "subscription": "billing", "type": "Stream"},
    "status": {
        "phase": "Active",
        "drained": [0],
        "consumers": [
            {
                "name": "one",
                "registeredAt": "2026-01-01T11:59:00Z",
                "assignments": [{"segment": 2}, {"segment": 3, "buckets": [0, 1]}],
                "releasing": [1],
                "releasingBuckets": [{"segment": 3, "buckets": [2]}],
            }
        ],
    },
}
STATS: dict[str, Any] = {
    "layout": {
        "segments": {
            "1": {"load": {"msgRateIn": 5000.0, "byteRateIn": 100.0, "msgRateOut": 0, "byteRateOut": 0}},
            "2": {"load": {"msgRateIn": 100.0, "byteRateIn": 9_000_000.0, "msgRateOut": 1, "byteRateOut": 1}},
            "3": {"load": None},
        }
    },
    "subscriptions": {"billing": {"msgBacklog": 12}},
    "autoScale": {"policy": {"split.msgRateIn": 10000, "split.bytesRateIn": 10_000_000, "split.msgRateOut": 0}},
    "scaling": {"loadAgeSeconds": 4.2},
}
FACTS = facts_of(STATS, {0: {"billing": 3}, 2: {"billing": 9, "audit": 1}}, LAYOUT.segments)
WHOLE = facts_of(
    STATS, {0: {"billing": 300}, 1: {"billing": 0}, 2: {"billing": 9, "audit": 1}, 3: {"billing": 3}}, LAYOUT.segments
)
"""With an answer for each segment; the parent of a split has most of what is left."""


def _said(show: Callable[[Console], object]) -> list[str]:
    console = Console(width=200, highlight=False, markup=False, record=True, quiet=True)
    console.quiet = False
    with console.capture() as capture:
        show(console)
    return [" ".join(line.split()) for line in capture.get().splitlines()]


def test_the_load_of_a_segment_is_that_of_the_rate_nearest_to_its_threshold() -> None:
    assert (FACTS.of(1).ratio, FACTS.of(1).highest) == (0.5, "msgRateIn")
    assert (FACTS.of(2).ratio, FACTS.of(2).highest) == (0.9, "byteRateIn")
    assert (FACTS.of(3).rates, FACTS.of(3).ratio) == (None, None)
    assert (FACTS.of(0).backlog_sum, FACTS.of(2).backlog_sum, FACTS.of(1).backlog_sum) == (3, 10, None)
    assert (FACTS.load_age_seconds, FACTS.backlog) == (4.2, {"billing": 12})
    assert facts_of({}, {}, ()) == TopicFacts(), "an answer of the least"


def test_the_backlog_of_a_subscription_is_what_is_left_in_sealed_segments_too() -> None:
    """The statistics sum the active ones, which is nothing right after a split."""
    assert (WHOLE.backlog, WHOLE.backlog_of) == ({"audit": 1, "billing": 312}, "all segments")
    assert (FACTS.backlog, FACTS.backlog_of) == ({"billing": 12}, "active segments"), "nobody answered for 1 and 3"


@pytest.mark.parametrize(
    ("facts", "words"), [(WHOLE, "backlog of billing: 312"), (FACTS, "backlog of billing in active segments: 12")]
)
def test_a_layout_says_of_what_the_backlog_is(facts: TopicFacts, words: str) -> None:
    view = layout_view(TopicView(BODY), LAYOUT, facts, LayoutOptions(0, False), Console(width=100))
    assert words in _said(lambda console: console.print(view))[1]
    shown = layout_json(TopicView(BODY), LAYOUT, facts)
    assert (shown["backlog"], shown["backlogOf"]) == (facts.backlog, facts.backlog_of)


def test_get_has_the_columns_of_kubectl() -> None:
    columns = shown(ScalableTopic.definition.columns, wide=False)
    found = {column.name: value(BODY, column, NOW) for column in columns}
    assert found == {
        "Topic": "orders",
        "Active": "3",
        "Epoch": "1",
        "Backend": "Classic",
        "Ready": "True",
        "Reason": "Reconciled",
        "Last Action": "Split 0→2,3",
        "Age": "60m",
    }
    wide = {column.name for column in shown(ScalableTopic.definition.columns, wide=True)}
    assert wide - found.keys() == {"Connection", "Sealed", "Message"}
    made = topics_table([BODY], wide=False, with_namespace=True, now=NOW)
    lines = _said(lambda console: console.print(made))
    assert lines == [
        "namespace name topic active epoch backend ready reason last action age",
        "shop orders orders 3 1 Classic True Reconciled Split 0→2,3 60m",
    ]


def test_segments_have_load_and_backlog_where_these_are_known() -> None:
    plainly = _said(lambda console: console.print(segments_table(LAYOUT, TopicFacts(), wide=False)))
    assert plainly == [
        "segment range ring state buckets made by into",
        "2 0000-3fff 25 % active 2 Split of 0 -",
        "3 4000-7fff 25 % active 2 Split of 0 -",
        "1 8000-ffff 50 % active 4 Create -",
        "0 0000-7fff 50 % sealed 4 Create 2,3",
    ]
    loaded = _said(lambda console: console.print(segments_table(LAYOUT, FACTS, wide=False)))
    assert loaded[1:] == [
        "2 0000-3fff 25 % active 2 Split of 0 - 100 9M 90% 10",
        "3 4000-7fff 25 % active 2 Split of 0 - - - - -",
        "1 8000-ffff 50 % active 4 Create - 5k 100 50% -",
        "0 0000-7fff 50 % sealed 4 Create 2,3 - - - 3",
    ]
    wide = _said(lambda console: console.print(segments_table(LAYOUT, FACTS, wide=True)))
    assert wide[1] == "2 0000-3fff 25 % active 2 Split of 0 - 1 0 2026-01-01 12:01:00 100 9M 90% 10 1 1 byteRateIn"


def test_many_sealed_segments_are_counted_and_all_of_them_in_the_wide_table() -> None:
    layout = LAYOUT
    for number in range(12):
        layout = layout.rebucket(layout.active[0].segment_id, 3 + number, now_ms=1)
    assert "… 3 more sealed -o wide" in _said(lambda console: console.print(segments_table(layout, FACTS, wide=False)))
    assert len(_said(lambda console: console.print(segments_table(layout, FACTS, wide=True)))) == 1 + 3 + 13


def test_a_description_has_everything_there_is_about_a_topic() -> None:
    operation = {
        "metadata": {"name": "by-hand", "creationTimestamp": "2026-01-01T11:59:00Z"},
        "spec": {"type": "Merge"},
        "status": {"phase": "Running", "step": "Sealing"},
    }
    event = {"reason": "Split", "type": "Normal", "message": "0 became 2, 3", "lastTimestamp": "2026-01-01T11:30:00Z"}
    lines = _said(lambda console: show_description(console, BODY, [operation], [STSUB], [event], NOW, wide=False))
    for words in (
        "object: shop/orders",
        "topic: topic://public/default/orders",
        "connection: ops/pulsar",
        "Ready True unknown Reconciled well",
        "under way: Merge of 2,3 into 4 0000-7fff: Sealing since 30s, asked for by SegmentOperation by-hand",
        "segments: 3 active, 1 sealed",
        "billing Stream Active Earliest 1 -",
        "audit Shared Active Latest - 0",
        "Split 30m 1 0 2,3 Succeeded msgRateIn",
        "by-hand Merge Running Sealing 60s -",
        "report StraySegment: is not part of it",
        "Split Normal 30m 0 became 2, 3",
    ):
        assert words in lines


def test_an_ordered_subscription_is_called_so_by_those_who_may_not_see_its_object() -> None:
    """What kind of ordered one it is only the object says."""
    recorded = [{"name": "billing", "phase": "Active", "ordered": True}, {"name": "audit", "phase": "Active"}]
    body = {**BODY, "status": {**BODY["status"], "subscriptions": recorded}}
    lines = _said(lambda console: show_description(console, body, [], [], [], NOW, wide=False))
    assert "billing Ordered Active Earliest - -" in lines
    assert "audit Shared Active Earliest - -" in lines
    rows = subscription_rows(TopicView(body), [], TopicFacts())
    assert [(row["name"], row["kind"]) for row in rows[:2]] == [("audit", "Shared"), ("billing", "Ordered")]


def test_a_topic_without_a_layout_is_described_with_the_reason() -> None:
    ready = {"type": "Ready", "status": "False", "reason": "NameTaken", "message": "an ordinary topic has it"}
    body = {**BODY, "status": {"conditions": [ready]}}
    lines = _said(lambda console: show_description(console, body, [], [], [], NOW, wide=False))
    assert "segments: ScalableTopic shop/orders has no layout: NameTaken: an ordinary topic has it" in lines


def test_a_layout_is_shown_with_what_is_not_known_and_why() -> None:
    console = Console(width=100)
    facts = TopicFacts(why="the gateway\x1b[2J is away")
    lines = _said(lambda at: at.print(layout_view(TopicView(BODY), LAYOUT, facts, LayoutOptions(1, False), console)))
    assert lines[:3] == [
        "topic://public/default/orders epoch 1, 3 active, 1 sealed segments Merge of 2,3 into 4: Sealing",
        "load and backlog: not known: the gateway?[2J is away",
        "1 older epochs: --epochs 0 shows all",
    ]


def test_machines_get_epochs_segments_and_load() -> None:
    found = layout_json(TopicView(BODY), LAYOUT, FACTS)
    assert found["epochs"] == [
        {"epoch": "0", "sinceMs": 1_767_268_800_000, "segments": [0, 1]},
        {"epoch": "1", "sinceMs": 1_767_268_860_000, "segments": [2, 3, 1]},
    ]
    by_id = {one["id"]: one for one in found["segments"]}
    assert (by_id[0]["children"], by_id[0]["state"], by_id[0]["backlog"]) == ([2, 3], "Sealed", {"billing": 3})
    assert (by_id[2]["loadRatio"], by_id[2]["parents"]) == (0.9, [0])


def test_subscriptions_are_those_that_are_declared_recorded_or_have_an_object() -> None:
    rows = subscription_rows(TopicView(BODY), [STSUB], WHOLE)
    assert [(row["name"], row["kind"], row["phase"], row["declared"], row["backlog"]) for row in rows] == [
        ("audit", "Shared", "Active", False, 1),
        ("billing", "Stream", "Active", True, 312),
        ("new", "Shared", "Declared", True, None),
    ]
    assert rows[1]["backlogBySegment"] == {"0": 300, "1": 0, "2": 9, "3": 3}
    lines = _said(lambda console: show_subscriptions(console, rows, WHOLE, NOW))
    assert "billing Stream Active yes Earliest 312 0 1" in lines
    assert not [line for line in lines if line.startswith("backlog: ")]
    assert "billing one 60s ago 2 3[0,1] 1 3[2]" in lines


def test_backlog_that_is_not_of_all_segments_says_so() -> None:
    rows = subscription_rows(TopicView(BODY), [STSUB], FACTS)
    assert [row["backlog"] for row in rows] == [None, 12, None]
    lines = _said(lambda console: show_subscriptions(console, rows, FACTS, NOW))
    assert "backlog: of active segments: not all others were asked, or answered" in lines


def test_what_holds_segments_is_read_from_the_operators_plan() -> None:
    held = held_by(["segment 0: subscription billing has not drained it (3 entries left)", "something else"])
    (row,) = drain_rows(LAYOUT, [0], held, [STSUB], FACTS)
    assert row["heldBy"] == "subscription billing has not drained it (3 entries left)"
    assert (row["backlog"], row["drainedBy"], row["children"]) == ({"billing": 3}, ["billing"], [2, 3])
    (free,) = drain_rows(LAYOUT, [0], {}, [], TopicFacts())
    (unknown,) = drain_rows(LAYOUT, [0], None, [], TopicFacts())
    assert (free["heldBy"], unknown["heldBy"], free["backlog"]) == ("", None, None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "unknown"),
        (-5, "0s"),
        (119, "119s"),
        (150, "2m30s"),
        (600, "10m"),
        (7199, "119m"),
        (7200, "2h"),
        (200_000, "2d"),
    ],
)
def test_ages_read_as_kubectls(seconds: float | None, text: str) -> None:
    assert age(seconds) == text
    assert seconds_since("no time", NOW) is None


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "-"),
        (0, "0"),
        (999.49, "999"),
        (999.5, "1k"),
        (999.99, "1k"),
        (1000, "1k"),
        (12_345, "12.3k"),
        (999_499, "999k"),
        (999_600, "1M"),
        (5_000_000, "5M"),
        (999.7e12, "1000T"),
        (8e15, "8000T"),
    ],
)
def test_amounts_are_short(number: float | None, text: str) -> None:
    assert amount(number) == text


def test_facts_of_a_segment_that_nobody_knows_are_none() -> None:
    assert TopicFacts().of(7) == SegmentFacts()
