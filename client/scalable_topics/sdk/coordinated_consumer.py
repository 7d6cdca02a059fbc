"""What stream and checkpoint consumers have in common: the topic's leader assigns their segments (docs/sessions.md)."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, ClassVar, Self

import pulsar

from scalable_topics.layout import Part, TopicName
from scalable_topics.sdk.blocking_calls import BlockingCalls
from scalable_topics.sdk.consumer_session import ConsumerSession
from scalable_topics.sdk.errors import ClientError, ClosedError
from scalable_topics.sdk.gateway_options import GatewayOptions
from scalable_topics.sdk.layout_follower import LayoutFollower
from scalable_topics.sdk.options import ConnectionOptions, StreamConsumerOptions
from scalable_topics.sdk.ordinary_session import OrdinarySession
from scalable_topics.sdk.pulsar_binding import attach_refused
from scalable_topics.sdk.received_message import StreamMessage
from scalable_topics.sdk.session_frames import ConsumerKind
from scalable_topics.sdk.stream_reading import StreamReading

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
_WATCHES_A_LOOK = 5


class CoordinatedConsumer:
    """Receives the messages of a subscription in the order of each key. Belongs to one event loop.

    The topic's leader divides the segments among the consumers of the subscription, parents before their children. Each
    is read by one of them, in its order; where there are more consumers than segments, each entry bucket of a segment
    is (pip-486).
    """

    KIND: ClassVar[ConsumerKind]

    def __init__(
        self,
        topic: TopicName,
        subscription: str,
        *,
        gateway: GatewayOptions | None,
        follower: LayoutFollower | None,
        connection: ConnectionOptions,
        options: StreamConsumerOptions,
        schema: Any,
        threads: BlockingCalls,
        closed: Callable[[Any], Awaitable[None]],
    ) -> None:
        self._topic = topic
        self._subscription = subscription
        self._listener = options.assignment_listener
        self._tell_closed = closed
        self._name = options.consumer_name or f"{self.KIND.value.lower()}-{uuid.uuid4().hex[:16]}"
        self._loop = asyncio.get_running_loop()
        self._gateway = gateway
        self._from_earliest = options.initial_position == pulsar.InitialPosition.Earliest
        self._session = (
            self._make_session()
            if follower is None
            else OrdinarySession(
                follower,
                from_latest=not self._from_earliest,
                make_session=self._make_session,
                failed=self._fail,
            )
        )
        self._reading = StreamReading(
            topic,
            subscription,
            self._name,
            session=self._session,
            connection=connection,
            options=options,
            schema=schema,
            threads=threads,
            check=self._check,
            failed=self._fail_and_leave,
            changed=self._assignment_changed,
        )
        self._looking: asyncio.Task[None] | None = None
        self._told_ids: tuple[int, ...] = ()
        self._is_telling = False
        self._failure: ClientError | None = None
        self._is_closed = False

    async def start(self) -> None:
        """Register with the topic's leader, or attach to the ordinary topic; called by the client. Errors are those of
        that.
        """
        try:
            await self._session.start(self._reading.held)
        except pulsar.PulsarException as error:
            raise attach_refused("consumer", self._topic, error) from None
        self._looking = self._loop.create_task(self._keep_looking())

    @property
    def topic(self) -> str:
        """The topic as `topic://tenant/namespace/name`."""
        return str(self._topic)

    @property
    def subscription(self) -> str:
        """Name of the subscription."""
        return self._subscription

    @property
    def consumer_name(self) -> str:
        """Name of the consumer within the subscription."""
        return self._name

    @property
    def segment_ids(self) -> tuple[int, ...]:
        """The segments that it is assigned and reads, whole or in part."""
        return self._reading.held.ids

    @property
    def parts(self) -> tuple[Part, ...]:
        """What it is assigned and reads: whole segments, and entry buckets of those that it shares."""
        return self._reading.held.parts

    @property
    def waiting_messages(self) -> int:
        """Messages that wait here for the application, beside those that wait in pulsar-client."""
        return self._reading.held.waiting_messages

    async def receive(self, timeout_seconds: float | None = None) -> StreamMessage:
        """The next message; those of one segment come in its order.

        Args:
            timeout_seconds: how long to wait; None for as long as it takes.

        Raises:
            TimeoutError: there was none in time.
            SessionRefusedError: the consumer is of no use any more: another one has registered under its name, for
                instance.
            ConnectError: it can attach to nothing, and waiting will not mend that.
            ClosedError: the consumer is closed.
        """
        return await self._reading.inbox.receive(timeout_seconds)

    async def receive_many(self, most: int, timeout_seconds: float | None = None) -> list[StreamMessage]:
        """The next messages: as many as are there, at least one and at most `most`.

        Arguments and errors are those of `receive`; `most` is 1 or more.
        """
        return await self._reading.inbox.receive_many(most, timeout_seconds)

    async def close(self) -> None:
        """Detach from all segments and leave; what was not acknowledged goes to other consumers of the subscription.

        Takes as long as brokers take to detach, at most the operation timeout, 5 seconds at most for a connection to
        send acknowledgements by, and 5 seconds at most to leave.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._reading.inbox.wake_all()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        self._session.leave()
        await self._reading.held.close()
        await self._session.close()
        self._reading.inbox.clear()
        await self._tell_closed(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _make_session(self) -> ConsumerSession:
        if self._gateway is None:
            raise ClientError(
                f"a {self.KIND.value.lower()} consumer on {self._topic} is coordinated by the operator: make the "
                "client with gateway=GatewayOptions(url, ...)"
            )
        return ConsumerSession(
            self._topic,
            self._subscription,
            consumer=self._name,
            kind=self.KIND,
            initial_position="Earliest" if self._from_earliest else "Latest",
            gateway=self._gateway,
            failed=self._fail,
        )

    def _assignment_changed(self) -> None:
        # Once for everything that changes together.
        if self._listener is not None and not self._is_telling:
            self._is_telling = True
            self._loop.call_soon(self._tell_assignment)

    def _tell_assignment(self) -> None:
        self._is_telling = False
        if self._listener is not None and self.segment_ids != self._told_ids:
            self._told_ids = self.segment_ids
            try:
                self._listener(self._told_ids)
            except Exception:
                logger.exception("the assignment listener of consumer %r on %s has failed", self._name, self._topic)

    def _check(self) -> None:
        if self._is_closed:
            raise ClosedError(f"the consumer on {self._topic} is closed")
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: ClientError) -> None:
        self._failure = error
        self._reading.inbox.wake_all()

    def _fail_and_leave(self, error: ClientError) -> None:
        self._fail(error)
        self._session.leave()

    async def _keep_looking(self) -> None:
        while True:
            for _ in range(_WATCHES_A_LOOK):
                await asyncio.sleep(_LOOK_SECONDS / _WATCHES_A_LOOK)
                self._reading.watch()
            self._reading.look()
