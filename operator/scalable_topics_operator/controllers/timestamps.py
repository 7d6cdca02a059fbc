"""Times as the Kubernetes API writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp_now() -> str:
    """Now, RFC 3339 with seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
