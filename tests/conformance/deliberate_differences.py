"""Where we differ from the peer on purpose (R38): by case, what we answer instead and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Difference:
    ours: dict[str, Any]
    reason: str


Key = tuple[str, str]
"""Area and name of a case."""

DIFFERENCES: dict[Key, Difference] = {
    ("SegmentLayout", "HAZARD: pruning the merged-away parents resets depth"): Difference(
        ours={"3": 1},
        reason="merge depth is stored and inherited, so pruning cannot undo the bound (hazard B7)",
    ),
    ("EntryBucket", "HAZARD: counts above 32768 make bucket 0 one slot wide"): Difference(
        ours={"error": "illegal-argument"},
        reason="more than 1024 buckets are refused, so no list the dispatcher rejects is made (hazard B12)",
    ),
    ("EntryBucket", "equal width clamps at the ring size"): Difference(
        ours={"error": "illegal-argument"},
        reason="bucket counts are 1 to 1024; a larger one is a mistake to be heard, not to be clamped",
    ),
    ("SegmentName", "persistent parent refused"): Difference(
        ours={"name": "segment://tenant/ns/my-topic/0000-ffff-0"},
        reason="persistent:// and topic:// spell one identity (pip-475), so the name is made, not refused",
    ),
    ("AutoScaleEvaluator", "merge may fire while a consumer split is held by the cooldown"): Difference(
        ours={"decision": "none"},
        reason="nothing is merged that the same consumers would have split again once the cool-down is over (§8)",
    ),
    ("AutoScaleEvaluator", "HAZARD cold pair under demand merges..."): Difference(
        ours={"decision": "none"},
        reason="the merged segment would be split for its consumers at once: the first half of a flip-flop (§8)",
    ),
    ("AutoScaleEvaluator", "at maxSegments no consumer split"): Difference(
        ours={"decision": "rebucket", "segmentIds": [0, 1], "bucketCount": 4, "reason": "at-max-segments"},
        reason="the case is of the peer before it had rebuckets (#26434); what came after is followed",
    ),
    ("LoadReporter", "after forgetting, the stored value is the baseline"): Difference(
        ours={"written": [True, True]},
        reason="a process that has just begun relies on no rate of before: each is recorded anew once it counts (R35)",
    ),
    ("SubscriptionCoordinator", "restored coordinator has no drain ordering"): Difference(
        ours={"counts": {"consumer-1": 4}, "excludes": [4, 5]},
        reason="the barrier is never down: until a new leader knows what is drained, children are withheld (#25642)",
    ),
    ("SubscriptionCoordinator", "split without drain ordering: sealed parent stays assigned too"): Difference(
        ours={"counts": {"consumer-1": 4}, "excludes": [4, 5]},
        reason="checkpoint consumers read under the same barrier as stream consumers (DESIGN §9)",
    ),
    ("SubscriptionCoordinator", "after the drain all six (parent kept)"): Difference(
        ours={"includes": [1, 2, 3, 4, 5], "excludes": [0]},
        reason="the case is of the peer before drained segments retired (#26434); what came after is followed",
    ),
    ("Service", "delete removes subscriptions and load records too"): Difference(
        ours={"topic": False, "subscription": False, "segmentDeletes": ">=2"},
        reason="there are no load records to delete: load is kept by leaders and, for later, in the history (R35)",
    ),
    ("Controller", "GC waits for retention, then prunes and cleans up"): Difference(
        ours={"pruned": [False, False], "backingDeleted": True, "loadRecordDeleted": True},
        reason="a sealed segment stays for sends of unknown outcome, too, however short its retention is (R15)",
    ),
    ("Controller", "every write operation refuses a non-leader"): Difference(
        ours={"split": 202, "createSub": 204, "withoutLeader": 503},
        reason="any replica takes a write: it makes an object or passes on the request; the leader acts (R32)",
    ),
    ("Stats", "topic sums over collected segments only"): Difference(
        ours={"msgRateIn": 6, "throughputIn": 600, "backlog": 2000},
        reason="sizes and owners are in the segments' own statistics at the brokers; stats has what decisions use",
    ),
    ("Stats", "fold name p-seg-12 at 12"): Difference(
        ours={"name": "p-seg-12"},
        reason="stats names no producers, so nothing is folded: segments of their own show theirs, at the brokers",
    ),
    ("Watch", "synthetic layout, non-partitioned"): Difference(
        ours={"error": "not-found"},
        reason="only declared topics are watched: plain ones have their own clients, who need no layout (R25)",
    ),
    ("Watch", "synthetic layout, 4 partitions"): Difference(
        ours={"error": "not-found"},
        reason="only declared topics are watched: clients of partitioned ones learn of partitions from brokers (R25)",
    ),
}

# The same cases where the brokers own the layouts (Native) and are asked through our gateway.
NATIVE_DIFFERENCES: dict[Key, Difference] = {}

# What cannot be seen there, with the reason.
NOT_ON_NATIVE: dict[Key, str] = {
    ("Service", "one controller per topic"): "which objects a broker keeps in memory is told by no API",
    ("Service", "controllers are independent"): "which objects a broker keeps in memory is told by no API",
    ("Service", "release then fresh controller"): "which objects a broker keeps in memory is told by no API",
    ("Stats", "rates rounded to three decimals after summing"): (
        "brokers measure rates, so none can be given to them; that theirs are passed on is in test_native_rest.py"
    ),
    ("Stats", "topic sums over collected segments only"): (
        "brokers measure rates and sizes, so none can be given to them; that theirs are passed on is in "
        "test_native_rest.py"
    ),
    ("Stats", "fold name p-seg-12 at 1"): (
        "clients name the producers of segments by their segments: none is called so anywhere but on segment 12"
    ),
}

# Of the cases of applications and brokers together, those that cannot be seen where the operator owns the layouts.
NOT_ON_CLASSIC: dict[Key, str] = {
    ("EndToEnd", "lookup auto-creates one segment when policy allows"): (
        "topics are made by objects and by the gateway; a client that looks for one never makes it"
    ),
}
