"""A segment as its broker shows it, from the two statistics documents. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_plus

from scalable_topics_operator.backends.classic.cursors import counts
from scalable_topics_operator.backends.readable import readable
from scalable_topics_operator.operations.protocols import CursorLook, Position, SegmentLook

TERMINATED = "Terminated"


def is_terminated(internal_stats: Mapping[str, Any]) -> bool:
    """Whether the internal statistics say that the topic is sealed."""
    return internal_stats.get("state") == TERMINATED


def look_from(topic: str, stats: Mapping[str, Any], internal_stats: Mapping[str, Any]) -> SegmentLook:
    """Combine `stats` (with precise backlog) and `internalStats` of one topic.

    The two are read one after the other: a cursor that is only in one of them was made or deleted in between
    and is left out. Raises BackendUnavailable if a document lacks what every broker tells.
    """
    with readable(f"statistics of {topic}"):
        # internalStats spells cursor names as URL form data ("a/b c" is "a%2Fb+c", measured); stats does not.
        cursors = {unquote_plus(name): cursor for name, cursor in (internal_stats.get("cursors") or {}).items()}
        return SegmentLook(
            terminated=is_terminated(internal_stats),
            last_confirmed=Position.parse(internal_stats["lastConfirmedEntry"]),
            pending_adds=int(internal_stats["pendingAddEntriesCount"]),
            entries=int(internal_stats["numberOfEntries"]),
            producers=_producers(stats),
            open_transactions=int(stats.get("ongoingTxnCount") or 0),
            first_ledger_id=min((int(one["ledgerId"]) for one in internal_stats["ledgers"]), default=0),
            cursors={
                name: _cursor(name, subscription, cursors[name])
                for name, subscription in stats["subscriptions"].items()
                if name in cursors
            },
        )


def producers_from(topic: str, stats: Mapping[str, Any]) -> frozenset[str]:
    """Names of the producers attached, from `stats`. Raises BackendUnavailable if it lacks them."""
    with readable(f"statistics of {topic}"):
        return _producers(stats)


def _producers(stats: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(str(publisher["producerName"]) for publisher in stats["publishers"])


def _cursor(name: str, subscription: Mapping[str, Any], cursor: Mapping[str, Any]) -> CursorLook:
    return CursorLook(
        counts=counts(name, subscription),
        mark_delete=Position.parse(cursor["markDeletePosition"]),
        backlog=int(subscription["msgBacklog"]),
        consumers=len(subscription["consumers"]),
        consumer_names=frozenset(str(consumer.get("consumerName", "")) for consumer in subscription["consumers"]),
    )
