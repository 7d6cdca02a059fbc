"""Times as the Kubernetes API writes them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def timestamp_now() -> str:
    """Now, RFC 3339 with seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def age_seconds(metadata: Mapping[str, Any]) -> float:
    """How long ago an object was created, by its metadata."""
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    return (datetime.now(UTC) - created).total_seconds()
