"""Whether a Pulsar namespace can hold a scalable topic: what its segments do not work with (R24). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def most_topics(policies: Mapping[str, Any]) -> int:
    """How many topics a namespace may have by its own policies; 0 for any number."""
    return max(0, int(policies.get("max_topics_per_namespace") or 0))


def why_unfit(namespace: str, policies: Mapping[str, Any]) -> str:
    """Why a namespace cannot hold scalable topics, whatever their number; empty if it can.

    Args:
        namespace: `tenant/namespace`.
        policies: its policies document.
    """
    clusters = sorted(str(cluster) for cluster in policies.get("replication_clusters") or ())
    if len(clusters) > 1:
        return (
            f"namespace {namespace} is replicated to {', '.join(clusters)}: the segments of a scalable topic are not "
            "kept in step between clusters; use a namespace that is in one cluster"
        )
    if (policies.get("compaction_threshold") or 0) > 0:
        return (
            f"namespace {namespace} compacts its topics: what a split or merge leaves of a key would be compacted "
            "segment by segment; use a namespace without compaction"
        )
    return ""


def why_too_many(namespace: str, most: int, present: int, more: int) -> str:
    """Why a namespace that may have `most` topics cannot have `more` than are `present`; empty if it can."""
    if not most or present + more <= most:
        return ""
    return (
        f"namespace {namespace} may have {most} topics (maxTopicsPerNamespace) and has {present}: {more} more do not "
        "fit; raise the limit"
    )
