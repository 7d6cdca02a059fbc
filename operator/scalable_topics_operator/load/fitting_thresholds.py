"""Thresholds of topics, as many as one ConfigMap can hold (R35). Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass

from scalable_topics.layout.json_fields import parse_json

MOST_BYTES = 900_000


@dataclass(frozen=True, slots=True)
class FittingThresholds:
    """A file of thresholds that is not too large.

    Args:
        text: JSON.
        left_out: topics that are not in it, the last ones by name; they have the defaults.
    """

    text: str
    left_out: int = 0

    def remark(self) -> str:
        """What people have to know of it; empty if nothing."""
        if not self.left_out:
            return ""
        return (
            f"{self.left_out} topics have the default thresholds in the pipeline: one ConfigMap holds no more than "
            f"{MOST_BYTES // 1000} kB; use more connections, each for a part of the topics, or the runner Embedded"
        )


def fitting_thresholds(thresholds: bytes, most_bytes: int = MOST_BYTES) -> FittingThresholds:
    """Leave out as many topics as there must be.

    Args:
        thresholds: a JSON object by topic.
        most_bytes: how large the text may be, in UTF-8.
    """
    if len(thresholds) <= most_bytes:
        return FittingThresholds(thresholds.decode())
    found = parse_json(thresholds)
    parts: list[str] = []
    size = len("{}")
    for topic in sorted(found):
        part = f"{json.dumps(topic)}:{json.dumps(found[topic], separators=(',', ':'))}"
        size += len(part.encode()) + len(",")
        if size > most_bytes:
            break
        parts.append(part)
    return FittingThresholds("{" + ",".join(parts) + "}", len(found) - len(parts))
