"""The statistics of a scalable topic, as brokers give them, turned into what operations look at. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalable_topics_operator.backends.readable import readable
from scalable_topics_operator.operations.native.protocols import LastOperation, NativeLook, NativeSubscription


def read_look(stats: Mapping[str, Any]) -> NativeLook:
    """Read `GET …/stats` of Pulsar 5.0; what is missing is taken to be nothing. Raises BackendUnavailable."""
    with readable("statistics of a scalable topic"):
        return _look(stats)


def _look(stats: Mapping[str, Any]) -> NativeLook:
    layout = _object(stats.get("layout"))
    return NativeLook(
        producers=frozenset(str(one.get("producerName")) for one in stats.get("producers") or ()),
        subscriptions={
            str(name): _subscription(_object(found)) for name, found in _object(stats.get("subscriptions")).items()
        },
        terminated=frozenset(
            int(segment_id)
            for segment_id, found in _object(layout.get("segments")).items()
            if _object(found).get("terminated")
        ),
        last_operation=_last_operation(layout.get("lastOperation")),
        policy=_object(stats.get("autoScale")).get("policy"),
    )


def _subscription(found: Mapping[str, Any]) -> NativeSubscription:
    consumers = found.get("consumers") or ()
    attached = sum(int(_object(one).get("consumerCount") or 0) for one in _object(found.get("segments")).values())
    return NativeSubscription(
        kind=str(found.get("type") or "QUEUE"),
        backlog=int(found.get("msgBacklog") or 0),
        # Those of a stream are known by their sessions, those of a queue by the segments they are attached to.
        consumers=len(consumers) or attached,
        uncovered=tuple(int(segment_id) for segment_id in found.get("uncoveredSegmentIds") or ()),
    )


def _last_operation(found: Any) -> LastOperation | None:
    if not isinstance(found, Mapping):
        return None
    return LastOperation(
        kind=str(found.get("operation") or ""),
        trigger=str(found.get("trigger") or ""),
        segment_ids=tuple(int(segment_id) for segment_id in found.get("segmentIds") or ()),
        succeeded=found.get("status") == "success",
        error=str(found.get("error") or ""),
    )


def _object(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}
