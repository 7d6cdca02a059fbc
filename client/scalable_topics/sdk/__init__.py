"""The client library: producers and queue consumers on scalable topics of a Classic connection, for asyncio.

They follow the layout topic (docs/contract.md) and need no gateway and no Kubernetes. `scalable_topics.sdk.sync` has
the same without asyncio. Needs pulsar-client: `pip install scalable-topics[client]`.
"""

from scalable_topics.sdk.client import Client
from scalable_topics.sdk.errors import (
    ClientError,
    ClosedError,
    ConnectError,
    LayoutMessageError,
    QueueFullError,
    ScalableTopicNotFoundError,
    SendError,
    SendOutcomeUnknownError,
    SendTimeoutError,
)
from scalable_topics.sdk.message_id import MessageId
from scalable_topics.sdk.options import ConnectionOptions, DeadLetterPolicy, ProducerOptions, QueueConsumerOptions
from scalable_topics.sdk.outgoing_message import MessageFields, OutgoingMessage
from scalable_topics.sdk.producer import Producer
from scalable_topics.sdk.queue_consumer import QueueConsumer
from scalable_topics.sdk.received_message import ReceivedMessage

__all__ = [
    "Client",
    "ClientError",
    "ClosedError",
    "ConnectError",
    "ConnectionOptions",
    "DeadLetterPolicy",
    "LayoutMessageError",
    "MessageFields",
    "MessageId",
    "OutgoingMessage",
    "Producer",
    "ProducerOptions",
    "QueueConsumer",
    "QueueConsumerOptions",
    "QueueFullError",
    "ReceivedMessage",
    "ScalableTopicNotFoundError",
    "SendError",
    "SendOutcomeUnknownError",
    "SendTimeoutError",
]
