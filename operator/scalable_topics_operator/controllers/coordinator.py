"""Who reads what of each ordered subscription: committed in its object, then told to its consumers (DESIGN §9, R21).

Implements pip-468's SubscriptionCoordinator on the topic's leader. What is remembered besides the objects is who is
connected, and when each of those is to be removed that are not; losing it costs nobody anything but a grace period.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scalable_topics.layout import LayoutError, Part, SegmentLayout, TopicName
from scalable_topics_operator.assignment.group import Group, Member
from scalable_topics_operator.assignment.overview import reading_of
from scalable_topics_operator.cluster.event_recorder import EventRecorder
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeNotFound
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS
from scalable_topics_operator.cluster.status_store import StaleStatus, StatusStore
from scalable_topics_operator.controllers.conditions import Standing
from scalable_topics_operator.controllers.consumer_counts import ConsumerCounts
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.ordered_subscriptions import (
    find_subscription,
    topic_of_subscription,
)
from scalable_topics_operator.controllers.segment_looks import SegmentLooks, sealed_and_read
from scalable_topics_operator.controllers.session_frames import assignment_frame, registered_frame
from scalable_topics_operator.controllers.session_room import Room, Session
from scalable_topics_operator.controllers.subscription_status import (
    Phase,
    Situation,
    read_group,
    situation_of,
    write_group,
)
from scalable_topics_operator.controllers.timestamps import timestamp_now
from scalable_topics_operator.controllers.topic_backend import is_native
from scalable_topics_operator.operations.errors import BackendUnavailable
from scalable_topics_operator.operations.protocols import Position, TopicBackend
from scalable_topics_operator.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

# One write a second, however many consumers come and go (R21).
_COALESCE_SECONDS = 1.0
# An acknowledgement may take as long as that from pulsar-client to the broker.
_HINT_SECONDS = 0.15
_LOOK_SECONDS = 2.0
_MOST_LOOK_SECONDS = 60.0
# Whose grace is over, but whom a broker still serves.
_SERVED_LOOK_SECONDS = 15.0
_CHECKPOINT = "Checkpoint"


@dataclass(frozen=True, slots=True)
class SessionTimes:
    """How long consumers are waited for.

    Args:
        grace_seconds: how long one without a session stays a member (pip-468).
        handover_seconds: how long a connected one may take to let go of a segment (R21).
    """

    grace_seconds: float = 60.0
    handover_seconds: float = 30.0


class Coordinator:
    """Keeps the ScalableTopicSubscriptions that this replica leads.

    Args:
        kube: the API server.
        cache: the objects.
        backend_of: finds the brokers of a ScalableTopic; None while they cannot be asked.
        counts: told how many consumers there are.
        events: tells people.
        metrics: count.
        times: how long consumers are waited for.
        term_of: leadership term for a topic; raises where this replica does not lead it.
        raise_term: called with a topic and the higher term that a record of it carries (R5).
        wake: has an object reconciled.
        fans_out: whether several consumers may share what is left of a topic's sealed segments.
        monotonic: clock.
    """

    def __init__(
        self,
        kube: KubeClient,
        cache: ObjectCache,
        backend_of: Callable[[Body], TopicBackend | None],
        counts: ConsumerCounts,
        events: EventRecorder,
        metrics: Metrics,
        times: SessionTimes,
        term_of: Callable[[ObjectKey], int],
        raise_term: Callable[[ObjectKey, int], None],
        wake: Callable[[ObjectKey], None],
        fans_out: Callable[[ObjectKey, Body], bool],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._backend_of = backend_of
        self._counts = counts
        self._events = events
        self._metrics = metrics
        self._times = times
        self._term_of = term_of
        self._raise_term = raise_term
        self._wake = wake
        self._fans_out = fans_out
        self._monotonic = monotonic
        self._rooms: dict[ObjectKey, Room] = {}
        # Whose series there are.
        self._shown: dict[ObjectKey, tuple[str, str]] = {}

    def room(self, key: ObjectKey) -> Room:
        """The sessions of a subscription."""
        if key not in self._rooms:
            self._rooms[key] = Room(self._times.grace_seconds, self._times.handover_seconds)
        return self._rooms[key]

    def forget(self, key: ObjectKey) -> None:
        """Another replica coordinates a subscription from now on: send its consumers there."""
        room = self._rooms.pop(key, None)
        if room is not None:
            room.refuse_all(503, "another replica leads the topic now; register again", final=False)
        self._show_nothing(key)

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Bring one subscription forward; answers when to look again, in seconds, if nothing happens before.

        Raises StaleStatus, BackendUnavailable or KubeError when it should be tried again with back-off.
        """
        body = self._cache.get(key)
        if body is None or body["metadata"].get("deletionTimestamp"):
            self._gone(key, body)
            return None
        if key not in self._rooms:
            # Its topic may have to make its cursors.
            self._wake(topic_of_subscription(body))
        room = self.room(key)
        topic_key = topic_of_subscription(body)
        topic = self._cache.get(topic_key)
        name = body["spec"]["subscription"]
        found = find_subscription(self._cache, topic_key, name)
        if found is not None and found[0] != key:
            situation = Situation(Phase.PENDING, _rival(found[0], name))
        else:
            try:
                situation = situation_of(f"{topic_key.namespace}/{topic_key.name}", topic, name)
            except (LayoutError, KeyError, ValueError) as error:
                why = f"the record of ScalableTopic {topic_key.name} is broken: {error}"
                situation = Situation(Phase.PENDING, Standing.stuck("InvalidRecord", why))
        turn = _Turn(key, topic_key, topic, body, situation, self._term(topic_key, body))
        return await self._bring_forward(turn, room)

    def _term(self, topic: ObjectKey, body: Body) -> int:
        term = self._term_of(topic)
        recorded = (body.get("status") or {}).get("term") or 0
        if recorded > term:
            self._raise_term(topic, recorded)
            raise StaleStatus(f"{topic} was coordinated in term {recorded}, after this replica's {term}")
        return term

    def _gone(self, key: ObjectKey, body: Body | None) -> None:
        room = self._rooms.pop(key, None)
        if room is not None:
            room.refuse_all(410, "the subscription's object was deleted; register again to make it anew", final=False)
        self._show_nothing(key)
        if body is not None:
            self._counts.set(topic_of_subscription(body), body["spec"]["subscription"], 0)

    async def _bring_forward(self, turn: _Turn, room: Room) -> float | None:
        recorded = read_group(turn.status)
        said = len(room.said)
        group, removed = recorded, 0
        if turn.was_seeking and turn.situation.phase is Phase.ACTIVE:
            group = group.start_again()
        for change in room.said[:said]:
            group = change(group)
        self._watch(turn, room, group)
        layout = turn.situation.layout
        if layout is not None and turn.removes:
            group, removed = await self._moved_on(turn, room, group, layout)
        status = write_group(
            turn.status,
            group,
            turn.situation.phase,
            turn.situation.standing,
            term=turn.term,
            generation=turn.body["metadata"]["generation"],
            now=timestamp_now(),
        )
        if status != turn.status:
            wait_seconds = room.wrote_at + _COALESCE_SECONDS - self._monotonic()
            if wait_seconds > 0:
                return wait_seconds
            if not await self._commit(turn, status):
                return None
            if turn.situation.phase is not Phase.PENDING:
                room.wrote_at = self._monotonic()
            self._metrics.consumers_removed.inc(removed)
        del room.said[:said]
        self._watch(turn, room, group)
        if turn.topic is None or not is_native(turn.topic):
            self._counts.set(turn.topic_key, turn.subscription, len(group.members))
        if layout is not None:
            self._show(turn, group, layout)
        all_told = True
        if turn.situation.phase is Phase.DELETING:
            room.refuse_all(409, f"subscription {turn.subscription} is being deleted", final=True)
        elif turn.situation.phase is not Phase.PENDING:
            all_told = self._push(turn, room, group, await self._starts(turn, room, group))
        elif turn.situation.standing.stalled:
            room.refuse_all(503, turn.situation.standing.message, final=False)
        room.send_forgotten_away(group)
        await self._after(turn, room)
        return self._next_look(turn, room, group, all_told=all_told)

    def _watch(self, turn: _Turn, room: Room, group: Group) -> None:
        """Grace runs while somebody may be removed. A replica that does not know the topic yet takes a subscription for
        one of another shard, which it may lead; once it leads this one, everybody has a whole grace (R7).
        """
        if turn.removes:
            room.watch(group, self._monotonic())
        else:
            room.away.clear()

    async def _moved_on(self, turn: _Turn, room: Room, group: Group, layout: SegmentLayout) -> tuple[Group, int]:
        """The group after all that follows from what its segments' brokers show, and how many were removed from it."""
        looks = SegmentLooks(self._backend(turn), turn.topic_name, layout)
        group = group.with_drained(turn.situation.out_of_scope & layout.segments.keys())
        before = len(group.members)
        for name in room.expired(self._monotonic()):
            if await looks.may_serve(group.members[name].held, turn.subscription, name):
                room.away[name] = self._monotonic() + _SERVED_LOOK_SECONDS
            else:
                logger.info("%s: consumer %s has not come back and is removed", turn.key, name)
                group = group.without(name)
        removed = before - len(group.members)
        if turn.situation.phase is Phase.SEEKING:
            for name in sorted(room.away.keys() & group.members.keys()):
                if not await looks.may_serve(group.members[name].held, turn.subscription, name):
                    group = group.let_go(name)
            return group.withhold(turn.term), removed
        if self._monotonic() >= room.look_at:
            drained = await looks.drained(group, turn.subscription)
            self._looked(room, drained)
            group = group.with_drained(drained)
        fans_out = turn.topic is None or self._fans_out(turn.topic_key, turn.topic)
        return group.settle(layout, turn.term, fans_out=fans_out), removed

    def _looked(self, room: Room, drained: frozenset[int]) -> None:
        """Look again soon while consumers say that there is something to find, and later and later otherwise."""
        room.hints -= drained
        if drained:
            room.look_seconds = 0.0
        elif room.hints:
            room.look_seconds = min(_LOOK_SECONDS, max(_HINT_SECONDS, 2 * room.look_seconds))
        else:
            room.look_seconds = min(_MOST_LOOK_SECONDS, max(_LOOK_SECONDS, 2 * room.look_seconds))
        if room.look_seconds >= _LOOK_SECONDS:
            room.hints.clear()
        room.look_at = self._monotonic() + room.look_seconds

    async def _commit(self, turn: _Turn, status: Mapping[str, Any]) -> bool:
        """Make it the record; False if the object is gone."""
        store = StatusStore(self._kube, SUBSCRIPTIONS, turn.body, self._observe)
        try:
            await store.write(status)
        except KubeNotFound:
            self._cache.remove(turn.key, turn.body["metadata"]["uid"])
            self._wake(turn.key)
            return False
        self._metrics.assignments_written.inc()
        if turn.status.get("phase") != status["phase"] or turn.situation.phase is Phase.SEEKING:
            # It may wait for this.
            self._wake(turn.topic_key)
        return True

    async def _starts(self, turn: _Turn, room: Room, group: Group) -> Mapping[int, Position | None] | None:
        """Up to where segments are acknowledged that checkpoint consumers are about to be told of (R22), as far as
        brokers can be asked; None for other consumers.
        """
        layout = turn.situation.layout
        if layout is None or turn.body["spec"]["type"] != _CHECKPOINT:
            return None
        new = {
            part.segment_id
            for session, member in _present(room, group)
            for part in _not_told(session, group, member.assigned)
        }
        if not new:
            return {}
        return await SegmentLooks(self._backend(turn), turn.topic_name, layout).starts(new, turn.subscription)

    def _push(self, turn: _Turn, room: Room, group: Group, starts: Mapping[int, Position | None] | None) -> bool:
        """Tell consumers; before the cursors are made, what is sent need not come to a new subscription (R18). False if
        some could not be told yet.
        """
        layout = turn.situation.layout
        all_told = True
        for session, member in _present(room, group):
            if not session.is_registered:
                session.is_registered = True
                session.outlet.send(
                    registered_frame(
                        turn.body["metadata"]["uid"], self._times.grace_seconds, self._times.handover_seconds
                    )
                )
            if layout is None or not _is_news(session, group, member.assigned):
                continue
            new = {part.segment_id for part in _not_told(session, group, member.assigned)}
            if starts is not None and not new <= starts.keys():
                # A checkpoint without some of its positions would lose messages once it is restored.
                all_told = False
                continue
            session.told = (group.version, member.assigned)
            # Only checkpoint consumers are told where they begin.
            floors = None if starts is None else turn.situation.floors
            frame = assignment_frame(turn.topic_name, layout, group.version, member.assigned, starts, floors)
            session.outlet.send(frame)
        return all_told

    async def _after(self, turn: _Turn, room: Room) -> None:
        overdue = [name for name, session in room.sessions.items() if session.taken_at is not None]
        room.send_overdue_away(self._monotonic())
        for name in overdue:
            if name not in room.sessions:
                self._metrics.handovers_overdue.inc()
                why = f"consumer {name} has not let go of its segments within {self._times.handover_seconds:g} s"
                await self._events.warning(turn.body, "HandoverOverdue", why)

    def _next_look(self, turn: _Turn, room: Room, group: Group, *, all_told: bool) -> float | None:
        times = [] if all_told else [self._monotonic() + _LOOK_SECONDS]
        layout = turn.situation.layout
        if (next_time := room.next_time()) is not None:
            # While nobody is removed, what is over is nothing to come back for at once.
            times.append(next_time if turn.removes else max(next_time, self._monotonic() + _LOOK_SECONDS))
        is_read = turn.situation.phase is Phase.ACTIVE and bool(group.members)
        if layout is not None and is_read and sealed_and_read(group, layout):
            times.append(room.look_at)
        if turn.situation.phase is Phase.SEEKING and room.away:
            times.append(self._monotonic() + _LOOK_SECONDS)
        return max(0.0, min(times) - self._monotonic()) if times else None

    def _show(self, turn: _Turn, group: Group, layout: SegmentLayout) -> None:
        shown = self._shown[turn.key] = str(turn.topic_name), turn.subscription
        self._metrics.sharing.show(*shown, reading_of(group, layout))

    def _show_nothing(self, key: ObjectKey) -> None:
        if shown := self._shown.pop(key, None):
            self._metrics.sharing.forget(*shown)

    def _backend(self, turn: _Turn) -> TopicBackend:
        backend = self._backend_of(turn.topic) if turn.topic is not None else None
        if backend is None:
            raise BackendUnavailable(f"{turn.topic_key}: its connection is down")
        return backend

    def _observe(self, written: Body) -> None:
        self._cache.observe(SUBSCRIPTIONS, written)


