"""Rules of SegmentOperation."""

from __future__ import annotations

from typing import Any

from tests.integration.crds import common_rows
from tests.integration.crds.rows import Table

_TABLE = Table("SegmentOperation")
_SPLIT = {"segment": 0}
_MERGE = {"segments": [0, 1]}
_REBUCKET = {"segment": 0, "buckets": 8}
_SEEK = {"subscription": "billing", "timestamp": "2026-01-01T00:00:00Z"}
_SKIP_ALL = {"subscription": "billing"}
_POSITION = {"segment": 0, "ledgerId": 7, "entryId": 9}
_RESTORE = {"subscription": "billing", "positions": [_POSITION]}


def _spec(kind: str, **blocks: Any) -> dict[str, Any]:
    return {"scalableTopic": "orders", "type": kind, **blocks}


_GOOD = [
    _spec("Split", split=_SPLIT),
    _spec("Merge", merge=_MERGE),
    _spec("Rebucket", rebucket=_REBUCKET),
    _spec("Prune"),
    _spec("Prune", prune={}),
    _spec("Migrate"),
    _spec("Migrate", migrate={}),
    _spec("Seek", seek=_SEEK),
    _spec("SkipAll", skipAll=_SKIP_ALL),
    _spec("Restore", restore=_RESTORE),
]

_TABLE.required("spec", "spec.scalableTopic", "spec.type")
_TABLE.fixed("spec", "a SegmentOperation cannot be changed; create another one", _GOOD[0], _GOOD[1])
_TABLE.fixed(
    "spec",
    "a SegmentOperation cannot be changed; create another one",
    _spec("Prune", dryRun=True),
    _spec("Prune", dryRun=False),
)
for _kind, _block, _value in (
    ("Split", "split", _SPLIT),
    ("Merge", "merge", _MERGE),
    ("Rebucket", "rebucket", _REBUCKET),
    ("Seek", "seek", _SEEK),
    ("SkipAll", "skipAll", _SKIP_ALL),
    ("Restore", "restore", _RESTORE),
):
    _TABLE.rule(
        "spec",
        f"{_block} is needed when type is {_kind} and not allowed otherwise",
        _GOOD,
        [_spec(_kind), _spec("Prune", **{_block: _value})],
    )
for _kind, _block in (("Prune", "prune"), ("Migrate", "migrate")):
    _TABLE.rule(
        "spec",
        f"{_block} is not allowed unless type is {_kind}",
        _GOOD,
        [_spec("Split", split=_SPLIT, **{_block: {}})],
    )
common_rows.object_name(_TABLE, "spec.scalableTopic")
_TABLE.one_of(
    "spec.type",
    *("Split", "Merge", "Rebucket", "Migrate", "Prune", "Seek", "SkipAll", "Restore"),
    accepted=["Split"],
)

_TABLE.rule(
    "spec.split",
    "at makes exactly two parts; leave out at, or into",
    [{"segment": 0, "at": 7}, {"segment": 0, "at": 7, "into": 2}, {"segment": 0, "into": 3}],
    [{"segment": 0, "at": 7, "into": 3}],
)
_TABLE.required("spec.split.segment", "spec.merge.segments", "spec.rebucket.segment", "spec.rebucket.buckets")
_TABLE.at_least("spec.split.segment", 0)
_TABLE.between("spec.split.at", 1, 65535)
_TABLE.at_least("spec.split.into", 2)
_TABLE.at_most("spec.split.into", 64, accepted=[2])
_TABLE.fewest_entries("spec.merge.segments", 2, [3, 4])
_TABLE.most_entries("spec.merge.segments", 64, int)
_TABLE.unique("spec.merge.segments", [3, 4, 3])
_TABLE.at_least("spec.merge.segments[]", 0)
_TABLE.at_least("spec.rebucket.segment", 0)
_TABLE.between("spec.rebucket.buckets", 1, 1024)
_TABLE.most_entries("spec.prune.segments", 512, int)
_TABLE.unique("spec.prune.segments", [0, 1, 0])
_TABLE.at_least("spec.prune.segments[]", 0)
_TABLE.between("spec.ttlSecondsAfterFinished", 0, 31536000)

for _block in ("seek", "skipAll", "restore"):
    _TABLE.required(f"spec.{_block}.subscription")
    common_rows.subscription_name(_TABLE, f"spec.{_block}.subscription")
_TABLE.required("spec.seek.timestamp")
_TABLE.time("spec.seek.timestamp")
_TABLE.longest("spec.seek.timestamp", 40, lambda size: f"2026-01-01T00:00:00.{'0' * (size - 21)}Z")
_TABLE.rule(
    "spec.seek.timestamp",
    "must not be before 1970",
    ["1970-01-01T00:00:00Z", "2026-01-01T12:00:00.125+02:00"],
    ["1969-12-31T23:59:59Z"],
)

_POSITIONS = "spec.restore.positions"
_TABLE.required(_POSITIONS)
common_rows.checkpoint_positions(_TABLE, _POSITIONS)
_TABLE.fewest_entries(_POSITIONS, 1, [_POSITION])
_TABLE.most_entries(_POSITIONS, 2048, lambda number: {**_POSITION, "segment": number})
_TABLE.unique(_POSITIONS, [_POSITION, {**_POSITION, "bucket": 2}, {**_POSITION, "entryId": 10}], "segment,bucket")

common_rows.conditions(_TABLE)
_TABLE.one_of("status.phase", "Pending", "Running", "Succeeded", "Failed")
_TABLE.required(*(f"status.plan.parents[].{name}" for name in ("id", "range")))
_TABLE.required(*(f"status.plan.children[].{name}" for name in ("id", "range", "buckets")))
_TABLE.at_least("status.plan.parents[].id", 0)
_TABLE.at_least("status.plan.children[].id", 0)
_TABLE.time("status.startedAt")
_TABLE.time("status.completedAt")

_MIGRATION = "status.plan.migration"
_TABLE.required(*(f"{_MIGRATION}.{name}" for name in ("partitions", "entries", "storageBytes")))
_TABLE.required(*(f"{_MIGRATION}.subscriptions[].{name}" for name in ("name", "kind", "backlogEntries")))
_TABLE.one_of(f"{_MIGRATION}.subscriptions[].kind", "Stream", "Queue", "Unknown")
_TABLE.required(*(f"{_MIGRATION}.clients[].{name}" for name in ("role", "topic")))
_TABLE.one_of(f"{_MIGRATION}.clients[].role", "Producer", "Consumer")
_TABLE.required(*(f"{_MIGRATION}.obstacles[].{name}" for name in ("reason", "message")))

ROWS = _TABLE.rows
