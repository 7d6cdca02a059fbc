"""Which connections the producers of a client use."""

from __future__ import annotations

import pulsar

from scalable_topics.sdk.options import ConnectionOptions
from scalable_topics.sdk.pulsar_binding import close_client


class SegmentConnections:
    """Keeps the segments of a client's producers on connections of their own, as far as the bound allows.

    A send that a sealed segment refuses makes pulsar-client drop the whole connection, and whatever else was in flight
    on it is sent again: duplicates, without deduplication. So segments share one only beyond `most` of them. Belongs to
    one event loop.

    Args:
        options: how Pulsar is reached.
        most: how many pulsar-clients, each with a connection a broker; 1 or more.
    """

    def __init__(self, options: ConnectionOptions, most: int) -> None:
        self._options = options
        self._most = most
        self._users: dict[pulsar.Client, int] = {}
        self._by_segment: dict[str, tuple[pulsar.Client, int]] = {}

    def acquire(self, segment_topic: str) -> pulsar.Client:
        """The client for a producer on a segment; give it back with `release`."""
        client, producers = self._by_segment.get(segment_topic) or (self._least_used(), 0)
        if not producers:
            self._users[client] += 1
        self._by_segment[segment_topic] = (client, producers + 1)
        return client

    def release(self, segment_topic: str) -> None:
        """A producer on the segment is closed. Its client stays for the next segment."""
        client, producers = self._by_segment[segment_topic]
        if producers > 1:
            self._by_segment[segment_topic] = (client, producers - 1)
        else:
            del self._by_segment[segment_topic]
            self._users[client] -= 1

    def close(self) -> None:
        """Close all clients. Blocks; `acquire` nothing any more."""
        for client in self._users:
            close_client(client)

    def _least_used(self) -> pulsar.Client:
        unused = [client for client, segments in self._users.items() if not segments]
        if unused:
            return unused[0]
        if len(self._users) < self._most:
            client = self._options.connect()
            self._users[client] = 0
            return client
        return min(self._users, key=lambda client: self._users[client])
