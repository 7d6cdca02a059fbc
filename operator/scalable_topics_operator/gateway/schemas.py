"""What bodies of requests and answers look like, as JSON Schema. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalable_topics.layout import MAX_BUCKETS
from scalable_topics_operator.api.common import MOST_POSITIONS, MOST_WHOLE
from scalable_topics_operator.autoscale.policy import Unit
from scalable_topics_operator.gateway.policy_fields import MOST, POLICY_FIELDS

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
_RANGE: Schema = {"type": "object", "required": ["start", "end"], "properties": {"start": WHOLE, "end": WHOLE}}


def listed(items: Schema, **more: Any) -> Schema:
    """A list."""
    return {"type": "array", "items": items, **more}


def fields(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """An object; it may have further fields."""
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


def _nullable(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


PROPERTIES: Schema = {
    "type": "object",
    "maxProperties": 64,
    "additionalProperties": {"type": "string", "maxLength": 1024},
}
SEGMENT: Schema = fields(
    {
        "segmentId": WHOLE,
        "hashRange": _RANGE,
        "state": {"type": "string", "enum": ["ACTIVE", "SEALED"]},
        "parentIds": listed(WHOLE),
        "childIds": listed(WHOLE),
        "createdAtEpoch": WHOLE,
        "sealedAtEpoch": WHOLE,
        "createdAtMs": WHOLE,
        "sealedAtMs": WHOLE,
        "entryBucketSplits": listed(WHOLE),
        "mergeDepth": WHOLE,
        "createdBy": TEXT,
    },
    {"legacyTopicName": TEXT, "sealedPosition": TEXT},
)
POLICY: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        field.name: {"type": ["boolean", "null"]}
        if field.unit is Unit.SWITCH
        else {"type": ["integer" if field.whole else "number", "null"], "minimum": 0, "maximum": MOST}
        for field in POLICY_FIELDS
    },
}
RECORD: Schema = fields(
    {
        "epoch": WHOLE,
        "nextSegmentId": WHOLE,
        "segments": {"type": "object", "additionalProperties": SEGMENT},
        "properties": {"type": "object", "additionalProperties": TEXT},
    },
    {"autoScalePolicy": POLICY, "routing": {"type": "string", "enum": ["Modulo"]}},
)
_PART: Schema = fields({"segment": WHOLE, "buckets": listed(WHOLE)})
_ASSIGNMENT: Schema = fields(
    {
        "version": _nullable(fields({"term": WHOLE, "epoch": WHOLE, "counter": WHOLE})),
        "drained": listed(WHOLE),
        "consumers": listed(
            fields(
                {
                    "name": TEXT,
                    "registeredAt": TEXT,
                    "segments": listed(_PART),
                    "releasing": listed(WHOLE),
                    "releasingBuckets": listed(_PART),
                }
            )
        ),
    }
)
SUBSCRIPTION: Schema = fields(
    {
        "subscription": TEXT,
        "type": {"type": "string", "enum": ["STREAM", "QUEUE", "CHECKPOINT"]},
        "phase": TEXT,
        "initialPosition": {"type": "string", "enum": ["earliest", "latest"]},
        "outOfScope": listed(WHOLE),
        "declaredBy": {"type": "string", "enum": ["spec", "object", "request", "clients"]},
    },
    {"assignment": _ASSIGNMENT, "msgBacklog": WHOLE},
)
_ORDINAL: Schema = {**WHOLE, "minimum": 0, "maximum": MOST_WHOLE}
_PLACE: Schema = {**_ORDINAL, "minimum": -1}
POSITIONS: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["positions"],
    "properties": {
        "positions": listed(
            {
                "type": "object",
                "additionalProperties": False,
                "required": ["segment", "ledgerId", "entryId"],
                "properties": {
                    "segment": _ORDINAL,
                    "bucket": {**_PLACE, "maximum": MAX_BUCKETS - 1},
                    "ledgerId": _ORDINAL,
                    "entryId": _PLACE,
                    "batchIndex": _PLACE,
                },
            },
            minItems=1,
            maxItems=MOST_POSITIONS,
        )
    },
}
OPERATION: Schema = fields(
    {"namespace": TEXT, "name": TEXT, "type": TEXT, "phase": TEXT, "reason": TEXT, "message": TEXT}
)
PLAN: Schema = fields({"message": TEXT}, {"plan": {"type": "object"}})
SEGMENT_SUBSCRIPTION: Schema = fields(
    {"backlog": WHOLE, "markDelete": TEXT, "consumers": WHOLE, "counts": {"type": "boolean"}}
)
ENGINE: Schema = {"type": "string", "enum": ["Operator", "Broker"]}
_IDENTITY: Mapping[str, Schema] = {
    "namespace": TEXT,
    "name": TEXT,
    "topic": TEXT,
    "connection": TEXT,
    "backend": TEXT,
    "createdAt": TEXT,
    "paused": {"type": "boolean"},
    "deleting": {"type": "boolean"},
}
FLEET: Schema = fields(
    {
        "topics": listed(
            fields(
                {
                    **_IDENTITY,
                    "epoch": WHOLE,
                    "activeSegments": WHOLE,
                    "sealedSegments": WHOLE,
                    "subscriptions": WHOLE,
                    "operation": TEXT,
                    "lastAction": TEXT,
                    "conditions": {"type": "object", "additionalProperties": TEXT},
                    "reason": TEXT,
                    "message": TEXT,
                    "reports": WHOLE,
                }
            )
        ),
        "next": _nullable(TEXT),
    }
)
TOPIC_STATUS: Schema = fields(
    {
        **_IDENTITY,
        "desiredSegments": _nullable(WHOLE),
        "conditions": listed({"type": "object"}),
        "operation": _nullable({"type": "object"}),
        "actions": listed({"type": "object"}),
        "reports": listed({"type": "object"}),
        "pruning": listed({"type": "object"}),
        "pruned": listed({"type": "object"}),
    }
)
TOPIC_RIGHTS: Schema = fields({"user": TEXT, "may": listed(TEXT)})
STATS: Schema = fields({"topic": TEXT, "layout": {"type": "object"}, "subscriptions": {"type": "object"}})
EXPLANATION: Schema = fields(
    {"topic": TEXT, "decision": {"type": "object"}, "findings": listed({"type": "object"})}, {"engine": ENGINE}
)
EFFECTIVE_POLICY: Schema = fields({"topic": TEXT, "knobs": listed({"type": "object"})}, {"engine": ENGINE})
REFUSAL: Schema = fields({"reason": TEXT}, {"manifest": TEXT})
ACCEPTED: Schema = fields({"reason": TEXT}, {"operation": fields({"namespace": TEXT, "name": TEXT})})
