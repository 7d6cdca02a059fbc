"""Topic policies as operations know them (R27). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class SegmentPolicies:
    """Topic policies one segment shall carry (R27); None means: not ours to set.

    Args:
        message_ttl_seconds: messages older than this are acknowledged by the broker.
        retention_minutes: how long acknowledged messages stay; -1 for ever.
        retention_megabytes: how much of them stays; -1 without bound.
        backlog_quota_bytes: backlog at which `backlog_quota_action` applies.
        backlog_quota_action: `producer_request_hold`, `producer_exception` or `consumer_backlog_eviction`.
        publish_messages_per_second: publish rate limit, -1 without bound.
        publish_bytes_per_second: publish rate limit in bytes, -1 without bound.
        dispatch_messages_per_second: dispatch rate limit, -1 without bound.
        dispatch_bytes_per_second: dispatch rate limit in bytes, -1 without bound.
        schema_compatibility_strategy: for example `FULL`, `BACKWARD`.
        deduplication: broker-side deduplication on or off (R15).
    """

    message_ttl_seconds: int | None = None
    retention_minutes: int | None = None
    retention_megabytes: int | None = None
    backlog_quota_bytes: int | None = None
    backlog_quota_action: str | None = None
    publish_messages_per_second: int | None = None
    publish_bytes_per_second: int | None = None
    dispatch_messages_per_second: int | None = None
    dispatch_bytes_per_second: int | None = None
    schema_compatibility_strategy: str | None = None
    deduplication: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """What is set, by names as Kubernetes objects have them."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {_camel(name): value for name, value in values.items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read that form; unknown names are passed over."""
        return cls(**{one.name: data[_camel(one.name)] for one in fields(cls) if _camel(one.name) in data})


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
