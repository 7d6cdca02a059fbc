"""How many sessions a replica serves, and how many of them one caller may have."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.telemetry.metrics import Metrics


class SessionKind(StrEnum):
    """Kinds of sessions, as the metrics name them."""

    WATCH = "watch"
    CONSUMER = "consumer"
    FORWARDED = "forwarded"


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Bounds of one replica.

    Args:
        most: sessions of all kinds, at least 1.
        most_per_caller: of one caller, at least 1.
    """

    most: int = 20_000
    most_per_caller: int = 1_000


class SessionPlaces:
    """Counts sessions.

    Args:
        limits: how many there may be.
        metrics: show how many there are.
    """

    def __init__(self, limits: SessionLimits, metrics: Metrics) -> None:
        self._limits = limits
        self._metrics = metrics
        for kind in SessionKind:
            metrics.gateway_sessions.labels(kind)
        self._taken = 0
        self._callers: Counter[str] = Counter()

    def take(self, kind: SessionKind, caller: str = "") -> None:
        """Count one more.

        Args:
            kind: of session.
            caller: by what its caller is counted; empty where another replica does that.

        Raises Refusal: 429 when there are too many.
        """
        if self._taken >= self._limits.most:
            raise Refusal(429, f"this replica serves {self._taken} sessions, as many as it may; ask another one later")
        if caller and self._callers[caller] >= self._limits.most_per_caller:
            raise Refusal(
                429, f"the caller has {self._callers[caller]} sessions on this replica, as many as one may; close some"
            )
        self._taken += 1
        if caller:
            self._callers[caller] += 1
        self._metrics.gateway_sessions.labels(kind).inc()

    def give_back(self, kind: SessionKind, caller: str = "") -> None:
        """One that was counted has ended."""
        self._taken -= 1
        if caller:
            self._callers[caller] -= 1
            if not self._callers[caller]:
                del self._callers[caller]
        self._metrics.gateway_sessions.labels(kind).dec()
