"""What brokers that own layouts tell of a topic (Pulsar 5.0), as callers are shown it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scalable_topics.layout import SegmentLayout, SegmentState
from scalable_topics_operator.autoscale.policy import DEFAULT
from scalable_topics_operator.backends.classic.cursors import is_internal
from scalable_topics_operator.backends.native.look import read_look
from scalable_topics_operator.gateway.clients_shown import Attached, SegmentCursor
from scalable_topics_operator.operations.native.override import FIELDS

BROKERS = "brokers"
"""Origin of a knob that no policy sets and whose value brokers tell."""

_OURS = ("layout", "autoScale")


def attached(told: Mapping[str, Any]) -> Attached:
    """Who uses a topic, from its statistics."""
    look = read_look(told)
    return Attached(len(look.producers), {name: one.consumers for name, one in look.subscriptions.items()})


def subscriptions(told: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The subscriptions of a topic, from its statistics, by name."""
    return _object(told.get("subscriptions"))


def cursors(told: Mapping[str, Any]) -> dict[str, SegmentCursor]:
    """The subscriptions on a segment, from the segment's statistics, by name."""
    return {
        name: SegmentCursor(int(one.get("msgBacklog") or 0), len(one.get("consumers") or ()), not is_internal(name))
        for name, one in subscriptions(told).items()
    }


def assignment(found: Mapping[str, Any]) -> dict[str, Any]:
    """Who reads what of an ordered subscription, which the brokers have decided; they tell no version of it."""
    return {
        "version": None,
        "drained": [],
        "consumers": [
            {
                "name": str(one.get("consumerName") or ""),
                "registeredAt": str(one.get("connectedSince") or ""),
                "segments": [{"segment": int(segment), "buckets": []} for segment in one.get("segmentIds") or ()],
                "releasing": [],
                "releasingBuckets": [],
            }
            for one in found.get("consumers") or ()
        ],
    }


def with_told(shown: Mapping[str, Any], told: Mapping[str, Any], layout: SegmentLayout) -> dict[str, Any]:
    """A topic's statistics, completed and corrected by those of the brokers.

    Args:
        shown: what the topic's leader tells.
        told: what the brokers tell.
        layout: as recorded; a segment that is not in it yet is shown without its range.
    """
    theirs = _object(told.get("layout"))
    scaling = _object(told.get("autoScale"))
    backlogs = [int(one.get("msgBacklog") or 0) for one in subscriptions(told).values()]
    return {
        **shown,
        **{name: value for name, value in told.items() if name not in _OURS},
        "layout": {
            **theirs,
            "segments": {key: _segment(layout, int(key), one) for key, one in _object(theirs.get("segments")).items()},
        },
        "autoScale": {**scaling, "inForce": scaling.get("policy"), **_object(shown.get("autoScale"))},
        "scaling": {**_object(shown.get("scaling")), "maxBacklog": max(backlogs, default=0)},
    }


def with_policy_told(shown: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """The policy that the brokers go by: where no policy says anything, what they say themselves.

    Args:
        shown: the policy that the topic's leader tells.
        told: the brokers' statistics.
    """
    theirs = _object(_object(told.get("autoScale")).get("policy"))
    return {**shown, "knobs": [_knob(one, theirs) for one in _objects(shown.get("knobs"))]}


def _knob(knob: Mapping[str, Any], theirs: Mapping[str, Any]) -> Mapping[str, Any]:
    field = FIELDS.get(str(knob["knob"]))
    if knob["origin"] != DEFAULT or field is None or field not in theirs:
        return knob
    return {**knob, "value": theirs[field], "origin": BROKERS}


def _segment(layout: SegmentLayout, segment_id: int, told: Mapping[str, Any]) -> dict[str, Any]:
    known = layout.segments.get(segment_id)
    return {
        "load": None,
        **told,
        "state": SegmentState(str(told.get("state")).capitalize()).value,
        "hashRange": known.hash_range.descriptor if known is not None else None,
    }


def _object(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _objects(found: Any) -> Sequence[Mapping[str, Any]]:
    return found if isinstance(found, list | tuple) else ()
