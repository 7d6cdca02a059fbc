"""When the layout topic is looked for, where there is none."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pulsar
import pytest

from scalable_topics.layout import READER_PREFIX, TopicName
from scalable_topics.sdk import ConnectError, layout_reader
from scalable_topics.sdk.errors import ClientError
from scalable_topics.sdk.layout_reader import LayoutReader

TIMEOUT_SECONDS = 20


class Brokers:
    """A pulsar-client whose brokers answer every Reader with an error."""

    def __init__(self) -> None:
        self.answer: Exception = pulsar.TopicNotFound("none")
        self.asked: list[dict[str, Any]] = []

    def connect(self) -> Brokers:
        return self

    def create_reader(self, *_: Any, **settings: Any) -> Any:
        self.asked.append(settings)
        raise self.answer

    def close(self) -> None:
        self.asked.append({"closed": True})


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Brokers, LayoutReader, queue.Queue[Any]]]:
    """Brokers, a reader that pauses for minutes, and what it tells."""
    monkeypatch.setattr(layout_reader, "_LEAST_PAUSE_SECONDS", 600.0)
    monkeypatch.setattr(layout_reader, "_MOST_PAUSE_SECONDS", 600.0)
    arrived: queue.Queue[bytes | ClientError | None] = queue.Queue()
    brokers: Any = Brokers()
    reader = LayoutReader(TopicName.parse("t/n/x"), brokers, arrived.put, most_seconds_without_connection=5.0)
    yield brokers, reader, arrived
    reader.close()
    assert brokers.asked[-1] == {"closed": True}


def test_R25_whoever_needs_it_has_it_looked_for_at_once(
    told: tuple[Brokers, LayoutReader, queue.Queue[Any]],
) -> None:
    """A send that is refused may mean that the topic is migrated at this moment."""
    brokers, reader, arrived = told
    assert arrived.get(timeout=TIMEOUT_SECONDS) is None
    for _ in range(3):
        reader.look_now()
        assert arrived.get(timeout=TIMEOUT_SECONDS) is None
    # Not what pulsar-client makes up, which is the same in processes forked from one: a broker lets in one of a name.
    names = {settings["subscription_role_prefix"] for settings in brokers.asked}
    assert len(names) == len(brokers.asked) == 4
    assert all(name.startswith(f"{READER_PREFIX}-reader-") for name in names)


def test_other_troubles_are_told_by_name(told: tuple[Brokers, LayoutReader, queue.Queue[Any]]) -> None:
    brokers, reader, arrived = told
    assert arrived.get(timeout=TIMEOUT_SECONDS) is None
    brokers.answer = pulsar.AuthorizationError("with a secret")
    reader.look_now()
    error = arrived.get(timeout=TIMEOUT_SECONDS)
    assert isinstance(error, ConnectError)
    assert str(error) == "cannot read the layout of topic://t/n/x: AuthorizationError"
