"""A message as the application gives it, ready to be built for whichever segment takes it."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Generator, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypedDict

from scalable_topics.layout import is_sticky_key, key_hash
from scalable_topics.sdk.arrivals import Arrivals
from scalable_topics.sdk.message_id import MessageId
from scalable_topics.sdk.pulsar_binding import AttachedProducer, MessageBuilder
from scalable_topics.sdk.segment_lane import Send

KEY_ENCODING_PROPERTY = "scalable-topics.key-encoding"
"""Property of a message whose key is bytes: the message carries the key as base64 text. pulsar-client cannot set
Pulsar's own flag for that."""

ORDERING_KEY_PROPERTY = "scalable-topics.ordering-key"
"""Property of a message whose ordering key is not text, which pulsar-client cannot read, or has given way to one that
stands for an entry bucket: its bytes as base64."""

BASE64 = "base64"

Completions: TypeAlias = "Arrivals[tuple[OutgoingMessage, int, Any, Any]]"
"""Messages with the number of the attempt, pulsar-client's result, and its message id."""


class MessageFields(TypedDict, total=False):
    """What a message may carry besides its value; the keyword arguments of everything that sends.

    Args:
        key: decides the segment, unless there is an ordering key; None goes round robin. Bytes are stored as base64
            text, and hashed as they are (R23).
        ordering_key: takes the key's place in routing.
        properties: of the message.
        event_timestamp_ms: event time, milliseconds since 1970.
        deliver_at_ms: shared subscriptions get it no earlier, milliseconds since 1970.
        deliver_after: the same, counted from now.
    """

    key: str | bytes | None
    ordering_key: str | bytes | None
    properties: Mapping[str, str] | None
    event_timestamp_ms: int | None
    deliver_at_ms: int | None
    deliver_after: timedelta | None


class _Extras(NamedTuple):
    """What most messages do not carry, in pulsar-client's terms.

    Args:
        ordering_key: what brokers hash, unless it gives way to a sticky key.
        hidden_ordering_key: what the application gave as one, as base64; None if it gave none.
        properties, event_timestamp_ms, deliver_at_ms: of the message.
    """

    ordering_key: str | bytes | None
    hidden_ordering_key: str | None
    properties: Mapping[str, str]
    event_timestamp_ms: int | None
    deliver_at_ms: int | None

    def add_to(self, builder: Any, sticky_key: str | None) -> None:
        """Add them to a message that is being built."""
        if sticky_key is None and self.ordering_key is not None:
            builder.ordering_key(self.ordering_key)
        if sticky_key is not None and self.hidden_ordering_key is not None:
            builder.property(ORDERING_KEY_PROPERTY, self.hidden_ordering_key)
        for name, value in self.properties.items():
            builder.property(name, value)
        if self.event_timestamp_ms is not None:
            builder.event_timestamp(self.event_timestamp_ms)
        if self.deliver_at_ms is not None:
            builder.deliver_at(self.deliver_at_ms)


