"""What the gateway asks the controllers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.controllers.connections import ConnectionHandle


class Leaders(Protocol):
    """Who leads what."""

    def leader_of(self, key: ObjectKey) -> Peer | None:
        """The replica that works on an object; None while nobody is known to."""


class Connections(Protocol):
    """The Pulsar clusters."""

    def handle(self, key: ObjectKey) -> ConnectionHandle | None:
        """The handle of a connection; None if there is no such object or it was never looked at."""


class TopicViews(Protocol):
    """What the leader of a topic can tell of it, as JSON objects; None while nothing is known yet."""

    def stats(self, key: ObjectKey) -> Mapping[str, Any] | None:
        """Rates, storage and backlogs of the topic and its segments."""

    def explain(self, key: ObjectKey) -> Mapping[str, Any] | None:
        """The last decision, with what each rule found."""

    def policy(self, key: ObjectKey) -> Mapping[str, Any] | None:
        """The knobs that apply, and where each came from."""


class LoadSource(Protocol):
    """What the replica that samples a connection has found."""

    async def sample(self, key: ObjectKey) -> bytes | None:
        """The newest samples of a connection, as a JSON object's text; None if this replica has none."""
