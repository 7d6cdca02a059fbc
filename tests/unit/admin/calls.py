"""Every method of the admin client, the request it must make, an answer, and what it makes of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from scalable_topics.admin import (
    AssignedConsumer,
    AssignedSegment,
    Assignment,
    AssignmentVersion,
    AutoScalePolicy,
    Awaited,
    Finding,
    InitialPosition,
    Knob,
    OperationName,
    Outcome,
    OutcomeState,
    Plan,
    SegmentCursor,
    SegmentOperation,
    Subscription,
    SubscriptionType,
)
from scalable_topics.layout import Part, SegmentLayout, TopicName, to_pip468
from scalable_topics.sdk.checkpoint import Checkpoint, SegmentPosition
from tests.unit.admin.gateway_in_test import Reply

TOPIC = "topic://acme/shop/orders"
NAME = TopicName.parse(TOPIC)
LAYOUT = SegmentLayout.initial(2, created_at_ms=1000)
RECORD = {**to_pip468(LAYOUT, {"team": "orders"}), "autoScalePolicy": {"maxSegments": 8}}
OPERATION = OperationName("shop", "orders-split-1")
DONE = Reply(204, headers={"X-Scalable-Topics-Operation": "shop/orders-split-1"})
PLANNED = Reply(200, {"message": "would split", "plan": {"parents": [0]}})
NAMESPACE_URL = "/admin/v2/scalable/{tenant}/{namespace}"
TOPIC_URL = f"{NAMESPACE_URL}/{{topic}}"
SUBSCRIPTION_URL = f"{TOPIC_URL}/subscriptions/{{subscription}}"
SEGMENT_URL = "/admin/v2/segments/{tenant}/{namespace}/{topic}/{descriptor}"
POLICY_URL = f"{TOPIC_URL}/autoScalePolicy"
NAMESPACE_POLICY_URL = "/admin/v2/namespaces/{tenant}/{namespace}/scalableTopicAutoScalePolicy"
POLICY = AutoScalePolicy(enabled=False, split_cooldown_seconds=0.5)
POLICY_JSON = {"enabled": False, "splitCooldownSeconds": 0.5}
BILLING = {
    "subscription": "billing",
    "type": "STREAM",
    "phase": "Active",
    "initialPosition": "latest",
    "outOfScope": [0],
    "declaredBy": "object",
    "assignment": {
        "version": {"term": 3, "epoch": 1, "counter": 7},
        "drained": [0],
        "consumers": [
            {
                "name": "one",
                "registeredAt": "2026-01-01T00:00:00Z",
                "segments": [{"segment": 1, "buckets": [0, 2]}],
                "releasing": [2],
                "releasingBuckets": [{"segment": 3, "buckets": [1]}],
            }
        ],
    },
}
BILLING_VALUE = Subscription(
    "billing",
    SubscriptionType.STREAM,
    "Active",
    InitialPosition.LATEST,
    (0,),
    "object",
    Assignment(
        AssignmentVersion(3, 1, 7),
        (0,),
        (
            AssignedConsumer(
                "one", "2026-01-01T00:00:00Z", (AssignedSegment(1, (0, 2)),), (2,), (AssignedSegment(3, (1,)),)
            ),
        ),
    ),
)
CHECKPOINT = Checkpoint(
    TOPIC,
    "billing",
    {Part(3): SegmentPosition(7, 9, 2), Part(1): SegmentPosition(5, -1), Part(3, 1): SegmentPosition(8, 0)},
)
CHECKPOINT_JSON = {
    "positions": [
        {"segment": 1, "ledgerId": 5, "entryId": -1, "batchIndex": -1},
        {"segment": 3, "ledgerId": 7, "entryId": 9, "batchIndex": 2},
        {"segment": 3, "bucket": 1, "ledgerId": 8, "entryId": 0, "batchIndex": -1},
    ]
}
_RATES = {"msgRateIn": 1.5, "byteRateIn": 10, "msgRateOut": 0, "byteRateOut": 0}
STATS = {
    "topic": TOPIC,
    "layout": {
        "epoch": 4,
        "segments": {
            "10": {"name": "b", "hashRange": "8000-ffff", "load": None, "entryBuckets": 1},
            "2": {"name": "a", "hashRange": "0000-7fff", "load": {**_RATES, "ageSeconds": 2.0}, "entryBuckets": 8},
        },
    },
    **_RATES,
    "subscriptions": {"billing": {"msgBacklog": 12}},
    "scaling": {
        "activeSegments": 2,
        "sealedSegments": 1,
        "usefulParallelism": 9,
        "maxBacklog": 12,
        "loadAgeSeconds": 2,
    },
}
EXPLANATION = {
    "topic": TOPIC,
    "observedAt": "2026-01-01T00:00:00Z",
    "decision": {"action": {"kind": "Split", "segments": [0]}, "code": "Split"},
    "findings": [{"rule": "TrafficSplit", "fired": True, "code": "Hot", "why": "1,600 msg/s in"}],
    "load": {"fresh": True},
}
EFFECTIVE = {
    "topic": TOPIC,
    "problem": None,
    "knobs": [
        {"knob": "enabled", "value": True, "origin": "default"},
        {"knob": "split.cooldown", "value": 60, "unit": "s", "origin": "shop/p"},
    ],
}


@dataclass(frozen=True)
class Call:
    """One call of one method.

    Args:
        method: of the client.
        arguments: given by position.
        asks: method and path of the operation.
        options: given by name.
        query: what must be sent in the query.
        path: what must be sent in the path, besides the topic.
        body: what must be sent.
        reply: of the gateway.
        result: what the method answers, or some of its attributes.
    """

    method: str
    arguments: tuple[Any, ...]
    asks: tuple[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    query: Mapping[str, list[str]] = field(default_factory=dict)
    path: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    reply: Reply = field(default_factory=Reply)
    result: Any = None

    def __str__(self) -> str:
        return "-".join([self.method, *self.options])


def _outcome(awaited: Awaited, subscription: str | None = None, **more: Any) -> Outcome:
    return Outcome(NAME, awaited, **{"state": OutcomeState.DONE, "subscription": subscription, **more})


_MADE = _outcome(Awaited.OPERATION_ENDED, operation=OPERATION)
_WITH_OPTIONS: Mapping[str, Any] = {"dry_run": True, "ttl_seconds_after_finished": 60}
_OPTIONS_QUERY = {"dryRun": ["true"], "ttlSecondsAfterFinished": ["60"]}


def _planned(subscription: str | None = None) -> Outcome:
    plan = Plan("would split", {"parents": [0]})
    return _outcome(Awaited.OPERATION_ENDED, subscription, state=OutcomeState.PLANNED, plan=plan)


_BILLING_PATH = {"subscription": "billing"}
_MADE_FOR_BILLING = _outcome(Awaited.OPERATION_ENDED, "billing", operation=OPERATION)
_SEGMENT_PATH = {"descriptor": "0000-7fff-0"}
_SEGMENT = LAYOUT.segments[0]

CALLS = (
    Call("list_topics", ("acme/shop",), ("GET", NAMESPACE_URL), reply=Reply(200, [TOPIC]), result=(NAME,)),
    Call(
        "list_topics",
        ("acme/shop",),
        ("GET", NAMESPACE_URL),
        {"properties": {"team": "a b&c", "x": "y=z"}},
        {"property": ["team=a b&c", "x=y=z"]},
        reply=Reply(200, []),
        result=(),
    ),
    Call(
        "create_topic",
        (TOPIC,),
        ("PUT", TOPIC_URL),
        {"segments": 4, "properties": {"team": "orders"}},
        {"numInitialSegments": ["4"]},
        body={"team": "orders"},
        result=_outcome(Awaited.TOPIC_READY),
    ),
    Call(
        "get_topic",
        (TOPIC,),
        ("GET", TOPIC_URL),
        reply=Reply(200, RECORD),
        result={
            "layout": LAYOUT,
            "properties": {"team": "orders"},
            "auto_scale_policy": AutoScalePolicy(max_segments=8),
        },
    ),
    Call("delete_topic", (TOPIC,), ("DELETE", TOPIC_URL), result=_outcome(Awaited.TOPIC_GONE)),
    Call(
        "delete_topic",
        (TOPIC,),
        ("DELETE", TOPIC_URL),
        {"force": True},
        {"force": ["true"]},
        reply=Reply(202, {"reason": "it is being deleted"}),
        result=_outcome(Awaited.TOPIC_GONE, state=OutcomeState.RUNNING, reason="it is being deleted"),
    ),
    Call(
        "get_stats",
        (TOPIC,),
        ("GET", f"{TOPIC_URL}/stats"),
        reply=Reply(200, STATS),
        result={"epoch": 4, "backlog": {"billing": 12}, "sealed_segments": 1, "load_age_seconds": 2.0, "raw": STATS},
    ),
    Call(
        "explain",
        (TOPIC,),
        ("GET", f"{TOPIC_URL}/autoScale/explain"),
        reply=Reply(200, EXPLANATION),
        result={
            "code": "Split",
            "action": {"kind": "Split", "segments": [0]},
            "findings": (Finding("TrafficSplit", True, "Hot", "1,600 msg/s in"),),
        },
    ),
    Call(
        "split_segment",
        (TOPIC, 0),
        ("POST", f"{TOPIC_URL}/split/{{segmentId}}"),
        {"at": 40000},
        {"at": ["40000"]},
        {"segmentId": "0"},
        reply=DONE,
        result=_MADE,
    ),
    Call(
        "split_segment",
        (TOPIC, 7),
        ("POST", f"{TOPIC_URL}/split/{{segmentId}}"),
        {"into": 4, **_WITH_OPTIONS},
        {"into": ["4"], **_OPTIONS_QUERY},
        {"segmentId": "7"},
        reply=PLANNED,
        result=_planned(),
    ),
    Call(
        "merge_segments",
        (TOPIC, 0, 1, 2, 3),
        ("POST", f"{TOPIC_URL}/merge/{{segmentId1}}/{{segmentId2}}"),
        _WITH_OPTIONS,
        {"segmentId": ["2", "3"], **_OPTIONS_QUERY},
        {"segmentId1": "0", "segmentId2": "1"},
        reply=PLANNED,
        result=_planned(),
    ),
    Call(
        "rebucket_segment",
        (TOPIC, 0, 8),
        ("POST", f"{TOPIC_URL}/rebucket/{{segmentId}}"),
        _WITH_OPTIONS,
        {"buckets": ["8"], **_OPTIONS_QUERY},
        {"segmentId": "0"},
        reply=PLANNED,
        result=_planned(),
    ),
    Call(
        "migrate",
        (TOPIC,),
        ("POST", f"{TOPIC_URL}/migrate"),
        {"force": True, "ttl_seconds_after_finished": 0},
        {"force": ["true"], "ttlSecondsAfterFinished": ["0"]},
        reply=DONE,
        result=_MADE,
    ),
    Call(
        "migrate",
        (TOPIC,),
        ("POST", f"{TOPIC_URL}/migrate"),
        _WITH_OPTIONS,
        _OPTIONS_QUERY,
        reply=PLANNED,
        result=replace(_planned(), awaited=Awaited.TOPIC_READY),
    ),
    Call(
        "get_operation",
        (TOPIC, OPERATION),
        ("GET", f"{TOPIC_URL}/operations/{{operation}}"),
        path={"operation": "orders-split-1"},
        reply=Reply(
            200,
            {
                "namespace": "shop",
                "name": "orders-split-1",
                "type": "Split",
                "phase": "Failed",
                "reason": "NotPossible",
                "message": "sealed",
            },
        ),
        result=SegmentOperation(OPERATION, "Split", "Failed", "NotPossible", "sealed"),
    ),
    Call(
        "create_subscription",
        (TOPIC, "a/b c"),
        ("PUT", SUBSCRIPTION_URL),
        {"type": SubscriptionType.QUEUE, "initial_position": InitialPosition.LATEST},
        {"type": ["QUEUE"], "initialPosition": ["latest"]},
        {"subscription": "a%2Fb%20c"},
        result=_outcome(Awaited.SUBSCRIPTION_ACTIVE, "a/b c"),
    ),
    Call(
        "delete_subscription",
        (TOPIC, "billing"),
        ("DELETE", SUBSCRIPTION_URL),
        {"force": True},
        {"force": ["true"]},
        _BILLING_PATH,
        result=_outcome(Awaited.SUBSCRIPTION_GONE, "billing"),
    ),
    Call(
        "get_subscriptions",
        (TOPIC,),
        ("GET", f"{TOPIC_URL}/subscriptions"),
        reply=Reply(200, [BILLING]),
        result=(BILLING_VALUE,),
    ),
    Call(
        "get_subscription",
        (TOPIC, "billing"),
        ("GET", SUBSCRIPTION_URL),
        path=_BILLING_PATH,
        reply=Reply(200, BILLING),
        result=BILLING_VALUE,
    ),
    Call(
        "seek",
        (TOPIC, "billing", 1_798_804_800_125),
        ("POST", f"{SUBSCRIPTION_URL}/seek"),
        _WITH_OPTIONS,
        {"timestamp": ["1798804800125"], **_OPTIONS_QUERY},
        _BILLING_PATH,
        reply=PLANNED,
        result=_planned("billing"),
    ),
    Call(
        "skip_all",
        (TOPIC, "billing"),
        ("POST", f"{SUBSCRIPTION_URL}/skip-all"),
        path=_BILLING_PATH,
        reply=DONE,
        result=_MADE_FOR_BILLING,
    ),
    Call(
        "skip_all",
        (TOPIC, "billing"),
        ("POST", f"{SUBSCRIPTION_URL}/skip-all"),
        _WITH_OPTIONS,
        _OPTIONS_QUERY,
        _BILLING_PATH,
        reply=PLANNED,
        result=_planned("billing"),
    ),
    Call(
        "restore",
        (CHECKPOINT,),
        ("POST", f"{SUBSCRIPTION_URL}/restore"),
        path=_BILLING_PATH,
        body=CHECKPOINT_JSON,
        reply=DONE,
        result=_MADE_FOR_BILLING,
    ),
    Call(
        "restore",
        (CHECKPOINT,),
        ("POST", f"{SUBSCRIPTION_URL}/restore"),
        {"allow_gaps": True, **_WITH_OPTIONS},
        {"allowGaps": ["true"], **_OPTIONS_QUERY},
        _BILLING_PATH,
        CHECKPOINT_JSON,
        reply=PLANNED,
        result=_planned("billing"),
    ),
    Call("get_auto_scale_policy", (TOPIC,), ("GET", POLICY_URL), reply=Reply(200, POLICY_JSON), result=POLICY),
    Call("get_auto_scale_policy", (TOPIC,), ("GET", POLICY_URL)),
    Call("set_auto_scale_policy", (TOPIC, POLICY), ("POST", POLICY_URL), body=POLICY_JSON),
    Call("remove_auto_scale_policy", (TOPIC,), ("DELETE", POLICY_URL)),
    Call(
        "get_namespace_auto_scale_policy",
        ("acme/shop",),
        ("GET", NAMESPACE_POLICY_URL),
        reply=Reply(200, POLICY_JSON),
        result=POLICY,
    ),
    Call(
        "set_namespace_auto_scale_policy",
        ("acme/shop", POLICY),
        ("POST", NAMESPACE_POLICY_URL),
        body=POLICY_JSON,
    ),
    Call("remove_namespace_auto_scale_policy", ("acme/shop",), ("DELETE", NAMESPACE_POLICY_URL)),
    Call(
        "get_effective_policy",
        (TOPIC,),
        ("GET", f"{POLICY_URL}/effective"),
        reply=Reply(200, EFFECTIVE),
        result={
            "problem": "",
            "knobs": (Knob("enabled", True, "", "default"), Knob("split.cooldown", 60, "s", "shop/p")),
        },
    ),
    Call(
        "get_segments",
        (TOPIC,),
        ("GET", TOPIC_URL),
        reply=Reply(200, RECORD),
        result=tuple(LAYOUT.segments.values()),
    ),
    Call(
        "get_segment",
        (TOPIC, _SEGMENT),
        ("GET", SEGMENT_URL),
        path=_SEGMENT_PATH,
        reply=Reply(200, to_pip468(LAYOUT)["segments"]["0"]),
        result=_SEGMENT,
    ),
    Call(
        "get_segment_subscriptions",
        (TOPIC, "0000-7fff-0"),
        ("GET", f"{SEGMENT_URL}/subscriptions"),
        path=_SEGMENT_PATH,
        reply=Reply(200, {"billing": {"backlog": 5, "markDelete": "3:4", "consumers": 1, "counts": True}}),
        result={"billing": SegmentCursor(5, "3:4", 1, True)},
    ),
    Call(
        "get_segment_backlog",
        (TOPIC, "0000-7fff-0", "billing"),
        ("GET", f"{SEGMENT_URL}/subscription/{{subscription}}/backlog"),
        path={**_SEGMENT_PATH, **_BILLING_PATH},
        reply=Reply(200, 5),
        result=5,
    ),
    Call("create_segment", (TOPIC, _SEGMENT), ("PUT", SEGMENT_URL), path=_SEGMENT_PATH),
    Call("terminate_segment", (TOPIC, _SEGMENT), ("POST", f"{SEGMENT_URL}/terminate"), path=_SEGMENT_PATH),
    Call("delete_segment", (TOPIC, _SEGMENT), ("DELETE", SEGMENT_URL), path=_SEGMENT_PATH),
)