class OutgoingMessage(Send):
    """One message on its way. Awaiting it answers its `MessageId`, or raises what `Producer.send` raises.

    It is no `asyncio.Future`, since most messages need none; `asyncio.ensure_future` makes one of it.

    Args:
        completions: where the outcomes of attempts go.
        order: number of the application's call; rises.
        deadline: monotonic time at which the application is told that it did not succeed.
        data: the encoded payload; None is a null value (a tombstone).
        key, ordering_key, properties, event_timestamp_ms, deliver_at_ms, deliver_after: as `MessageFields`.

    Raises:
        TypeError: a value is of a wrong type.
        ValueError: a text cannot be encoded.
    """

    __slots__ = (
        "_completions",
        "_data",
        "_extras",
        "_key",
        "_waiters",
    )

    def __init__(
        self,
        completions: Completions,
        order: int,
        deadline: float,
        data: bytes | None,
        *,
        key: str | bytes | None = None,
        ordering_key: str | bytes | None = None,
        properties: Mapping[str, str] | None = None,
        event_timestamp_ms: int | None = None,
        deliver_at_ms: int | None = None,
        deliver_after: timedelta | None = None,
    ) -> None:
        if type(data) is not bytes:
            _check_type("the encoded value", data, bytes)
        if type(key) is not str:
            _check_type("key", key, str, bytes)
        routing_key = key if ordering_key is None else ordering_key
        super().__init__(
            order,
            None if routing_key is None else key_hash(routing_key),
            (0 if data is None else len(data)) + (0 if key is None else len(key)),
            deadline,
            deliver_at_ms is not None or deliver_after is not None,
        )
        self._completions = completions
        self._waiters: list[asyncio.Future[None] | Callable[[OutgoingMessage], object]] | None = None
        self._data = data
        self._key = key
        self._extras: _Extras | None = None
        if (
            ordering_key is not None
            or properties is not None
            or event_timestamp_ms is not None
            or self.travels_alone
            or isinstance(key, bytes)
        ):
            self._carry(ordering_key, dict(properties or {}), event_timestamp_ms, deliver_at_ms, deliver_after)

    def _carry(
        self,
        ordering_key: str | bytes | None,
        properties: dict[str, str],
        event_timestamp_ms: int | None,
        deliver_at_ms: int | None,
        deliver_after: timedelta | None,
    ) -> None:
        if ordering_key is not None:
            _check_type("ordering_key", ordering_key, str, bytes)
            self.size_bytes += len(ordering_key)
        self.size_bytes += sum(_property_size(name, value) for name, value in properties.items())
        if event_timestamp_ms is not None:
            _check_time("event_timestamp_ms", event_timestamp_ms)
        if deliver_at_ms is not None:
            _check_time("deliver_at_ms", deliver_at_ms)
        hidden = None if ordering_key is None else _base64(ordering_key)
        if isinstance(self._key, bytes):
            properties[KEY_ENCODING_PROPERTY] = BASE64
            if ordering_key is None:
                # Brokers hash this for key-shared subscriptions: the key's own bytes, as for every other client.
                ordering_key = self._key
            self._key = base64.b64encode(self._key).decode()
        if ordering_key is not None and not _can_be_read_back(ordering_key):
            properties[ORDERING_KEY_PROPERTY] = _base64(ordering_key)
        if deliver_after is not None:
            deliver_at_ms = int(time.time() * 1000 + deliver_after / timedelta(milliseconds=1))
        self._extras = _Extras(ordering_key, hidden, properties, event_timestamp_ms, deliver_at_ms)

    def done(self) -> bool:
        """Whether there is an outcome."""
        return self.is_told

    def result(self) -> MessageId:
        """Where it is stored. Raises what `Producer.send` raises, or InvalidStateError while there is no outcome."""
        if not self.is_told:
            raise asyncio.InvalidStateError("the message has no outcome yet")
        if self.error is not None:
            raise self.error
        assert self.lane is not None
        return MessageId(self.lane.key.segment_id, self.position)

    def exception(self) -> Exception | None:
        """Why it is not stored, None if it is. Raises InvalidStateError while there is no outcome."""
        if not self.is_told:
            raise asyncio.InvalidStateError("the message has no outcome yet")
        return self.error

    def add_done_callback(self, callback: Callable[[OutgoingMessage], object]) -> None:
        """Call `callback` with this object in the event loop, once there is an outcome."""
        self._waiters = [*(self._waiters or ()), callback]
        if self.is_told:
            self.wake()

    def __await__(self) -> Generator[Any, None, MessageId]:
        if not self.is_told:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters = [*(self._waiters or ()), waiter]
            yield from waiter
        return self.result()

    def wake(self) -> None:
        """Let those who wait for the outcome see it."""
        if self._waiters is None:
            return
        waiters, self._waiters = self._waiters, None
        for waiter in waiters:
            if not isinstance(waiter, asyncio.Future):
                asyncio.get_running_loop().call_soon(waiter, self)
            elif not waiter.done():
                waiter.set_result(None)

    def hand_over(self, producer: AttachedProducer) -> None:
        """Give it to the producer of its lane."""
        # The message itself is the callback of its first attempt: every object less for each message counts.
        producer.send(self._build(), self if not self.attempt else partial(self._completed, self.attempt))

    def __call__(self, result: Any, position: Any) -> None:
        """The first attempt has an outcome. Called in a thread of pulsar-client."""
        completions = self._completions
        completions.items.append((self, 0, result, position))
        # Only the last one on its way wakes the loop: woken by the first of a batch, the loop would take the
        # interpreter away from the thread that brings the others, and be woken anew by each. The loop looks by itself
        # for outcomes of sends that others follow.
        lane = self.lane
        if lane is not None and lane.next_sequence_id == self.sequence_id + 1 and not completions.is_woken:
            completions.wake()

    def _completed(self, attempt: int, result: Any, position: Any) -> None:
        self._completions.put((self, attempt, result, position))

    def _build(self) -> Any:
        """The message in pulsar-client's form. A built message cannot be sent twice, so each attempt builds one."""
        builder = MessageBuilder().sequence_id(self.sequence_id)
        if self._data is None:
            builder.set_null_value()
        else:
            builder.content(self._data)
        if self._key is not None:
            builder.partition_key(self._key)
        buckets = None if self.lane is None else self.lane.sticky_keys
        sticky_key = None if buckets is None else buckets.of(self.hash_value)
        if sticky_key is not None:
            builder.ordering_key(sticky_key)
        if self._extras is not None:
            self._extras.add_to(builder, sticky_key)
        return builder.build()

    def drop_payload(self) -> None:
        """Let go of what takes memory; it is not built any more."""
        self._data = self._extras = None


def _check_type(what: str, value: object, *types: type) -> None:
    if value is not None and not isinstance(value, types):
        wanted = " or ".join(wanted.__name__ for wanted in types)
        raise TypeError(f"{what} is {type(value).__name__}; it must be {wanted}")


def _check_time(what: str, value: object) -> None:
    if not isinstance(value, int) or value < 0:
        raise TypeError(f"{what} is {value!r}; it must be milliseconds since 1970")


def _property_size(name: object, value: object) -> int:
    if not isinstance(name, str) or not isinstance(value, str):
        raise TypeError(f"property {name!r} is {value!r}; names and values of properties are text")
    return len(name.encode()) + len(value.encode())


def _base64(text: str | bytes) -> str:
    return base64.b64encode(_as_bytes(text)).decode()


def _as_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _can_be_read_back(ordering_key: str | bytes) -> bool:
    """Whether consumers find it where Pulsar has it: it is text, and not taken for a bucket's."""
    try:
        return not is_sticky_key(_as_bytes(ordering_key).decode())
    except UnicodeDecodeError:
        return False
