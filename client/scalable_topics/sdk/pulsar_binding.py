"""What this library takes from pulsar-client beyond its public classes, in one place.

`pulsar.Producer.send_async` checks types for longer than the send takes, and knows neither raw keys nor sequence id 0;
so messages are built with pulsar-client's own builder. Everything but `send_async`, `close_async`, acknowledging and
redelivering may block, or wait for a lock that a thread of pulsar-client holds while it waits for the interpreter: call
it in a thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import _pulsar
import pulsar

from scalable_topics.layout import TopicName
from scalable_topics.sdk.effects import Outcome
from scalable_topics.sdk.errors import ConnectError

OK = _pulsar.Result.Ok
MessageBuilder = _pulsar.MessageBuilder

_REJECTED = frozenset(
    {
        _pulsar.Result.MessageTooBig,
        _pulsar.Result.InvalidMessage,
        _pulsar.Result.CryptoError,
        _pulsar.Result.IncompatibleSchema,
        _pulsar.Result.InvalidConfiguration,
    }
)
_SEQUENCE_ID = re.compile(r"Message\(prod=[^,]*, seq=([0-9]+), ")


def outcome_of(result: Any) -> Outcome:
    """What a result other than `OK` says about a send."""
    if result == _pulsar.Result.TopicTerminated:
        return Outcome.REFUSED
    return Outcome.REJECTED if result in _REJECTED else Outcome.UNKNOWN


def result_name(result: Any) -> str:
    """A result for an error text."""
    return str(result).rpartition(".")[2]


def sequence_id(message: pulsar.Message) -> int:
    """The sequence id of a received message, which pulsar-client shows only in the message's text form.

    Raises ValueError if it does not.
    """
    match = _SEQUENCE_ID.match(str(message._message))
    if match is None:
        raise ValueError("pulsar-client does not show sequence ids")
    return int(match[1])


class AttachedProducer:
    """A producer of pulsar-client that is attached to a segment.

    Attributes:
        send: sends a built message; its callback comes in a thread of pulsar-client. Does not block.
        flush: sends the batch now and waits until it is stored. Blocks.
        close: detaches it; what it still holds fails. Does not block; its callback comes in a thread of pulsar-client,
            or before the call returns.
    """

    __slots__ = ("close", "flush", "send")

    def __init__(self, producer: pulsar.Producer) -> None:
        self.send: Callable[[Any, Callable[[Any, Any], None]], None] = producer._producer.send_async
        self.flush: Callable[[], None] = producer.flush
        self.close: Callable[[Callable[[Any], None]], None] = producer._producer.close_async


def close_consumer(consumer: Any) -> None:
    """Close a consumer, even if a listener was given it before the call that made it returned. Blocks."""
    consumer._consumer.close()


def close_client(client: pulsar.Client) -> None:
    """Close a pulsar-client, which refuses when its connection has just been dropped: then without ceremony. Blocks."""
    try:
        client.close()
    except pulsar.PulsarException:
        client.shutdown()


def attach_refused(what: str, topic: TopicName, error: pulsar.PulsarException) -> ConnectError:
    """The error for the application of a producer or consumer that cannot be attached, with what may be behind it."""
    why = f"cannot attach a {what} to {topic}: {type(error).__name__}"
    if isinstance(error, pulsar.TopicNotFound):
        why += (
            ". Where it is a scalable topic of the brokers' own (backend Native), use the Java V5 client of Pulsar 5: "
            "this library cannot"
        )
    return ConnectError(why)
