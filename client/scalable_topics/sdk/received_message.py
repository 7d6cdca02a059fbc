"""A message as a consumer gets it."""

from __future__ import annotations

import base64
from typing import Any

import pulsar

from scalable_topics.layout import Part, is_sticky_key
from scalable_topics.sdk.message_id import MessageId
from scalable_topics.sdk.outgoing_message import BASE64, KEY_ENCODING_PROPERTY, ORDERING_KEY_PROPERTY

_OWN_PROPERTIES = (KEY_ENCODING_PROPERTY, ORDERING_KEY_PROPERTY)


class ReceivedMessage:
    """One message of a scalable topic.

    Args:
        message: what pulsar-client received.
        segment_id: the segment it is from.
    """

    __slots__ = ("_message", "_segment_id")

    def __init__(self, message: pulsar.Message, segment_id: int) -> None:
        self._message = message
        self._segment_id = segment_id

    @property
    def raw(self) -> pulsar.Message:
        """The message of pulsar-client."""
        return self._message

    @property
    def segment_id(self) -> int:
        """The segment it is stored in."""
        return self._segment_id

    @property
    def message_id(self) -> MessageId:
        """Where it is stored."""
        return MessageId(self._segment_id, self._message.message_id())

    @property
    def data(self) -> bytes:
        """The payload."""
        data: bytes = self._message.data()
        return data

    @property
    def value(self) -> Any:
        """The payload, decoded by the consumer's schema. May block: Avro downloads the writer's schema once."""
        return self._message.value()

    @property
    def key(self) -> str | bytes | None:
        """The key; bytes if the producer gave bytes, None if there is none (pulsar-client cannot tell an empty one)."""
        key: str = self._message.partition_key()
        if self._message.properties().get(KEY_ENCODING_PROPERTY) == BASE64:
            return base64.b64decode(key)
        return key or None

    @property
    def ordering_key(self) -> str | bytes | None:
        """The ordering key; bytes if it is not text. None if there is none, or if it is but the key in bytes."""
        properties = self._message.properties()
        encoded = properties.get(ORDERING_KEY_PROPERTY)
        found = self._message.ordering_key().encode() if encoded is None else base64.b64decode(encoded)
        is_buckets = encoded is None and is_sticky_key(found.decode())
        is_key = properties.get(KEY_ENCODING_PROPERTY) == BASE64 and found == self.key
        return None if is_buckets or is_key or not found else _as_text(found)

    @property
    def properties(self) -> dict[str, str]:
        """The application's properties."""
        properties: dict[str, str] = self._message.properties()
        return {name: value for name, value in properties.items() if name not in _OWN_PROPERTIES}

    @property
    def publish_timestamp_ms(self) -> int:
        """When it was sent, milliseconds since 1970, by the producer's clock."""
        return int(self._message.publish_timestamp())

    @property
    def event_timestamp_ms(self) -> int | None:
        """Event time, milliseconds since 1970; None if there is none."""
        return int(self._message.event_timestamp()) or None

    @property
    def redelivery_count(self) -> int:
        """How often it was delivered before."""
        return int(self._message.redelivery_count())

    @property
    def producer_name(self) -> str:
        """Name of the Pulsar producer that sent it."""
        return str(self._message.producer_name())

    def __repr__(self) -> str:
        return f"ReceivedMessage({self.message_id!r})"


class StreamMessage(ReceivedMessage):
    """A message as a stream consumer gets it: with its place in the order of delivery.

    Args:
        message: what pulsar-client received.
        part: what its consumer reads of the segment it is from: all of it, or the message's entry bucket.
        number: counts the messages that its consumer has delivered, over all segments.
        delivered_by: tells the messages of one consumer from those of others.
    """

    __slots__ = ("delivered_by", "number", "part")

    def __init__(self, message: pulsar.Message, part: Part, number: int, delivered_by: object) -> None:
        super().__init__(message, part.segment_id)
        self.part = part
        self.number = number
        self.delivered_by = delivered_by

    def __repr__(self) -> str:
        return f"StreamMessage({self.message_id!r})"


def _as_text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
