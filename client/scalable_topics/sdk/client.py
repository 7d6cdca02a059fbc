"""The client: connections to Pulsar, shared by what it makes."""

from __future__ import annotations

import asyncio
import functools
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import pulsar

from scalable_topics.layout import LayoutError, TopicName, validate_scalable_name
from scalable_topics.sdk.blocking_calls import BlockingCalls
from scalable_topics.sdk.checkpoint_consumer import CheckpointConsumer
from scalable_topics.sdk.coordinated_consumer import CoordinatedConsumer
from scalable_topics.sdk.errors import ClientError, ClosedError
from scalable_topics.sdk.gateway_options import GatewayOptions
from scalable_topics.sdk.layout_follower import LayoutFollower
from scalable_topics.sdk.layout_message import Routing
from scalable_topics.sdk.options import (
    ConnectionOptions,
    ProducerOptions,
    QueueConsumerOptions,
    StreamConsumerOptions,
)
from scalable_topics.sdk.producer import Producer
from scalable_topics.sdk.queue_consumer import QueueConsumer
from scalable_topics.sdk.segment_connections import SegmentConnections
from scalable_topics.sdk.stream_consumer import StreamConsumer

C = TypeVar("C", bound=CoordinatedConsumer)

_SCALABLE_ONLY = "topic://"


class _Wanted(NamedTuple):
    """What an application means by a name.

    Args:
        topic: the topic.
        may_be_ordinary: while there is no scalable topic of this name, an ordinary one is meant (pip-475).
    """

    topic: TopicName
    may_be_ordinary: bool


