"""Follows the layout of a topic: what the operator publishes, or the synthetic one (docs/contract.md, R20, R25)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from scalable_topics.layout import TopicName, layout_topic_name
from scalable_topics.sdk.arrivals import Arrivals
from scalable_topics.sdk.errors import ClientError, ClosedError, ScalableTopicNotFoundError
from scalable_topics.sdk.layout_choice import LayoutChoice
from scalable_topics.sdk.layout_message import LayoutMessage, parse_layout_message
from scalable_topics.sdk.layout_reader import LayoutReader
from scalable_topics.sdk.options import ConnectionOptions
from scalable_topics.sdk.partition_watch import PartitionWatch

_MOST_SECONDS_WITHOUT_CONNECTION = 60.0
# The layout topic of a topic that is not migrated comes and goes.
_MOST_SECONDS_WITHOUT_CONNECTION_IF_ORDINARY = 5.0

Listener = Callable[[LayoutMessage], None]


class LayoutFollower:
    """Follows one topic for as long as it is not closed, and tells listeners of every layout that wins. Belongs to one
    event loop.

    Args:
        topic: the topic.
        options: how Pulsar is reached.
        may_be_ordinary: while there is no scalable topic of this name an ordinary one will do, by a synthetic layout.
    """

    def __init__(self, topic: TopicName, options: ConnectionOptions, *, may_be_ordinary: bool = False) -> None:
        self.topic = topic
        self._loop = asyncio.get_running_loop()
        self._choice = LayoutChoice(topic, may_be_ordinary=may_be_ordinary)
        self._latest: LayoutMessage | None = None
        self._first: asyncio.Future[LayoutMessage] = self._loop.create_future()
        self._listeners: list[Listener] = []
        self._arrivals: Arrivals[bytes | ClientError | None] = Arrivals(self._loop, self._arrived)
        self._partitions = PartitionWatch(topic, options, counted=self._counted, failed=self._fail_first)
        self._reader = LayoutReader(
            topic,
            options,
            self._arrivals.put,
            most_seconds_without_connection=_MOST_SECONDS_WITHOUT_CONNECTION_IF_ORDINARY
            if may_be_ordinary
            else _MOST_SECONDS_WITHOUT_CONNECTION,
        )

    async def first(self) -> LayoutMessage:
        """The first layout.

        Raises:
            ScalableTopicNotFoundError: there is no layout topic, or nothing on it, and an ordinary topic will not do.
            ConnectError: it cannot be read.
            LayoutMessageError: this release cannot follow what is on it.
        """
        return await asyncio.shield(self._first)

    @property
    def latest(self) -> LayoutMessage | None:
        """The newest layout seen."""
        return self._latest

    @property
    def is_scalable(self) -> bool:
        """Whether there is a scalable topic, as far as is known."""
        return self._choice.is_scalable

    def look_now(self) -> None:
        """Look for the layout topic at once, if there is none yet: the topic may be migrated at this moment."""
        if not self._choice.is_scalable:
            self._reader.look_now()

    def add_listener(self, listener: Listener) -> None:
        """Call `listener` in the event loop with every further message that wins."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Listener) -> None:
        """Call it no more."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    async def close(self) -> None:
        """Stop following."""
        await asyncio.to_thread(self._reader.close)
        await self._partitions.close()
        self._fail_first(ClosedError(f"the client of {self.topic} was closed before its layout arrived"))
        # An error nobody has asked for is not worth a warning of the event loop.
        self._first.exception()

    def _arrived(self) -> None:
        while self._arrivals.items:
            item = self._arrivals.items.popleft()
            try:
                if isinstance(item, ClientError):
                    raise item
                self._follow(
                    self._choice.nothing_published()
                    if item is None
                    else self._choice.published(parse_layout_message(item))
                )
                if self._choice.wants_count:
                    self._partitions.start()
                elif self._latest is None:
                    raise _not_found(self.topic)
            except ClientError as error:
                self._fail_first(error)

    def _counted(self, partitions: int) -> None:
        self._follow(self._choice.counted(partitions))

    def _follow(self, message: LayoutMessage | None) -> None:
        if self._choice.is_scalable:
            self._partitions.stop()
            self._reader.most_seconds_without_connection = _MOST_SECONDS_WITHOUT_CONNECTION
        if message is None:
            return
        self._latest = message
        if not self._first.done():
            self._first.set_result(message)
        for listener in tuple(self._listeners):
            listener(message)

    def _fail_first(self, error: ClientError) -> None:
        # Once there is a layout, one that cannot be read changes nothing: traffic goes on (R7).
        if not self._first.done():
            self._first.set_exception(error)


def _not_found(topic: TopicName) -> ScalableTopicNotFoundError:
    return ScalableTopicNotFoundError(
        f"there is no scalable topic {topic}: nothing is published on {layout_topic_name(topic)}. Topics on a Native "
        "connection have no layout topic: this library serves Classic ones, use the Java V5 client there"
    )
