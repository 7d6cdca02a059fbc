"""What brokers of Pulsar 5.0.1 answer, as recorded from one (reference: their own JSON)."""

from __future__ import annotations

import pytest

from scalable_topics.layout import CreatedBy, SegmentState, TopicName
from scalable_topics_operator.backends.admin.reasons import About, error_for, reason_of
from scalable_topics_operator.backends.claim_properties import CLAIM_KEY
from scalable_topics_operator.backends.native.look import read_look
from scalable_topics_operator.backends.native.record import read_topic
from scalable_topics_operator.load.statistics import read_segment
from scalable_topics_operator.operations.errors import BackendRefused, BackendUnavailable, NameTaken, TopicMissing

_TOPIC = TopicName.parse("public/default/a")


def _segment(number: int, first: int, last: int, **more: object) -> dict[str, object]:
    return {
        "segmentId": number,
        "hashRange": {"start": first, "end": last},
        "state": "ACTIVE",
        "parentIds": [],
        "childIds": [],
        "createdAtEpoch": 0,
        "sealedAtEpoch": -1,
        "createdAtMs": 1_795_812_431_992,
        "sealedAtMs": -1,
        "entryBucketSplits": [],
        "sealed": False,
        "active": True,
        "root": True,
        "leaf": True,
        "legacy": False,
        **more,
    }


_SEALED = {
    "state": "SEALED",
    "childIds": [2],
    "sealedAtEpoch": 1,
    "sealedAtMs": 1_795_812_446_346,
    "sealed": True,
    "active": False,
    "leaf": False,
}
_RECORD = {
    "epoch": 1,
    "nextSegmentId": 3,
    "segments": {
        "0": _segment(0, 0, 32767, **_SEALED),
        "1": _segment(1, 32768, 65535, **_SEALED),
        "2": _segment(
            2, 0, 65535, parentIds=[1, 0], createdAtEpoch=1, root=False, entryBucketSplits=[16384, 32768, 49152]
        ),
    },
    "properties": {"app": "x"},
    "autoScalePolicy": {"maxSegments": 5},
    "deleted": False,
}


def test_a_record_is_read_without_what_follows_from_it() -> None:
    found = read_topic(_TOPIC, _RECORD)
    assert [one.segment_id for one in found.layout.active] == [2]
    merged = found.layout.segment(2)
    assert (merged.created_by, merged.buckets, merged.parent_ids) == (CreatedBy.MERGE, 4, (0, 1))
    assert found.layout.segment(0).state is SegmentState.SEALED
    assert not merged.extra
    assert not found.layout.extra
    assert (dict(found.properties), found.claim, found.override) == ({"app": "x"}, None, {"maxSegments": 5})


def test_a_layout_that_breaks_an_invariant_is_refused() -> None:
    """Nothing acts on it (DESIGN §4); the brokers verify nothing when they load it (hazard of the peer)."""
    hole = {**_RECORD, "segments": {"1": _segment(1, 32768, 65535)}, "nextSegmentId": 2, "epoch": 0}
    with pytest.raises(BackendRefused, match="no active segment covers"):
        read_topic(_TOPIC, hole)
    with pytest.raises(BackendRefused, match="claim that this release cannot read"):
        read_topic(_TOPIC, {**_RECORD, "properties": {CLAIM_KEY: "what?"}})


def test_statistics_are_looked_at() -> None:
    look = read_look(
        {
            "autoScale": {"policy": {"enabled": True}},
            "layout": {
                "segments": {"0": {"terminated": True}, "2": {"terminated": False}},
                "lastOperation": {
                    "operation": "merge",
                    "trigger": "manual",
                    "segmentIds": [0, 1],
                    "status": "failure",
                    "error": "x",
                },
            },
            "producers": [{"producerName": "p"}],
            "subscriptions": {
                "q": {
                    "type": "QUEUE",
                    "msgBacklog": 7,
                    "uncoveredSegmentIds": [1],
                    "segments": {"2": {"consumerCount": 2}},
                    "consumers": [],
                },
                "s": {"type": "STREAM", "msgBacklog": 0, "segments": {}, "consumers": [{"consumerName": "c"}]},
            },
        }
    )
    assert (look.producers, look.terminated, look.consumers) == (frozenset({"p"}), frozenset({0}), 3)
    assert (look.subscriptions["q"].backlog, look.subscriptions["q"].uncovered) == (7, (1,))
    assert look.subscriptions["s"].kind == "STREAM"
    assert look.last_operation is not None
    assert (look.last_operation.succeeded, look.last_operation.segment_ids) == (False, (0, 1))
    empty = read_look({})
    assert (empty.producers, empty.subscriptions, empty.policy) == (frozenset(), {}, None)


def test_the_load_of_a_segment_is_read_from_statistics_of_the_topic() -> None:
    load = {"msgRateIn": 1.0, "byteRateIn": 2.0, "msgRateOut": 3.0, "byteRateOut": 4.0}
    stats = {
        "layout": {"segments": {"0": {"load": load}, "1": {}}},
        "subscriptions": {"s": {"segments": {"0": {"msgBacklog": 9}}}, "t": {"segments": {}}},
    }
    reading = read_segment(stats, 0)
    assert reading is not None
    assert (reading.rates.msg_rate_in, reading.rates.bytes_rate_out, dict(reading.backlog)) == (1.0, 4.0, {"s": 9})
    assert read_segment(stats, 1) is None, "a part is never taken for the whole (R35)"
    assert read_segment({}, 0) is None


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (500, "Cannot split non-active segment: 0", BackendRefused),
        (500, "Segment not found: 99", BackendRefused),
        (500, "Segments are not adjacent: [0000, 3fff] and [8000, bfff]", BackendRefused),
        (500, "Both segments must be active", BackendRefused),
        (500, "Failed to initialize controller for topic://public/default/a", BackendUnavailable),
        (404, "Scalable topic not found: topic://public/default/a", TopicMissing),
        (409, "Scalable topic already exists: topic://public/default/a", NameTaken),
        (409, "Topic is already scalable: topic://public/default/a", BackendRefused),
    ],
)
def test_what_a_user_did_wrong_is_told_from_what_may_work_later(status: int, text: str, kind: type[Exception]) -> None:
    """The brokers answer 500 with a stack trace for both (measured)."""
    body = (
        f'{{"reason": "\\n --- An unexpected error occurred in the server ---\\n\\nMessage: {text}\\n\\nStacktrace:\\n'
        'java.lang.IllegalArgumentException\\n\\tat a.b.C(D.java:1)"}'
        if status == 500
        else f'{{"reason": "{text}"}}'
    )
    reason = reason_of(status, "application/json", body)
    assert reason == text
    error = error_for("split topic://public/default/a", status, reason, About.TOPIC)
    assert type(error) is kind
