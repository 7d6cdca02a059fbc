"""What a migrated topic was before, as far as that still counts (pip-475 §4, R27). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scalable_topics.layout import TopicName, legacy_topics
from scalable_topics_operator.operations.segment_policies import SegmentPolicies


@dataclass(frozen=True, slots=True)
class MigratedFrom:
    """The ordinary topic that a scalable topic was.

    Args:
        partitions: its partition count when it was migrated; 0 if it was not partitioned.
        at_ms: when, milliseconds since 1970.
        properties: its own, which stay the topic's.
        policies: topic policies that it had; each of as many segments gets what each partition had.
        kinds: by subscription, what it was taken for: `Stream` or `Queue`.
    """

    partitions: int
    at_ms: int
    properties: Mapping[str, str] = field(default_factory=dict)
    policies: SegmentPolicies = field(default_factory=SegmentPolicies)
    kinds: Mapping[str, str] = field(default_factory=dict)

    @property
    def topic_count(self) -> int:
        """How many topics held its messages."""
        return max(1, self.partitions)

    def topics(self, topic: TopicName) -> tuple[str, ...]:
        """Full names of the topics that hold its messages, by segment id."""
        return legacy_topics(topic, self.partitions)

    def to_json(self) -> dict[str, Any]:
        """The form in `status.migratedFrom` and in the topic's properties."""
        data: dict[str, Any] = {"partitions": self.partitions, "atMs": self.at_ms}
        if self.properties:
            data["properties"] = dict(sorted(self.properties.items()))
        if policies := self.policies.to_json():
            data["policies"] = policies
        if self.kinds:
            data["subscriptions"] = [{"name": name, "kind": kind} for name, kind in sorted(self.kinds.items())]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MigratedFrom:
        """Read that form. Raises KeyError, TypeError or ValueError for a broken one."""
        return cls(
            partitions=int(data["partitions"]),
            at_ms=int(data["atMs"]),
            properties={str(key): str(value) for key, value in (data.get("properties") or {}).items()},
            policies=SegmentPolicies.from_json(data.get("policies") or {}),
            kinds={str(entry["name"]): str(entry["kind"]) for entry in data.get("subscriptions") or ()},
        )


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration under way.

    Args:
        source: what is migrated.
        force: whether clients that do not know scalable topics are cut off.
    """

    source: MigratedFrom
    force: bool

    def to_json(self) -> dict[str, Any]:
        """The form in `status.operation.migration`."""
        return {"source": self.source.to_json(), "force": self.force}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Migration:
        """Read that form. Raises KeyError, TypeError or ValueError for a broken one."""
        return cls(MigratedFrom.from_json(data["source"]), bool(data["force"]))
