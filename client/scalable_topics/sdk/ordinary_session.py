"""How a stream consumer reads a topic that may be an ordinary one still, and follows its migration (R25)."""

from __future__ import annotations

from collections.abc import Callable

from scalable_topics.layout import Part
from scalable_topics.sdk.consumer_session import ConsumerSession
from scalable_topics.sdk.errors import ClientError
from scalable_topics.sdk.held_segments import HeldSegments
from scalable_topics.sdk.layout_follower import LayoutFollower
from scalable_topics.sdk.layout_message import LayoutMessage, Routing
from scalable_topics.sdk.options import MOST_HANDOVER_SECONDS
from scalable_topics.sdk.session_frames import AssignedSegment


class OrdinarySession:
    """Stands for the session with a leader as long as there is none: it assigns every partition, to be attached to
    beside others. Once the topic is scalable it has all of them given back, and begins the session with the leader.
    Belongs to one event loop.

    Args:
        follower: of the topic.
        from_latest: a new subscription starts at the latest message.
        make_session: makes the session with the leader; raises ClientError where there can be none.
        failed: called if there can be none when there has to be one, with the error for the application.
    """

    def __init__(
        self,
        follower: LayoutFollower,
        *,
        from_latest: bool,
        make_session: Callable[[], ConsumerSession],
        failed: Callable[[ClientError], None],
    ) -> None:
        self._follower = follower
        self._from_latest = from_latest
        self._make_session = make_session
        self._tell_failed = failed
        self._holder: HeldSegments | None = None
        self._held: set[Part] = set()
        self._session: ConsumerSession | None = None
        self._is_migrated = False
        self._is_leaving = False

    @property
    def is_registered(self) -> bool:
        """Whether there is a session with the leader at this moment."""
        return self._session is not None and self._session.is_registered

    async def start(self, holder: HeldSegments) -> None:
        """Attach to the partitions; register with the leader instead if the topic is scalable already.

        Raises:
            ConnectError: the layout cannot be read, or as of `ConsumerSession.start`.
            LayoutMessageError: this release cannot follow the layout.
            ClientError: the topic is scalable and there can be no session.
            pulsar.PulsarException: a partition cannot be attached to.
        """
        latest = await self._follower.first()
        self._holder = holder
        self._follower.add_listener(self._follow)
        latest = self._follower.latest or latest
        if latest.routing is Routing.RANGES:
            self._is_migrated = True
            self._session = self._make_session()
            await self._session.start(holder)
        else:
            self._attach(holder, latest, from_latest=self._from_latest)
            await holder.first_attempts()

    def detached(self, part: Part) -> None:
        """The consumer is attached to a segment, or to an entry bucket, no longer."""
        if self._session is not None:
            self._session.detached(part)
        else:
            self._held.discard(part)
            self._register_if_free()

    def drained(self, part: Part) -> None:
        """Everything in a part of a sealed segment is acknowledged, as far as the consumer knows."""
        if self._session is not None:
            self._session.drained(part)

    def leave(self) -> None:
        """Drop everything, and leave as soon as it is detached from; then `close`."""
        self._is_leaving = True
        self._follower.remove_listener(self._follow)
        if self._session is not None:
            self._session.leave()
        elif self._holder is not None:
            for part in self._held:
                self._holder.drop(part)

    async def close(self) -> None:
        """End, after having left if there is anybody to tell."""
        if self._session is not None:
            await self._session.close()

    def _follow(self, message: LayoutMessage) -> None:
        if self._holder is None or self._is_migrated:
            return
        if message.routing is Routing.MODULO:
            # Everything on a partition that was added is new to the subscription.
            self._attach(self._holder, message, from_latest=False)
            return
        self._is_migrated = True
        for part in self._held:
            self._holder.give_back(part, MOST_HANDOVER_SECONDS)
        self._register_if_free()

    def _attach(self, holder: HeldSegments, layout: LayoutMessage, *, from_latest: bool) -> None:
        new = tuple(
            AssignedSegment(
                segment.segment_id, segment.hash_range, segment.topic, is_ordinary=True, from_latest=from_latest
            )
            for segment in layout.active
            if Part(segment.segment_id) not in self._held
        )
        if new:
            self._held |= {segment.part for segment in new}
            holder.attach(new)

    def _register_if_free(self) -> None:
        """Register once nothing is held any more: nobody else can be given what this consumer is attached to."""
        if self._holder is None or self._held or not self._is_migrated or self._is_leaving:
            return
        try:
            self._session = self._make_session()
        except ClientError as error:
            self._tell_failed(error)
        else:
            self._session.join(self._holder)
