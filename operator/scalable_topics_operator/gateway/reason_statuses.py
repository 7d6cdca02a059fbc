"""What the reasons of objects that could not become what they ask for are in HTTP. Pure."""

from __future__ import annotations

from collections.abc import Mapping

_STATUSES: Mapping[str, int] = {
    "InvalidRequest": 400,
    "InvalidSpec": 400,
    "InvalidName": 400,
    "NotAllowed": 403,
    "NamespaceMissing": 404,
    "SegmentMissing": 404,
    "SubscriptionMissing": 404,
    "TopicMissing": 404,
    "NotPossible": 412,
    "CursorLost": 412,
    "CheckpointExpired": 412,
    "NotAvailable": 412,
    "Unsupported": 412,
    "Terminated": 412,
    "TooManyPartitions": 412,
    "MigrationDisabled": 412,
}


def status_of(reason: str) -> int:
    """The status of a reason; 409 for all that is not listed: brokers, or the state of things, are in the way."""
    return _STATUSES.get(reason, 409)
