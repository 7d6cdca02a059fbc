"""The brokers' record of a scalable topic, as Pulsar 5.0 writes it, turned into what operations work with. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalable_topics.layout import TopicName, from_pip468
from scalable_topics.layout.json_fields import MALFORMED
from scalable_topics_operator.backends.claim_properties import claim_of, user_properties
from scalable_topics_operator.operations.errors import BackendRefused
from scalable_topics_operator.operations.native.protocols import NativeTopic

_LAYOUT = ("epoch", "nextSegmentId", "segments")
# Follow from the other fields.
_DERIVED = ("sealed", "active", "root", "leaf", "legacy")


def read_topic(topic: TopicName, record: Mapping[str, Any]) -> NativeTopic:
    """Read `GET /admin/v2/scalable/…`.

    Raises BackendRefused for a layout that breaks an invariant, and for a claim that this release cannot read: nothing
    acts on either.
    """
    override = record.get("autoScalePolicy")
    try:
        properties = {str(key): str(value) for key, value in (record.get("properties") or {}).items()}
        segments = record.get("segments") or {}
        layout = {key: record[key] for key in _LAYOUT if key in record}
        layout["segments"] = {
            key: {name: value for name, value in found.items() if name not in _DERIVED}
            for key, found in segments.items()
        }
        parsed = from_pip468(layout)
    except MALFORMED as error:
        raise BackendRefused(f"{topic}: the brokers' layout is not valid and nothing acts on it: {error}") from None
    return NativeTopic(
        layout=parsed,
        properties=user_properties(properties),
        claim=claim_of(properties),
        override=override if isinstance(override, Mapping) else None,
    )
