"""Consumers register with the leader of their topic (docs/sessions.md, pip-468 registration flow, R21)."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Protocol, TypeVar

from scalable_topics.layout import Part
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeConflict
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_of, key_of
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS
from scalable_topics_operator.controllers.connections import ConnectionHandle
from scalable_topics_operator.controllers.coordinator import Coordinator
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.ordered_subscriptions import find_subscription, subscription_object
from scalable_topics_operator.controllers.session_room import Outlet, Registration, Room, Session
from scalable_topics_operator.controllers.subscription_status import read_group
from scalable_topics_operator.controllers.timestamps import timestamp_now
from scalable_topics_operator.controllers.topic_backend import is_native

T = TypeVar("T")


class RegistrationRefused(Exception):
    """A consumer cannot register.

    Args:
        status: of HTTP.
        reason: for the application.
        final: registering again is of no use.
    """

    def __init__(self, status: int, reason: str, *, final: bool) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.final = final


_NATIVE_REASON = (
    "the topic is of the Native backend, where the brokers coordinate consumers: there is no session to register with. "
    "Use the Java V5 client of Pulsar 5, which attaches to topic:// names by itself"
)


class Connections(Protocol):
    """The Pulsar clusters."""

    def handle(self, key: ObjectKey) -> ConnectionHandle | None:
        """The handle of a connection; None if it was never looked at."""


class Leading(Protocol):
    """Says what this replica leads."""

    async def run(self, key: ObjectKey, work: Coroutine[Any, Any, T]) -> T:
        """Work on an object while this replica leads it; answers the result. Raises NotLed."""

    def term_of(self, key: ObjectKey) -> int:
        """The term under which this replica works on an object. Raises NotLed."""


class Membership:
    """A registered consumer, for as long as its connection lasts."""

    def __init__(self, room: Room, session: Session, wake: Callable[[], None], monotonic: Callable[[], float]) -> None:
        self._room = room
        self._session = session
        self._wake = wake
        self._monotonic = monotonic

    def released(self, parts: Collection[Part]) -> None:
        """It has detached from these."""
        self._room.released(self._session, parts)
        self._wake()

    def drained(self, parts: Collection[Part]) -> None:
        """It believes that these are read to their ends."""
        self._room.drained(parts)
        self._wake()

    def leave(self) -> None:
        """It goes for good."""
        self._room.left(self._session)
        self._session.outlet.leave()
        self._wake()

    def lost(self) -> None:
        """Its connection is gone."""
        self._room.lost(self._session, self._monotonic())
        self._wake()


class ConsumerSessions:
    """Lets consumers register with the subscriptions that this replica coordinates.

    Args:
        kube: the API server.
        cache: the objects.
        connections: the topics' Pulsar clusters.
        coordinator: keeps the subscriptions.
        leading: says what this replica leads.
        wake: has an object reconciled.
        monotonic: clock.
    """

    def __init__(
        self,
        kube: KubeClient,
        cache: ObjectCache,
        connections: Connections,
        coordinator: Coordinator,
        leading: Leading,
        wake: Callable[[ObjectKey], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._connections = connections
        self._coordinator = coordinator
        self._leading = leading
        self._wake = wake
        self._monotonic = monotonic

    async def register(
        self, topic: ObjectKey, subscription: str, registration: Registration, outlet: Outlet
    ) -> Membership | None:
        """Register a consumer; None if it was refused through its outlet.

        Args:
            topic: the ScalableTopic.
            subscription: its name; made where it does not exist.
            registration: who it is.
            outlet: the way to it.

        Raises:
            RegistrationRefused: it cannot register; on the Native backend nobody can.
            NotLed: another replica leads the topic.
            KubeError: the subscription's object cannot be made.
        """
        body = await self._leading.run(topic, self._object(topic, subscription, registration))
        # It may have been lost in this moment; then nobody would ever send the consumer away.
        self._leading.term_of(topic)
        key = key_of(SUBSCRIPTIONS, body)
        kind = body["spec"]["type"]
        if kind != registration.kind:
            why = f"subscription {subscription} is of kind {kind}, not {registration.kind}"
            raise RegistrationRefused(409, why, final=True)
        room = self._coordinator.room(key)
        session = room.enter(registration, outlet, read_group(body.get("status") or {}), timestamp_now())
        self._wake(key)
        return Membership(room, session, lambda: self._wake(key), self._monotonic) if session is not None else None

    async def _object(self, topic: ObjectKey, subscription: str, registration: Registration) -> Body:
        """The subscription's object, made where there is none."""
        owner = self._cache.get(topic)
        if owner is not None and is_native(owner, self._connections.handle(connection_of(owner))):
            raise RegistrationRefused(412, _NATIVE_REASON, final=True)
        found = find_subscription(self._cache, topic, subscription)
        if found is not None:
            return found[1]
        if owner is None or owner["metadata"].get("deletionTimestamp"):
            raise RegistrationRefused(404, f"there is no ScalableTopic {topic.namespace}/{topic.name}", final=True)
        wanted = subscription_object(owner, subscription, registration.kind, latest=registration.latest)
        try:
            made = await self._kube.create(SUBSCRIPTIONS, topic.namespace, wanted)
        except KubeConflict:
            made = await self._kube.get(SUBSCRIPTIONS, topic.namespace, wanted["metadata"]["name"])
            if made["metadata"].get("deletionTimestamp"):
                raise RegistrationRefused(503, f"subscription {subscription} is being deleted", final=False) from None
        self._cache.observe(SUBSCRIPTIONS, made)
        self._wake(topic)
        return self._cache.get(key_of(SUBSCRIPTIONS, made)) or made
