"""What options refuse."""

from __future__ import annotations

from typing import Any

import pytest

from scalable_topics.sdk import ConnectionOptions, ProducerOptions, QueueConsumerOptions, StreamConsumerOptions

EVERY = (ProducerOptions, QueueConsumerOptions, StreamConsumerOptions)


@pytest.mark.parametrize("make", EVERY)
def test_properties_of_an_application_do_not_look_like_marks(make: Any) -> None:
    with pytest.raises(ValueError, match=r"'scalabletopics\.io/x' begins with scalabletopics\.io/"):
        make(properties={"mine": "1", "scalabletopics.io/x": "2"})


def test_partitions_are_counted_now_and_then() -> None:
    with pytest.raises(ValueError, match="partitions_refresh_seconds is 0; it must be above 0"):
        ConnectionOptions("pulsar://localhost:6650", partitions_refresh_seconds=0)
