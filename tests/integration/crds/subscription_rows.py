"""Rules of ScalableTopicSubscription."""

from __future__ import annotations

from typing import Any

from tests.integration.crds import common_rows
from tests.integration.crds.rows import Table

_TABLE = Table("ScalableTopicSubscription")
_STREAM: dict[str, Any] = {"scalableTopic": "orders", "subscription": "billing", "type": "Stream"}
_CHECKPOINT: dict[str, Any] = {**_STREAM, "type": "Checkpoint", "group": "nightly"}

_TABLE.required("spec", "spec.scalableTopic", "spec.subscription", "spec.type")
_TABLE.fixed(
    "spec",
    "a ScalableTopicSubscription cannot be changed; create another one",
    _CHECKPOINT,
    {**_CHECKPOINT, "group": "weekly"},
)
_TABLE.rule(
    "spec",
    "group is needed when type is Checkpoint and not allowed otherwise",
    [_STREAM, _CHECKPOINT],
    [{**_STREAM, "group": "nightly"}, {**_STREAM, "type": "Checkpoint"}],
)
common_rows.object_name(_TABLE, "spec.scalableTopic")
common_rows.subscription_name(_TABLE, "spec.subscription")
_TABLE.one_of("spec.type", "Stream", "Checkpoint", accepted=["Stream"])
_TABLE.not_empty("spec.group")
_TABLE.longest("spec.group", 255)
_TABLE.one_of("spec.initialPosition", "Earliest", "Latest")

common_rows.conditions(_TABLE)
_TABLE.one_of("status.phase", "Pending", "Active", "Seeking", "Deleting", "CursorLost")
_TABLE.required(*(f"status.version.{name}" for name in ("term", "epoch", "counter")))
_CONSUMERS = "status.consumers"


def _consumer(name: str) -> dict[str, str]:
    return {"name": name, "incarnation": "9c0d", "registeredAt": "2026-11-27T10:00:00Z"}


_TABLE.unique(_CONSUMERS, [_consumer("a"), _consumer("b"), _consumer("a")], "name")
_TABLE.required(*(f"{_CONSUMERS}[].{name}" for name in ("name", "incarnation", "registeredAt")))
_TABLE.time(f"{_CONSUMERS}[].registeredAt")
_TABLE.required(f"{_CONSUMERS}[].assignments[].segment")
_TABLE.at_least(f"{_CONSUMERS}[].assignments[].segment", 0)
_TABLE.at_least(f"{_CONSUMERS}[].releasing[]", 0)
_TABLE.required(f"{_CONSUMERS}[].releasingBuckets[].segment")
_TABLE.at_least(f"{_CONSUMERS}[].releasingBuckets[].segment", 0)

ROWS = _TABLE.rows
