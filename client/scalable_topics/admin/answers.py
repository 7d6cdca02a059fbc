"""Reads the gateway's answers. Pure; whatever cannot be read is a LayoutArgumentError that names the field."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from scalable_topics.admin.outcome import OperationName, Plan, SegmentOperation
from scalable_topics.admin.policy import AutoScalePolicy, EffectivePolicy, Knob
from scalable_topics.admin.values import (
    AssignedConsumer,
    AssignedSegment,
    Assignment,
    AssignmentVersion,
    Explanation,
    Finding,
    InitialPosition,
    Rates,
    SegmentCursor,
    SegmentStats,
    Subscription,
    SubscriptionType,
    TopicRecord,
    TopicStats,
)
from scalable_topics.layout import HashRange, LayoutArgumentError, TopicName, from_pip468
from scalable_topics.layout.json_fields import as_int, as_list, as_member, as_object, as_text, required

_POLICY = "autoScalePolicy"
_PROPERTIES = "properties"


def topic_names(body: Any) -> tuple[TopicName, ...]:
    """Full names of topics."""
    return tuple(TopicName.parse(as_text(one, "a topic")) for one in as_list(body, "the list of topics"))


def topic_record(topic: TopicName, body: Any) -> TopicRecord:
    """The record of a topic."""
    source = as_object(body, "the topic record")
    properties = as_object(source.get(_PROPERTIES) or {}, _PROPERTIES)
    policy = source.get(_POLICY)
    return TopicRecord(
        topic,
        from_pip468({name: value for name, value in source.items() if name not in (_PROPERTIES, _POLICY)}),
        {name: as_text(value, f"property {name}") for name, value in properties.items()},
        None if policy is None else auto_scale_policy(policy),
    )


def auto_scale_policy(body: Any) -> AutoScalePolicy:
    """An override."""
    return AutoScalePolicy.from_json(as_object(body, "the policy"))


def effective_policy(body: Any) -> EffectivePolicy:
    """The policy that comes out."""
    source = as_object(body, "the effective policy")
    return EffectivePolicy(
        _topic(source),
        tuple(_knob(as_object(one, "a knob")) for one in _list(source, "knobs")),
        as_text(source.get("problem") or "", "problem"),
    )


def topic_stats(body: Any) -> TopicStats:
    """Load of a topic."""
    source = as_object(body, "the stats")
    layout = as_object(required(source, "layout", "the stats"), "layout")
    segments = as_object(required(layout, "segments", "layout"), "segments")
    scaling = as_object(source.get("scaling") or {}, "scaling")
    subscriptions = as_object(required(source, "subscriptions", "the stats"), "subscriptions")
    age = scaling.get("loadAgeSeconds")
    return TopicStats(
        topic=_topic(source),
        epoch=_int(layout, "epoch"),
        segments=tuple(
            _segment_stats(int(key), as_object(segments[key], f"segment {key}")) for key in sorted(segments, key=int)
        ),
        total=_rates(source),
        backlog=MappingProxyType(
            {name: _int(as_object(one, name), "msgBacklog") for name, one in subscriptions.items()}
        ),
        sealed_segments=_int(scaling, "sealedSegments"),
        useful_parallelism=_int(scaling, "usefulParallelism"),
        max_backlog=_int(scaling, "maxBacklog"),
        load_age_seconds=None if age is None else _number(age, "loadAgeSeconds"),
        raw=MappingProxyType(dict(source)),
    )


def explanation(body: Any) -> Explanation:
    """The last automatic decision."""
    source = as_object(body, "the explanation")
    decision = as_object(required(source, "decision", "the explanation"), "decision")
    action = decision.get("action")
    return Explanation(
        topic=_topic(source),
        observed_at=as_text(source.get("observedAt") or "", "observedAt"),
        code=_text(decision, "code"),
        action=None if action is None else MappingProxyType(dict(as_object(action, "action"))),
        findings=tuple(_finding(as_object(one, "a finding")) for one in _list(source, "findings")),
        raw=MappingProxyType(dict(source)),
    )


def subscriptions(body: Any) -> tuple[Subscription, ...]:
    """Subscriptions, by name."""
    return tuple(subscription(one) for one in as_list(body, "the list of subscriptions"))


def subscription(body: Any) -> Subscription:
    """One subscription."""
    source = as_object(body, "the subscription")
    assignment = source.get("assignment")
    return Subscription(
        name=_text(source, "subscription"),
        type=as_member(SubscriptionType, required(source, "type", "the subscription"), "type"),
        phase=_text(source, "phase"),
        initial_position=as_member(
            InitialPosition, required(source, "initialPosition", "the subscription"), "initialPosition"
        ),
        out_of_scope=_ints(source, "outOfScope"),
        declared_by=_text(source, "declaredBy"),
        assignment=None if assignment is None else _assignment(as_object(assignment, "assignment")),
    )


def segment_cursors(body: Any) -> Mapping[str, SegmentCursor]:
    """Cursors of a segment, by subscription."""
    source = as_object(body, "the cursors")
    return MappingProxyType({name: _cursor(as_object(one, name)) for name, one in source.items()})


def segment_backlog(body: Any) -> int:
    """Entries not acknowledged."""
    return as_int(body, "the backlog")


def operation_name(body: Any) -> OperationName:
    """Which SegmentOperation an answer names."""
    source = as_object(body, "operation")
    return OperationName(_text(source, "namespace"), _text(source, "name"))


def operation_of_header(text: str) -> OperationName | None:
    """Which SegmentOperation the header names; None if it names none."""
    namespace, _, name = text.partition("/")
    return OperationName(namespace, name) if namespace and name else None


def segment_operation(body: Any) -> SegmentOperation:
    """A SegmentOperation as it stands."""
    source = as_object(body, "the operation")
    return SegmentOperation(
        operation_name(source),
        _text(source, "type"),
        _text(source, "phase"),
        as_text(source.get("reason") or "", "reason"),
        as_text(source.get("message") or "", "message"),
    )


def reason(body: Any) -> str:
    """Where something stands that is still going on."""
    return _text(as_object(body, "the answer"), "reason")


def plan(body: Any) -> Plan:
    """What a dry run found."""
    source = as_object(body, "the plan")
    return Plan(_text(source, "message"), as_object(source.get("plan") or {}, "plan"))


def _segment_stats(segment_id: int, source: Mapping[str, Any]) -> SegmentStats:
    load = source.get("load")
    return SegmentStats(
        segment_id,
        _text(source, "name"),
        HashRange.parse_descriptor(_text(source, "hashRange")),
        _int(source, "entryBuckets"),
        None if load is None else _rates(as_object(load, "load")),
    )


def _rates(source: Mapping[str, Any]) -> Rates:
    names = ("msgRateIn", "byteRateIn", "msgRateOut", "byteRateOut")
    return Rates(*(_number(required(source, name, "the rates"), name) for name in names))


def _knob(source: Mapping[str, Any]) -> Knob:
    value = required(source, "value", "a knob")
    return Knob(
        _text(source, "knob"),
        value if isinstance(value, bool | int) else _number(value, "value"),
        as_text(source.get("unit") or "", "unit"),
        _text(source, "origin"),
    )


def _finding(source: Mapping[str, Any]) -> Finding:
    fired = required(source, "fired", "a finding") is True
    return Finding(_text(source, "rule"), fired, _text(source, "code"), _text(source, "why"))


def _assignment(source: Mapping[str, Any]) -> Assignment:
    version = source.get("version")
    return Assignment(
        None if version is None else _version(as_object(version, "version")),
        _ints(source, "drained"),
        tuple(_consumer(as_object(one, "a consumer")) for one in _list(source, "consumers")),
    )


def _version(source: Mapping[str, Any]) -> AssignmentVersion:
    return AssignmentVersion(_int(source, "term"), _int(source, "epoch"), _int(source, "counter"))


def _consumer(source: Mapping[str, Any]) -> AssignedConsumer:
    return AssignedConsumer(
        _text(source, "name"),
        _text(source, "registeredAt"),
        _parts(_list(source, "segments")),
        _ints(source, "releasing"),
        # Gateways of earlier releases know of whole segments only.
        _parts(as_list(source.get("releasingBuckets", []), "releasingBuckets")),
    )


def _parts(values: list[Any]) -> tuple[AssignedSegment, ...]:
    parts = [as_object(one, "a segment") for one in values]
    return tuple(AssignedSegment(_int(part, "segment"), _ints(part, "buckets")) for part in parts)


def _cursor(source: Mapping[str, Any]) -> SegmentCursor:
    counts = required(source, "counts", "a cursor") is True
    return SegmentCursor(_int(source, "backlog"), _text(source, "markDelete"), _int(source, "consumers"), counts)


def _topic(source: Mapping[str, Any]) -> TopicName:
    return TopicName.parse(_text(source, "topic"))


def _text(source: Mapping[str, Any], name: str) -> str:
    return as_text(required(source, name, "the answer"), name)


def _int(source: Mapping[str, Any], name: str) -> int:
    return as_int(required(source, name, "the answer"), name)


def _list(source: Mapping[str, Any], name: str) -> list[Any]:
    return as_list(required(source, name, "the answer"), name)


def _ints(source: Mapping[str, Any], name: str) -> tuple[int, ...]:
    return tuple(as_int(one, name) for one in _list(source, name))


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LayoutArgumentError(f"{name} is not a number")
    return float(value)