@dataclass(frozen=True, slots=True)
class _Turn:
    """One subscription as it is found."""

    key: ObjectKey
    topic_key: ObjectKey
    topic: Body | None
    body: Body
    situation: Situation
    term: int

    @property
    def removes(self) -> bool:
        """Whether consumers that stay away are removed."""
        return self.situation.layout is not None and self.situation.phase in (Phase.ACTIVE, Phase.SEEKING)

    @property
    def status(self) -> Mapping[str, Any]:
        status: Mapping[str, Any] = self.body.get("status") or {}
        return status

    @property
    def was_seeking(self) -> bool:
        return self.status.get("phase") == Phase.SEEKING.value

    @property
    def subscription(self) -> str:
        return str(self.body["spec"]["subscription"])

    @property
    def topic_name(self) -> TopicName:
        assert self.topic is not None
        return TopicName.parse(self.topic["spec"]["topic"])


def _present(room: Room, group: Group) -> list[tuple[Session, Member]]:
    """Connected members."""
    found = ((session, group.members.get(name)) for name, session in room.sessions.items())
    return [
        (session, member)
        for session, member in found
        if member is not None and member.incarnation == session.registration.incarnation
    ]


def _not_told(session: Session, group: Group, assigned: frozenset[Part]) -> frozenset[Part]:
    """What a consumer is about to be told of, and was not before."""
    if not _is_news(session, group, assigned):
        return frozenset()
    return assigned if session.told is None else assigned - session.told[1]


def _is_news(session: Session, group: Group, assigned: frozenset[Part]) -> bool:
    return session.told is None or (session.told[1] != assigned and session.told[0] < group.version)


def _rival(other: ObjectKey, subscription: str) -> Standing:
    return Standing.stuck(
        "Conflict",
        f"ScalableTopicSubscription {other.name} is for subscription {subscription}, too, and older; delete this",
    )
