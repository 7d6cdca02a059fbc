"""What brokers that own layouts tell of a topic, as callers are shown it."""

from __future__ import annotations

from typing import Any

import pytest

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.autoscale.policy import DEFAULT
from scalable_topics_operator.gateway import native_stats
from scalable_topics_operator.gateway.clients_shown import SegmentCursor

SHOWN: dict[str, Any] = {
    "topic": "topic://acme/shop/orders",
    "layout": {"epoch": 0, "segments": {}},
    "msgRateIn": 0.0,
    "subscriptions": {},
    "autoScale": {"policy": {"maxSegments": 7}, "engine": "Broker"},
    "scaling": {"activeSegments": 1, "maxBacklog": 0},
}
# As Pulsar 5.0.1 answers.
TOLD: dict[str, Any] = {
    "controllerBroker": "127.0.0.1:8080",
    "autoScale": {"policy": {"maxSegments": 7, "maxDagDepth": 12}, "lastSplitAt": "2026-11-27T20:47:11.992Z"},
    "layout": {
        "epoch": 1,
        "segments": {
            "0": {"name": "segment://acme/shop/orders/0000-ffff-0", "state": "SEALED", "terminated": True},
            "1": {
                "name": "segment://acme/shop/orders/0000-7fff-1",
                "state": "ACTIVE",
                "load": {"msgRateIn": 5.0, "ageSeconds": 1.5},
                "ownerBroker": "127.0.0.1:8080",
            },
        },
    },
    "msgRateIn": 5.0,
    "storageSize": 900,
    "producers": [{"producerName": "p"}],
    "subscriptions": {
        "ordered": {
            "type": "STREAM",
            "msgBacklog": 3,
            "segments": {"0": {"consumerCount": 1}, "1": {"consumerCount": 1}},
            "consumers": [{"consumerName": "alice", "connected": True, "segmentIds": [0, 1]}],
        },
        "shared": {"type": "QUEUE", "msgBacklog": 8, "segments": {"1": {"consumerCount": 2}}, "consumers": []},
    },
}


def test_stats_are_those_of_the_brokers_with_what_only_the_operator_knows() -> None:
    found = native_stats.with_told(SHOWN, TOLD, SegmentLayout.initial(1))
    assert (found["topic"], found["msgRateIn"], found["storageSize"]) == ("topic://acme/shop/orders", 5.0, 900)
    assert found["subscriptions"] == TOLD["subscriptions"]
    assert found["scaling"] == {"activeSegments": 1, "maxBacklog": 8}
    assert found["autoScale"] == {
        "policy": {"maxSegments": 7},
        "inForce": TOLD["autoScale"]["policy"],
        "lastSplitAt": "2026-11-27T20:47:11.992Z",
        "engine": "Broker",
    }
    segments = found["layout"]["segments"]
    assert [(one["state"], one["hashRange"], one["load"]) for one in segments.values()] == [
        ("Sealed", "0000-ffff", None),
        ("Active", None, {"msgRateIn": 5.0, "ageSeconds": 1.5}),
    ], "what is not recorded yet has no range"


def test_a_stream_has_its_sessions_for_consumers_and_a_queue_those_on_its_segments() -> None:
    found = native_stats.attached(TOLD)
    assert (found.producers, found.consumers) == (1, {"ordered": 1, "shared": 2})
    assert native_stats.assignment(TOLD["subscriptions"]["ordered"])["consumers"] == [
        {
            "name": "alice",
            "registeredAt": "",
            "segments": [{"segment": 0, "buckets": []}, {"segment": 1, "buckets": []}],
            "releasing": [],
            "releasingBuckets": [],
        }
    ]


def test_r16_the_brokers_own_cursors_do_not_count() -> None:
    told = {"subscriptions": {"s": {"msgBacklog": 4, "consumers": [{}]}, "__compaction": {"msgBacklog": 1}}}
    assert native_stats.cursors(told) == {
        "s": SegmentCursor(4, 1, counts=True),
        "__compaction": SegmentCursor(1, 0, counts=False),
    }


@pytest.mark.parametrize(
    ("knob", "value", "origin"),
    [
        (("maxDagDepth", 10, DEFAULT), 12, native_stats.BROKERS),
        (("maxSegments", 7, "SegmentAutoScalePolicy shop/p"), 7, "SegmentAutoScalePolicy shop/p"),
        (("split.maxFanout", 2, DEFAULT), 2, DEFAULT),
    ],
    ids=["nobody has said it", "a policy says it", "brokers have no such knob"],
)
def test_where_no_policy_says_anything_brokers_go_by_their_own(
    knob: tuple[str, int, str], value: int, origin: str
) -> None:
    shown = {"engine": "Broker", "knobs": [dict(zip(("knob", "value", "origin"), knob, strict=True))]}
    (found,) = native_stats.with_policy_told(shown, TOLD)["knobs"]
    assert (found["value"], found["origin"]) == (value, origin)


def test_brokers_that_tell_nothing_change_nothing() -> None:
    found = native_stats.with_told(SHOWN, {}, SegmentLayout.initial(1))
    assert (found["msgRateIn"], found["layout"]["segments"]) == (0.0, {})
    assert native_stats.attached({}).consumers == {}
