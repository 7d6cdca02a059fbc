"""Reason codes of conditions for what brokers refuse. Pure."""

from __future__ import annotations

from scalable_topics_operator.operations.errors import (
    AccessDenied,
    BackendRefused,
    ClientsAttached,
    NamespaceMissing,
    NameTaken,
    ReasonedRefusal,
    Unsupported,
)

_REASONS: tuple[tuple[type[BackendRefused], str], ...] = (
    (AccessDenied, "AccessDenied"),
    (NamespaceMissing, "NamespaceMissing"),
    (NameTaken, "NameTaken"),
    (ClientsAttached, "ClientsAttached"),
    (Unsupported, "Unsupported"),
)


def refusal_reason(refusal: BackendRefused) -> str:
    """The reason code of a refusal."""
    if isinstance(refusal, ReasonedRefusal):
        return refusal.reason
    return next((reason for kind, reason in _REASONS if isinstance(refusal, kind)), "BrokerRefused")
