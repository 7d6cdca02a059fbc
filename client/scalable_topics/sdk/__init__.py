"""The client library: producers and consumers on scalable topics of a Classic connection, for asyncio; and on ordinary
topics, whose migration they follow (pip-475).

Producers and queue consumers follow the layout topic (docs/contract.md) and need no gateway and no Kubernetes; stream
and checkpoint consumers are coordinated by way of the gateway (docs/sessions.md). `scalable_topics.sdk.sync` has the
same without asyncio. Needs pulsar-client and aiohttp: `pip install scalable-topics[client]`.
"""

from scalable_topics.layout import WHOLE, Part
from scalable_topics.sdk.batch_counts import BucketBatches
from scalable_topics.sdk.checkpoint import Checkpoint, SegmentPosition
from scalable_topics.sdk.checkpoint_consumer import CheckpointConsumer
from scalable_topics.sdk.client import Client
from scalable_topics.sdk.errors import (
    ClientError,
    ClosedError,
    ConnectError,
    LayoutMessageError,
    NativeTopicError,
    QueueFullError,
    ScalableTopicNotFoundError,
    SendError,
    SendOutcomeUnknownError,
    SendTimeoutError,
    SessionRefusedError,
)
from scalable_topics.sdk.gateway_options import GatewayOptions
from scalable_topics.sdk.message_id import MessageId
from scalable_topics.sdk.options import (
    ConnectionOptions,
    DeadLetterPolicy,
    ProducerOptions,
    QueueConsumerOptions,
    StreamConsumerOptions,
)
from scalable_topics.sdk.outgoing_message import MessageFields, OutgoingMessage
from scalable_topics.sdk.producer import Producer
from scalable_topics.sdk.queue_consumer import QueueConsumer
from scalable_topics.sdk.received_message import ReceivedMessage, StreamMessage
from scalable_topics.sdk.stream_consumer import StreamConsumer

__all__ = [
    "WHOLE",
    "BucketBatches",
    "Checkpoint",
    "CheckpointConsumer",
    "Client",
    "ClientError",
    "ClosedError",
    "ConnectError",
    "ConnectionOptions",
    "DeadLetterPolicy",
    "GatewayOptions",
    "LayoutMessageError",
    "MessageFields",
    "MessageId",
    "NativeTopicError",
    "OutgoingMessage",
    "Part",
    "Producer",
    "ProducerOptions",
    "QueueConsumer",
    "QueueConsumerOptions",
    "QueueFullError",
    "ReceivedMessage",
    "ScalableTopicNotFoundError",
    "SegmentPosition",
    "SendError",
    "SendOutcomeUnknownError",
    "SendTimeoutError",
    "SessionRefusedError",
    "StreamConsumer",
    "StreamConsumerOptions",
    "StreamMessage",
]
