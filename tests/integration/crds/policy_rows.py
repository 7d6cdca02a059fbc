"""Rules of SegmentAutoScalePolicy."""

from __future__ import annotations

from typing import Any

from tests.integration.crds import common_rows
from tests.integration.crds.rows import Table

_TABLE = Table("SegmentAutoScalePolicy")
_TARGET = "spec.target"
_CLUSTER: dict[str, Any] = {"scope": "Cluster", "connectionRef": {"name": "main"}}
_NAMESPACE: dict[str, Any] = {
    "scope": "PulsarNamespace",
    "connectionRef": {"name": "main"},
    "pulsarNamespace": "acme/orders",
}
_TOPICS: dict[str, Any] = {"scope": "Topics", "selector": {"matchLabels": {"team": "shop"}}}
_TOPIC: dict[str, Any] = {"scope": "Topic", "topicRef": {"name": "orders"}}
_GOOD = [_CLUSTER, _NAMESPACE, _TOPICS, _TOPIC, {"scope": "Topics", "selector": {}, "connectionRef": {"name": "main"}}]


def _without(target: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in target.items() if key != name}


_TABLE.required("spec", _TARGET, f"{_TARGET}.scope", f"{_TARGET}.connectionRef.name")
common_rows.knobs(_TABLE, "spec", {"target": _CLUSTER})
_TABLE.one_of(f"{_TARGET}.scope", "Cluster", "PulsarNamespace", "Topics", "Topic", accepted=["PulsarNamespace"])
_TABLE.rule(
    _TARGET,
    "connectionRef is needed for the scopes Cluster and PulsarNamespace",
    _GOOD,
    [_without(_CLUSTER, "connectionRef"), _without(_NAMESPACE, "connectionRef")],
)
_TABLE.rule(
    _TARGET,
    "pulsarNamespace is needed for the scope PulsarNamespace and not allowed otherwise",
    _GOOD,
    [
        _without(_NAMESPACE, "pulsarNamespace"),
        {**_CLUSTER, "pulsarNamespace": "acme/orders"},
        {**_TOPICS, "pulsarNamespace": "acme/orders"},
    ],
)
_TABLE.rule(
    _TARGET,
    "selector is needed for the scope Topics and not allowed otherwise",
    _GOOD,
    [_without(_TOPICS, "selector"), {**_CLUSTER, "selector": {}}, {**_NAMESPACE, "selector": {}}],
)
_TABLE.rule(
    _TARGET,
    "topicRef is needed for the scope Topic and not allowed otherwise",
    _GOOD,
    [
        _without(_TOPIC, "topicRef"),
        {**_CLUSTER, "topicRef": {"name": "orders"}},
        {**_TOPICS, "topicRef": {"name": "a"}},
    ],
)
_TABLE.required(f"{_TARGET}.topicRef.name")
common_rows.object_name(_TABLE, f"{_TARGET}.connectionRef.name")
common_rows.object_name(_TABLE, f"{_TARGET}.topicRef.name")
common_rows.pulsar_namespace(_TABLE, f"{_TARGET}.pulsarNamespace")

_EXPRESSIONS = f"{_TARGET}.selector.matchExpressions"
_TABLE.most_keys(f"{_TARGET}.selector.matchLabels", 64)
_TABLE.longest(f"{_TARGET}.selector.matchLabels.*", 63)
_TABLE.most_entries(_EXPRESSIONS, 64, lambda index: {"key": f"label-{index}", "operator": "Exists"})
_TABLE.required(f"{_EXPRESSIONS}[].key", f"{_EXPRESSIONS}[].operator")
_TABLE.not_empty(f"{_EXPRESSIONS}[].key")
_TABLE.longest(f"{_EXPRESSIONS}[].key", 316)
_TABLE.one_of(f"{_EXPRESSIONS}[].operator", "In", "NotIn", "Exists", "DoesNotExist", accepted=["In", "NotIn"])
_TABLE.most_entries(f"{_EXPRESSIONS}[].values", 64, "value-{}".format)
_TABLE.longest(f"{_EXPRESSIONS}[].values[]", 63)
_TABLE.rule(
    f"{_EXPRESSIONS}[]",
    "values are needed for In and NotIn and not allowed otherwise",
    [
        {"key": "tier", "operator": "In", "values": ["gold"]},
        {"key": "tier", "operator": "NotIn", "values": ["gold"]},
        {"key": "tier", "operator": "Exists"},
        {"key": "tier", "operator": "DoesNotExist", "values": []},
    ],
    [
        {"key": "tier", "operator": "In"},
        {"key": "tier", "operator": "NotIn", "values": []},
        {"key": "tier", "operator": "Exists", "values": ["gold"]},
    ],
)
common_rows.conditions(_TABLE)
_TABLE.required(*(f"status.effective[].{name}" for name in ("knob", "value", "origin")))

ROWS = _TABLE.rows
