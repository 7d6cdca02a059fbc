"""What options refuse, and the mark that every producer and consumer carries."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest

from scalable_topics.layout import CLIENT_PROPERTY
from scalable_topics.sdk import ProducerOptions, QueueConsumerOptions, StreamConsumerOptions

EVERY = (ProducerOptions, QueueConsumerOptions, StreamConsumerOptions)


class Recording:
    """A pulsar-client that only says what it was asked for."""

    def create_producer(self, *_: Any, **settings: Any) -> Any:
        return settings

    subscribe = create_producer


@pytest.mark.parametrize("make", EVERY)
def test_properties_of_an_application_do_not_look_like_marks(make: Any) -> None:
    with pytest.raises(ValueError, match=r"'scalabletopics\.io/x' begins with scalabletopics\.io/"):
        make(properties={"mine": "1", "scalabletopics.io/x": "2"})


def test_R25_everything_is_marked_beside_its_own_properties() -> None:
    client: Any = Recording()
    consumer: Any = {"receiver_queue_size": 1, "schema": None, "listener": None}
    mine = {"mine": "1"}
    asked = (
        ProducerOptions(properties=mine).create(client, "t", "name", None),
        QueueConsumerOptions(properties=mine).subscribe(
            client, "t", "s", dead_letter_topic="d", from_earliest=True, **consumer
        ),
        StreamConsumerOptions(properties=mine).subscribe(client, "t", "s", consumer_name="c", **consumer),
    )
    for settings in asked:
        assert dict(settings)["properties"] == {"mine": "1", CLIENT_PROPERTY: version("scalable-topics")}
