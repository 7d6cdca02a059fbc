"""Who uses a topic, as callers are shown it, whoever owns its layout. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attached:
    """Who uses a topic.

    Args:
        producers: how many are attached.
        consumers: the same of each subscription that the brokers have, by name.
    """

    producers: int
    consumers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SegmentCursor:
    """A subscription on one segment.

    Args:
        backlog: entries that are not acknowledged.
        consumers: how many are attached.
        counts: whether the segment is kept for it (R16).
        mark_delete: up to where everything is acknowledged; empty where brokers do not tell (Native).
    """

    backlog: int
    consumers: int
    counts: bool
    mark_delete: str = ""
