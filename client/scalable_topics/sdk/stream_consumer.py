"""A stream consumer on a scalable topic (pip-460, pip-468, docs/sessions.md)."""

from __future__ import annotations

from typing import ClassVar

from scalable_topics.sdk.coordinated_consumer import CoordinatedConsumer
from scalable_topics.sdk.received_message import StreamMessage
from scalable_topics.sdk.session_frames import ConsumerKind


class StreamConsumer(CoordinatedConsumer):
    """Receives the messages of a subscription in the order of each key, and acknowledges over all segments at once;
    made by `Client.stream_consumer`. Belongs to one event loop.
    """

    KIND: ClassVar[ConsumerKind] = ConsumerKind.STREAM

    async def acknowledge_cumulative(self, message: StreamMessage) -> None:
        """Say that a message and everything this consumer delivered before it, on all its segments, is done with. It is
        sent to the brokers within 100 ms or at close; without a connection, once there is one.

        Of segments that the consumer has given back meanwhile nothing is acknowledged.

        Args:
            message: a message received by this consumer.

        Raises:
            ClientError: the message is from another consumer.
            SessionRefusedError, ConnectError, ClosedError: as of `receive`; nothing is acknowledged.
        """
        self._check()
        self._reading.acknowledge(message)