class Client:
    """Makes producers and consumers on scalable topics of a Classic connection, and on ordinary ones, which may be
    migrated meanwhile (pip-475). Belongs to one event loop.

    Args:
        service_url: `pulsar://` or `pulsar+ssl://` address.
        authentication: a `pulsar.Authentication`.
        gateway: how the operator's gateway is reached; stream and checkpoint consumers of scalable topics need it, and
            nothing else does.
        connection: further settings of `ConnectionOptions`, by name.

    Raises:
        ValueError: a setting is out of range.
    """

    def __init__(
        self,
        service_url: str,
        authentication: Any = None,
        *,
        gateway: GatewayOptions | None = None,
        **connection: Any,
    ) -> None:
        self._options = ConnectionOptions(service_url, authentication, **connection)
        self._gateway = gateway
        self._threads = BlockingCalls()
        self._connections = SegmentConnections(self._options, self._options.producer_connections)
        self._followers: dict[_Wanted, tuple[LayoutFollower, int]] = {}
        self._scalable: set[TopicName] = set()
        self._parts: set[Producer | QueueConsumer | CoordinatedConsumer] = set()
        self._is_closed = False

    async def producer(self, topic: str, *, schema: Any = None, **options: Any) -> Producer:
        """Make a producer.

        Args:
            topic: `topic://t/ns/x` for a scalable topic; `persistent://t/ns/x`, `t/ns/x`, or `x` for `public/default/x`
                for a scalable topic if there is one, else the ordinary topic (pip-475).
            schema: a `pulsar.schema.Schema`; None sends bytes.
            options: settings of `ProducerOptions`, by name.

        Raises:
            ClientError: the name is not one of a topic that is or can become scalable.
            ScalableTopicNotFoundError: there is no such scalable topic, and no other is meant.
            ConnectError: it cannot be written to.
            ValueError: a setting is out of range.
        """
        producer_options = ProducerOptions(**options)
        wanted = self._parse(topic)
        producer = Producer(
            wanted.topic,
            follower=self._follow(wanted),
            connections=self._connections,
            connection=self._options,
            options=producer_options,
            schema=pulsar.schema.BytesSchema() if schema is None else schema,
            threads=self._threads,
            closed=functools.partial(self._forget, wanted),
        )
        self._parts.add(producer)
        try:
            await producer.start()
        except BaseException:
            await producer.close(0)
            raise
        return producer

    async def queue_consumer(
        self, topic: str, subscription: str, *, schema: Any = None, **options: Any
    ) -> QueueConsumer:
        """Make a queue consumer, attached to all segments.

        Args:
            topic: as for `producer`.
            subscription: name of the subscription; made where it does not exist.
            schema: a `pulsar.schema.Schema`; None receives bytes.
            options: settings of `QueueConsumerOptions`, by name.

        Raises:
            ClientError: the name is not one of a topic that is or can become scalable, or the subscription's is empty.
            ScalableTopicNotFoundError: there is no such scalable topic, and no other is meant.
            ConnectError: it cannot be read.
            ValueError: a setting is out of range.
        """
        consumer_options = QueueConsumerOptions(**options)
        wanted = self._parse(topic)
        _check_subscription(subscription)
        consumer = QueueConsumer(
            wanted.topic,
            subscription,
            follower=self._follow(wanted),
            connection=self._options,
            options=consumer_options,
            schema=pulsar.schema.BytesSchema() if schema is None else schema,
            threads=self._threads,
            closed=functools.partial(self._forget, wanted),
        )
        self._parts.add(consumer)
        try:
            await consumer.start()
        except BaseException:
            await consumer.close()
            raise
        return consumer

    async def stream_consumer(
        self, topic: str, subscription: str, *, schema: Any = None, **options: Any
    ) -> StreamConsumer:
        """Make a stream consumer, registered with the topic's leader; segments follow as the leader assigns them. On an
        ordinary topic it is attached to every partition instead, beside others, until the topic is migrated.

        Args:
            topic: as for `producer`.
            subscription: name of the subscription; made where it does not exist.
            schema: a `pulsar.schema.Schema`; None receives bytes.
            options: settings of `StreamConsumerOptions`, by name.

        Raises:
            ClientError: the name is not one of a topic that is or can become scalable, the subscription's is empty, or
                the topic is scalable and the client was made without `gateway`.
            ScalableTopicNotFoundError: the gateway knows no such topic, and no other is meant.
            SessionRefusedError: the leader refuses the consumer for good.
            ConnectError: the gateway refuses the caller, nobody took the registration in time, or the ordinary topic
                cannot be read.
            ValueError: a setting is out of range.
        """
        consumer_options = StreamConsumerOptions(**options)
        wanted = self._parse(topic)
        _check_subscription(subscription)
        follower = self._follow(wanted) if wanted.may_be_ordinary else None
        return await self._coordinated(
            StreamConsumer, wanted, subscription, schema, consumer_options, follower=follower
        )

    async def checkpoint_consumer(
        self, topic: str, group: str, *, schema: Any = None, **options: Any
    ) -> CheckpointConsumer:
        """Make a checkpoint consumer, registered with the topic's leader; segments follow as the leader assigns them.

        Args:
            topic: as for `producer`.
            group: name of the checkpoint group, which is that of its subscription; made where it does not exist.
            schema: a `pulsar.schema.Schema`; None receives bytes.
            options: settings of `StreamConsumerOptions`, by name.

        Raises:
            ClientError: the name is not one of a scalable topic, but of an ordinary one, for instance; the group's is
                empty; or the client was made without `gateway`.
            ScalableTopicNotFoundError, SessionRefusedError, ConnectError, ValueError: as of `stream_consumer`.
        """
        consumer_options = StreamConsumerOptions(**options)
        wanted = self._parse(topic)
        _check_subscription(group)
        if wanted.may_be_ordinary:
            await self._check_scalable(wanted)
        return await self._coordinated(CheckpointConsumer, wanted, group, schema, consumer_options)

    async def close(self) -> None:
        """Close everything it made, then the connections."""
        if self._is_closed:
            return
        self._is_closed = True
        await asyncio.gather(*(part.close() for part in tuple(self._parts)))
        for follower, _ in tuple(self._followers.values()):
            await follower.close()
        self._followers.clear()
        await self._threads.run(self._connections.close)
        self._threads.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _coordinated(
        self,
        make: type[C],
        wanted: _Wanted,
        subscription: str,
        schema: Any,
        options: StreamConsumerOptions,
        *,
        follower: LayoutFollower | None = None,
    ) -> C:
        consumer = make(
            wanted.topic,
            subscription,
            gateway=self._gateway,
            follower=follower,
            connection=self._options,
            options=options,
            schema=pulsar.schema.BytesSchema() if schema is None else schema,
            threads=self._threads,
            closed=self._discard if follower is None else functools.partial(self._forget, wanted),
        )
        self._parts.add(consumer)
        try:
            await consumer.start()
        except BaseException:
            await consumer.close()
            raise
        return consumer

    async def _check_scalable(self, wanted: _Wanted) -> None:
        """Refuse what is only an ordinary topic."""
        try:
            layout = await self._follow(wanted).first()
        finally:
            await self._unfollow(wanted)
        if layout.routing is Routing.MODULO:
            raise ClientError(
                f"{wanted.topic.persistent} is an ordinary topic, if there is one at all, and a checkpoint consumer "
                "needs a scalable one: migrate it, by a ScalableTopic with spec.migrateFrom or by `stopics migrate`"
            )

    def _parse(self, topic: str) -> _Wanted:
        if self._is_closed:
            raise ClosedError("the client is closed")
        try:
            name = TopicName.parse(topic)
            validate_scalable_name(name)
        except LayoutError as error:
            raise ClientError(str(error)) from None
        # Once scalable, always scalable (pip-475).
        return _Wanted(name, not topic.startswith(_SCALABLE_ONLY) and name not in self._scalable)

    def _follow(self, wanted: _Wanted) -> LayoutFollower:
        follower, users = self._followers.get(wanted) or (
            LayoutFollower(wanted.topic, self._options, may_be_ordinary=wanted.may_be_ordinary),
            0,
        )
        self._followers[wanted] = (follower, users + 1)
        return follower

    async def _discard(self, part: Producer | QueueConsumer | CoordinatedConsumer) -> None:
        self._parts.discard(part)

    async def _forget(self, wanted: _Wanted, part: Producer | QueueConsumer | CoordinatedConsumer) -> None:
        await self._discard(part)
        await self._unfollow(wanted)

    async def _unfollow(self, wanted: _Wanted) -> None:
        follower, users = self._followers.pop(wanted, (None, 0))
        # The client may have been closed meanwhile, and all followers with it.
        if follower is None:
            return
        if users > 1:
            self._followers[wanted] = (follower, users - 1)
            return
        if follower.is_scalable:
            self._scalable.add(wanted.topic)
        await follower.close()


def _check_subscription(subscription: str) -> None:
    if not subscription:
        raise ClientError("a subscription needs a name")
