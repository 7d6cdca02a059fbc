"""Rules of ScalableTopic."""

from __future__ import annotations

from typing import Any

from tests.integration.crds import common_rows
from tests.integration.crds.rows import Table

_TABLE = Table("ScalableTopic")
_RANGE = r"^[0-9a-f]{4}-[0-9a-f]{4}$"
_INT32_MAX = 2**31 - 1

GOOD_TOPICS = (
    "topic://acme/shop/orders",
    "persistent://acme/shop/orders",
    "acme/shop/orders",
    "orders",
    "acme/shop/orders-partition-x",
    "acme/shop/orders-segment-0000-ffff",
    "acme/shop/layout",
    "acme/shop/Bestellungen-für-€",
    "a-=:._1/b-=:._2/orders",
    "acme/shop/" + "n" * 200,
)

# Each name with the words its user reads.
BAD_TOPICS = (
    ("must name a topic, for example topic://acme/shop/orders", [""]),
    (
        "non-persistent topics cannot be scalable topics: segments must keep their messages",
        ["non-persistent://acme/shop/orders"],
    ),
    (
        "the scheme must be topic:// or persistent://, or be left out",
        ["segment://acme/shop/orders/0000-ffff-0", "http://acme/shop/orders", "kafka://acme/shop/orders"],
    ),
    (
        "must not contain blanks, other white space or control characters",
        ["acme/shop/two words", " orders", "orders\n", "acme/shop/tab\there", "acme/shop/no\u00a0break", "bell\u0007"],
    ),
    (
        "must be tenant/namespace/name, with or without topic:// or persistent:// before it, or a name alone; "
        "the name must not contain a slash",
        [
            "acme/shop/eu/orders",
            "shop/orders",
            "topic://orders",
            "topic://acme/shop",
            "acme/shop/",
            "/acme/shop",
            "acme//orders",
            "persistent://",
        ],
    ),
    (
        "tenant and namespace may hold only letters, digits and the characters - = : . _",
        ["topic://ac+me/shop/orders", "acme/schöp/orders"],
    ),
    (
        "the name is too long: at most 200 bytes, so that the names of its segments fit",
        ["acme/shop/" + "n" * 201, "n" * 201, "acme/shop/" + "ü" * 101],
    ),
    (
        "ends in -partition-N, which names one partition; name the topic itself",
        ["acme/shop/orders-partition-0", "orders-partition-12"],
    ),
    ("names that end in -layout are reserved for layout topics", ["acme/shop/orders-layout", "orders-layout"]),
    (
        "names that end in -segment-hhhh-hhhh-N are reserved for segments",
        ["acme/shop/orders-segment-0000-ffff-0", "topic://acme/shop/x-segment-8000-bfff-17"],
    ),
)


def _topic_name(path: str) -> None:
    _TABLE.longest(path, 512, lambda size: "t" * (size - 6) + "/n/abc")
    for message, names in BAD_TOPICS:
        _TABLE.rule(path, message, GOOD_TOPICS, names)


_TABLE.required("spec", "spec.topic", "spec.connectionRef", "spec.connectionRef.name")
_topic_name("spec.topic")
_TABLE.fixed("spec.topic", "cannot be changed; create another ScalableTopic", "acme/shop/orders", "acme/shop/bills")
common_rows.object_name(_TABLE, "spec.connectionRef.name")
common_rows.namespace_name(_TABLE, "spec.connectionRef.namespace")
_TABLE.between("spec.segments.initial", 1, 256)
_TABLE.fixed("spec.segments.initial", "counts at creation only; change segments.desired instead", 2, 3)
_TABLE.between("spec.segments.desired", 1, 256)
_TABLE.between("spec.bucketBudget", 1, 1024)

_SUBSCRIPTIONS = "spec.subscriptions"
_TABLE.most_entries(_SUBSCRIPTIONS, 256, lambda index: {"name": f"subscription-{index}"})
_TABLE.unique(_SUBSCRIPTIONS, [{"name": "a"}, {"name": "b"}, {"name": "a", "initialPosition": "Latest"}], "name")
_TABLE.required(f"{_SUBSCRIPTIONS}[].name")
common_rows.subscription_name(_TABLE, f"{_SUBSCRIPTIONS}[].name")
_TABLE.one_of(f"{_SUBSCRIPTIONS}[].initialPosition", "Earliest", "Latest")
_TABLE.one_of(f"{_SUBSCRIPTIONS}[].deletionPolicy", "Retain", "Delete")

