"""Rows for what several kinds share."""

from __future__ import annotations

from typing import Any

from tests.integration.crds.rows import Table

OBJECT_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
NAMESPACE_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
PULSAR_NAMESPACE = r"^[-=:.\w]+/[-=:.\w]+$"
SECRET_KEY = r"^[-._a-zA-Z0-9]+$"
QUANTITY = r"^[0-9]+(\.[0-9]+)?(k|M|G|T|Ki|Mi|Gi|Ti)?$"
DURATION = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$"

_CONDITION_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
_METRICS = ("msgRateIn", "bytesRateIn", "msgRateOut", "bytesRateOut")


def object_name(table: Table, path: str) -> None:
    """A reference to an object by name."""
    table.longest(path, 253)
    table.pattern(path, OBJECT_NAME, ["main", "eu.main-1"], ["", "Main", "main_1", "-main", "a..b"])


def namespace_name(table: Table, path: str) -> None:
    """A Kubernetes namespace."""
    table.longest(path, 63)
    table.pattern(path, NAMESPACE_NAME, ["shop", "shop-1"], ["", "Shop", "a.b"])


def secret_key(table: Table, path: str) -> None:
    """A key of a Secret."""
    table.longest(path, 253)
    table.pattern(path, SECRET_KEY, ["token", "ca.crt", "A_b-1"], ["", "a/b"])


def subscription_name(table: Table, path: str) -> None:
    """A subscription that applications may use."""
    table.not_empty(path)
    table.longest(path, 255)
    table.rule(
        path,
        "names that start with __ or pulsar. are internal to the brokers and are not subscriptions",
        ["billing", "a/b", "my__x", "pulsar-x"],
        ["__compaction", "pulsar.dedup"],
    )


def pulsar_namespace(table: Table, path: str) -> None:
    """A Pulsar tenant and namespace."""
    table.longest(path, 255, lambda size: "acme/" + "n" * (size - 5))
    table.pattern(path, PULSAR_NAMESPACE, ["acme/orders", "a-=:._1/b"], ["acme", "acme/", "a/b/c", "acme/two words"])


def checkpoint_positions(table: Table, path: str) -> None:
    """A list of positions."""
    most_whole = 2**53 - 1
    table.required(*(f"{path}[].{name}" for name in ("segment", "ledgerId", "entryId")))
    table.at_least(f"{path}[].segment", 0)
    table.between(f"{path}[].bucket", -1, 1023)
    table.between(f"{path}[].ledgerId", 0, most_whole)
    table.between(f"{path}[].entryId", -1, most_whole)
    table.between(f"{path}[].batchIndex", -1, most_whole)


def conditions(table: Table) -> None:
    """Conditions, as in Kubernetes' meta/v1."""
    path = "status.conditions"
    one = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": "2026-11-27T10:00:00Z",
        "reason": "R",
        "message": "",
    }
    table.unique(path, [one, {**one, "type": "Stalled"}, {**one, "status": "False"}], "type")
    table.required(*(f"{path}[].{name}" for name in ("type", "status", "lastTransitionTime", "reason", "message")))
    table.not_empty(f"{path}[].type")
    table.longest(f"{path}[].type", 316)
    table.pattern(f"{path}[].type", _CONDITION_TYPE, ["LoadFresh", "example.com/Ready"], ["two words", "-x"])
    table.one_of(f"{path}[].status", "True", "False", "Unknown")
    table.at_least(f"{path}[].observedGeneration", 0)
    table.time(f"{path}[].lastTransitionTime")
    table.not_empty(f"{path}[].reason")
    table.longest(f"{path}[].reason", 1024)
    table.pattern(f"{path}[].reason", _REASON, ["Reconciled", "A1,b:c_d"], ["two words", "1st", "trailing:"])
    table.longest(f"{path}[].message", 32768)


def knobs(table: Table, prefix: str, base: dict[str, Any]) -> None:
    """The knobs of automatic scaling, below `prefix`; `base` is what must stand beside them."""
    for name in ("minSegments", "maxSegments"):
        _between_with_partner(table, f"{prefix}.{name}")
    table.between(f"{prefix}.maxDagDepth", 0, 1000)
    table.between(f"{prefix}.split.maxFanout", 2, 64)
    for name in ("maxPerSegment", "budget"):
        table.between(f"{prefix}.rebucket.{name}", 1, 1024)
    for name in ("split.cooldown", "merge.cooldown", "merge.window", "rebucket.cooldown", "rebucket.downWindow"):
        _duration(table, f"{prefix}.{name}")
    _duration(table, f"{prefix}.depthRecovery")
    for metric in _METRICS:
        _quantity(table, f"{prefix}.split.{metric}", [10**9, "2G", "1.5Gi"], "9" * 10 + ".")
        table.rule(f"{prefix}.split.{metric}", "must be greater than 0", ["2G"], [0, "0", "0.000"])
        _quantity(table, f"{prefix}.merge.{metric}", [0, 1, "0.5", "1k", "0Ki"], "0.")
    floor = f"{prefix}.rebucket.splitVsRebucketMinMsgRateIn"
    _quantity(table, floor, [0, 1000, "1.5k"], "0.")

    def limits(least: int, most: int) -> dict[str, Any]:
        return {**base, "minSegments": least, "maxSegments": most}

    table.rule(
        prefix,
        "minSegments must not be greater than maxSegments",
        [limits(3, 3), limits(1, 2), {**base, "minSegments": 200}, {**base, "maxSegments": 1}],
        [limits(4, 3)],
    )
    for metric in _METRICS:

        def gap(split: int | str, merge: int | str, metric: str = metric) -> dict[str, Any]:
            return {**base, "split": {metric: split}, "merge": {metric: merge}}

        table.rule(
            prefix,
            f"merge.{metric} must be lower than split.{metric}, or merged segments would split again",
            [gap("1M", "999k"), gap("1Mi", "1M"), gap(2, "1"), {**base, "split": {metric: 1}, "merge": {}}],
            [gap("1k", 1000), gap("1M", "1Mi"), gap(1, "2")],
        )


def _between_with_partner(table: Table, path: str) -> None:
    """A number of segments; the example says 2 to 32, and each end must keep to the other."""
    low = path.endswith("minSegments")
    table.at_least(path, 1, accepted=[1] if low else [2])
    table.at_most(path, 256, accepted=[32] if low else [256])


def _duration(table: Table, path: str) -> None:
    table.at_least(path, 0)
    table.longest(path, 40, lambda size: "1s" * (size // 2 - 1) + ("10s" if size % 2 else "1s"))
    table.pattern(path, DURATION, [0, 90, "90s", "1h30m", "1.5d", "250ms"], ["", "90", "5 m", "-5m", "5min", "1h30"])


def _quantity(table: Table, path: str, accepted: list[Any], longest_start: str) -> None:
    """A rate or size; `longest_start` begins a text that zeros can follow."""
    table.at_least(path, 0, accepted=accepted[:1])
    table.longest(path, 20, lambda size: longest_start.ljust(size, "0"))
    table.pattern(path, QUANTITY, accepted, ["", "-1", "10 k", "10K", "1e3", ".5", "NaN", "50MB"])
