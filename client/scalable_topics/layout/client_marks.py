"""How the client library marks what it attaches to topics (docs/contract.md).

A topic can be migrated only when all its clients know scalable topics (pip-475 §2.4). Brokers show properties of
producers and consumers, and names of subscriptions, in their statistics.
"""

from __future__ import annotations

PROPERTY_PREFIX = "scalabletopics.io/"
"""Properties of producers and consumers that begin so are kept for marks."""

CLIENT_PROPERTY = f"{PROPERTY_PREFIX}client"
"""Property of every producer and consumer of a client that follows layout topics; its value is its version."""

READER_PREFIX = "scalable-topics"
"""Role prefix of every Reader of such a client: its subscription is `scalable-topics-reader-…`, since brokers show no
properties of Readers."""
