"""Producers of the simulated topic: one that follows the layout topic, and one that never heard of it."""

from __future__ import annotations

import json
from typing import Any

from scalable_topics.layout import TopicName, layout_topic_name
from tests.simulation.model_broker import ModelBroker
from tests.simulation.model_clock import ModelClock

LISTENER, DEAF = "listener", "deaf"
_MS = 1000


class ListeningProducer:
    """Writes where the layout topic sends it, and leaves what is announced to be sealed (docs/contract.md).

    Args:
        broker: the brokers.
        topic: the scalable topic.
        clock: the time.

    Attributes:
        kept: the message it goes by.
    """

    def __init__(self, broker: ModelBroker, topic: TopicName, clock: ModelClock) -> None:
        self._broker = broker
        self._name = layout_topic_name(topic)
        self._clock = clock
        self._seen: tuple[int, int] = (0, 0)
        self._kept_since_seconds = 0.0
        self.kept: str | None = None

    def step(self, turn: int) -> None:
        """Take in what was published, then write one message to a segment that may be written to."""
        self.follow()
        if self.kept is None:
            return
        told = json.loads(self.kept)
        announcement = told.get("announcement")
        held: list[int] = []
        if announcement and self._clock.seconds - self._kept_since_seconds < announcement["holdMs"] / _MS:
            held = announcement["parents"]
        active = [one for one in told["segments"] if one["state"] == "Active"]
        for segment in active:
            if segment["id"] not in held:
                self._broker.attach(segment["topic"], LISTENER)
            elif segment["topic"] in self._broker.topics:
                self._broker.topics[segment["topic"]].producers.discard(LISTENER)
        chosen = active[turn % len(active)]
        if chosen["id"] not in held:
            self._broker.produce(chosen["topic"], LISTENER)

    def follow(self) -> None:
        """Read on and keep the newest message."""
        topic = self._broker.topics.get(self._name)
        if topic is None:
            return
        ledger_id, count = self._seen
        if ledger_id != topic.ledger_id:
            # The topic was made again: a Reader starts at its latest message.
            count = max(0, len(topic.messages) - 1)
        for message in topic.messages[count:]:
            if self.kept is None or _replaces(json.loads(message), json.loads(self.kept)):
                self.kept, self._kept_since_seconds = message, self._clock.seconds
        self._seen = (topic.ledger_id, len(topic.messages))


def _replaces(message: dict[str, Any], kept: dict[str, Any]) -> bool:
    uid, counter = message["incarnation"].rsplit(".", 1)
    kept_uid, kept_counter = kept["incarnation"].rsplit(".", 1)
    if uid != kept_uid:
        return True
    order = (int(counter), message["epoch"], message["step"], message["term"])
    return order > (int(kept_counter), kept["epoch"], kept["step"], kept["term"])