common_rows.knobs(_TABLE, "spec.autoScale", {})
_TABLE.one_of("spec.autoScale.engine", "Broker", "Operator")

_PERMISSIONS = "spec.permissions"


def _permission(role: str) -> dict[str, Any]:
    return {"role": role, "actions": ["consume"]}


_TABLE.most_entries(_PERMISSIONS, 256, lambda index: _permission(f"role-{index}"))
_TABLE.unique(_PERMISSIONS, [_permission("a"), _permission("b"), _permission("a")], "role")
_TABLE.required(f"{_PERMISSIONS}[].role", f"{_PERMISSIONS}[].actions")
_TABLE.not_empty(f"{_PERMISSIONS}[].role")
_TABLE.longest(f"{_PERMISSIONS}[].role", 255)
_TABLE.fewest_entries(f"{_PERMISSIONS}[].actions", 1, ["produce"])
_TABLE.unique(f"{_PERMISSIONS}[].actions", ["produce", "consume", "produce"])
_ACTIONS = ("produce", "consume", "functions", "sources", "sinks", "packages")
_TABLE.one_of(f"{_PERMISSIONS}[].actions[]", *_ACTIONS, accepted=[name for name in _ACTIONS if name != "consume"])

_TABLE.between("spec.policies.perSegment.messageTTLSeconds", 0, _INT32_MAX)
_TABLE.between("spec.policies.perSegment.retentionTimeMinutes", -1, _INT32_MAX)
_TABLE.one_of(
    "spec.policies.perSegment.schemaCompatibilityStrategy",
    "UNDEFINED",
    "ALWAYS_INCOMPATIBLE",
    "ALWAYS_COMPATIBLE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
)
_TABLE.between("spec.policies.total.retentionSizeMegabytes", -1, _INT32_MAX)
_TABLE.at_least("spec.policies.total.backlogQuotaBytes", 1)
_TABLE.one_of(
    "spec.policies.total.backlogQuotaAction",
    "producer_request_hold",
    "producer_exception",
    "consumer_backlog_eviction",
)
_NO_LIMIT = "0 would mean no limit to brokers; use -1 for that"
for _rate in ("publishMessagesPerSecond", "dispatchMessagesPerSecond"):
    _TABLE.between(f"spec.policies.total.{_rate}", -1, _INT32_MAX)
    _TABLE.rule(f"spec.policies.total.{_rate}", _NO_LIMIT, [-1, 1], [0])
for _rate in ("publishBytesPerSecond", "dispatchBytesPerSecond"):
    _TABLE.at_least(f"spec.policies.total.{_rate}", -1)
    _TABLE.rule(f"spec.policies.total.{_rate}", _NO_LIMIT, [-1, 2**40], [0])
_TABLE.rule(
    "spec.policies.total",
    "backlogQuotaAction needs backlogQuotaBytes",
    [{"backlogQuotaAction": "producer_exception", "backlogQuotaBytes": 1}, {"backlogQuotaBytes": 1}, {}],
    [{"backlogQuotaAction": "producer_exception"}],
)


def _quota(size_bytes: int, retention_megabytes: int) -> dict[str, int]:
    return {"backlogQuotaBytes": size_bytes, "retentionSizeMegabytes": retention_megabytes}


_TABLE.rule(
    "spec.policies.total",
    "backlogQuotaBytes must be smaller than retentionSizeMegabytes, or brokers refuse both",
    [_quota(10 * 2**20 - 1, 10), _quota(2**50, -1), {"backlogQuotaBytes": 2**50}, {"retentionSizeMegabytes": 1}],
    [_quota(10 * 2**20, 10), _quota(2**50, 1)],
)


def _retention(minutes: int, megabytes: int) -> dict[str, Any]:
    return {"perSegment": {"retentionTimeMinutes": minutes}, "total": {"retentionSizeMegabytes": megabytes}}


