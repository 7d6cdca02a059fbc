"""Whether a Pulsar namespace can hold a scalable topic: what its segments do not work with (R24). Pure."""

from __future__ import annotations

from collections.abc import Collection


def most_topics(limit: int | None) -> int:
    """How many topics a namespace may have by its own limit; 0 for any number, as brokers read what is not positive."""
    return max(0, limit or 0)


def why_unfit(namespace: str, clusters: Collection[str], compaction_threshold_bytes: int | None) -> str:
    """Why a namespace cannot hold scalable topics, whatever their number; empty if it can.

    Args:
        namespace: `tenant/namespace`.
        clusters: those it is replicated to, the local one included.
        compaction_threshold_bytes: backlog at which its topics are compacted; 0 or None for never.
    """
    if len(clusters) > 1:
        return (
            f"namespace {namespace} is replicated to {', '.join(sorted(clusters))}: the segments of a scalable topic "
            "are not kept in step between clusters; use a namespace that is in one cluster"
        )
    if (compaction_threshold_bytes or 0) > 0:
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
