"""Errors of the client library: whatever it raises to an application is a `ClientError`."""

from __future__ import annotations

_MOST_QUOTED = 500


class ClientError(Exception):
    """Something the client library refuses or could not do; the text names the topic and the reason."""


class ScalableTopicNotFoundError(ClientError):
    """There is no such scalable topic that this library can use."""


class NativeTopicError(ClientError):
    """The brokers own the topic's layout (the operator's backend Native), which this library cannot use."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"{topic[:_MOST_QUOTED]} is a scalable topic of the brokers' own (backend Native): its segments have "
            "segment:// names, which pulsar-client refuses, so this library cannot use it; use the Java V5 client of "
            "Pulsar 5"
        )


class LayoutMessageError(ClientError):
    """A message of the layout topic that this release cannot follow: malformed, or of a later version."""

    def __init__(self, text: str) -> None:
        # It may quote the message, which may be anything.
        super().__init__(text[:_MOST_QUOTED])


class ConnectError(ClientError):
    """A producer, consumer or reader could not be attached: access denied, unreachable, incompatible schema."""


class SessionRefusedError(ClientError):
    """The topic's leader wants nothing more of a coordinated consumer, which is therefore of no use any more: another
    one has registered under its name, the right to consume is gone, or the subscription is of another kind.

    Args:
        status: as of HTTP.
        reason: what the leader says.
        where: topic, subscription and consumer.
    """

    def __init__(self, status: int, reason: str, where: str) -> None:
        super().__init__(f"{where} is refused ({status}): {reason}")
        self.status = status
        self.reason = reason


class ClosedError(ClientError):
    """The client, producer or consumer is closed."""


class QueueFullError(ClientError):
    """`send_nowait` was called while as many messages or bytes are pending as the producer's bounds allow."""


class SendError(ClientError):
    """A message was not stored, and will not be: it is too big, for instance, or cannot be encoded."""


class SendTimeoutError(SendError):
    """A message was not handed to a broker within the send timeout; it is not stored, and will not be."""


class SendOutcomeUnknownError(ClientError):
    """Whether a message is stored could not be found out within the send timeout; sending it again may duplicate it."""