_TABLE.rule(
    "spec.policies",
    "retentionTimeMinutes and retentionSizeMegabytes must both be 0 (nothing is kept) or neither",
    [_retention(0, 0), _retention(-1, -1), _retention(60, -1), {"perSegment": {"retentionTimeMinutes": 0}}, {}],
    [_retention(0, 10), _retention(-1, 0)],
)
_TABLE.most_keys("spec.properties", 64)
_TABLE.longest("spec.properties.*", 1024)
_TABLE.required("spec.migrateFrom.topic")
_topic_name("spec.migrateFrom.topic")
_TABLE.one_of("spec.deletionPolicy", "Retain", "Delete")

common_rows.conditions(_TABLE)
_TABLE.one_of("status.backend", "Classic", "Native")
_TABLE.required(*(f"status.layout.segments[].{name}" for name in ("id", "range", "state")))
_TABLE.at_least("status.layout.segments[].id", 0)
_OPERATION = "status.operation"
_TABLE.required(*(f"{_OPERATION}.{name}" for name in ("id", "kind", "step", "term", "startedAt", "request")))
_TABLE.required(*(f"{_OPERATION}.request.{name}" for name in ("kind", "name", "uid")))
_TABLE.required(*(f"{_OPERATION}.children[].{name}" for name in ("id", "range", "buckets")))
_TABLE.one_of(
    f"{_OPERATION}.kind",
    *("Create", "Split", "Merge", "Rebucket", "Migrate", "Prune", "Delete", "Seek", "SkipAll", "Restore"),
)
common_rows.checkpoint_positions(_TABLE, f"{_OPERATION}.positions")
_TABLE.one_of(f"{_OPERATION}.result", "Failed", "RolledBack")
_TABLE.time(f"{_OPERATION}.startedAt")
_TABLE.at_least(f"{_OPERATION}.children[].id", 0)
_TABLE.pattern(f"{_OPERATION}.children[].range", _RANGE, ["0000-ffff"], ["0-ffff", "0000-FFFF", "0000_ffff"])
_TABLE.between(f"{_OPERATION}.children[].buckets", 1, 1024)
_TABLE.required(*(f"status.deleting[].{name}" for name in ("id", "topic", "sinceMs")))
_TABLE.at_least("status.deleting[].id", 0)
_TABLE.unique(
    "status.subscriptions",
    [{"name": "a", "phase": "Active"}, {"name": "b", "phase": "Active"}, {"name": "a", "phase": "Creating"}],
    "name",
)
_TABLE.required("status.subscriptions[].name", "status.subscriptions[].phase")
_TABLE.one_of("status.subscriptions[].phase", "Active", "Creating", "Deleting", "CursorLost")
_TABLE.one_of("status.subscriptions[].initialPosition", "Earliest", "Latest")
_TABLE.one_of("status.subscriptions[].deletionPolicy", "Retain", "Delete")
_TABLE.at_least("status.subscriptions[].outOfScope[]", 0)
common_rows.checkpoint_positions(_TABLE, "status.subscriptions[].floors")
_TABLE.required("status.managedPermissions[].role")
_TABLE.required(*(f"status.actions[].{name}" for name in ("id", "kind", "at", "epoch", "result", "request")))
_TABLE.required(*(f"status.actions[].request.{name}" for name in ("kind", "name", "uid")))
_TABLE.time("status.actions[].at")
_TABLE.one_of("status.actions[].result", "Succeeded", "Failed", "RolledBack")
_TABLE.required("status.settled[].segment")
_TABLE.at_least("status.settled[].segment", 0)
_TABLE.required("status.settled[].producers[].name", "status.settled[].producers[].sequenceId")
_TABLE.required(*(f"status.pruned[].{name}" for name in ("id", "range", "prunedAtMs")))
_TABLE.at_least("status.pruned[].id", 0)
_TABLE.at_least("status.pruned[].children[]", 0)
_TABLE.pattern("status.pruned[].range", _RANGE, ["0000-ffff"], ["0-ffff", "0000-FFFF", "0000_ffff"])
_TABLE.required("status.reports[].reason", "status.reports[].message")
_TABLE.required(f"{_OPERATION}.migration.source")
for _source in ("status.migratedFrom", f"{_OPERATION}.migration.source"):
    _TABLE.required(f"{_source}.partitions", f"{_source}.atMs")
    _TABLE.required(f"{_source}.subscriptions[].name", f"{_source}.subscriptions[].kind")
    _TABLE.one_of(f"{_source}.subscriptions[].kind", "Stream", "Queue", "Unknown")

ROWS = _TABLE.rows
