"""The sessions of one ordered subscription on its leader: who is connected, and what they said that is not committed
yet. No I/O; liveness is never written anywhere (R21).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from scalable_topics.layout import Part
from scalable_topics_operator.assignment.group import Group, Version

Frame = Mapping[str, Any]
REPLACED = "another consumer has registered under this name; give each a name of its own"


class Outlet(Protocol):
    """The way to a connected consumer."""

    def send(self, frame: Frame) -> None:
        """Send a frame some time soon; never blocks, never raises."""

    def refuse(self, status: int, reason: str, *, final: bool) -> None:
        """Say why, and close."""

    def leave(self) -> None:
        """Say that it has left, and close."""


@dataclass(frozen=True, slots=True)
class Registration:
    """What a consumer registers with (docs/sessions.md).

    Args:
        name: unique within the subscription.
        incarnation: of the consumer object.
        resume: this incarnation was registered before.
        kind: `Stream` or `Checkpoint`.
        latest: a new subscription starts at the latest message.
        holds: what it is attached to.
        shares: it can read some entry buckets of a segment.
    """

    name: str
    incarnation: str
    resume: bool = False
    kind: str = "Stream"
    latest: bool = False
    holds: frozenset[Part] = frozenset()
    shares: bool = False


@dataclass(slots=True, eq=False)
class Session:
    """One connected consumer.

    Args:
        registration: what it came with.
        outlet: the way to it.
        told: what it was told to read, with the version; None before it was told anything.
        is_registered: whether it was told that it is registered.
        taken_at: monotonic time at which something was taken from it that it has not let go of.
    """

    registration: Registration
    outlet: Outlet
    told: tuple[Version, frozenset[Part]] | None = None
    is_registered: bool = False
    taken_at: float | None = None


Change = Callable[[Group], Group]

MOST_SAID = 20_000
"""Changes that wait to be committed; who says more meanwhile is sent away, so that nobody can fill the memory."""
MOST_HINTS = 1024
"""More segments than a layout has records (R29)."""


@dataclass(slots=True)
class Room:
    """Sessions by name, what they said, and until when those are waited for that are away.

    Args:
        grace_seconds: how long a member without a session stays one.
        handover_seconds: how long a connected one may take to let go of a segment.
        sessions: by name.
        said: what is not committed yet, in order.
        hints: segments that consumers believe to be drained.
        away: monotonic time at which each member without a session is to be removed.
        look_seconds: pause before sealed segments are looked at again.
        look_at: monotonic time of that look.
        wrote_at: monotonic time of the last commit.
    """

    grace_seconds: float
    handover_seconds: float
    sessions: dict[str, Session] = field(default_factory=dict)
    said: list[Change] = field(default_factory=list)
    hints: set[int] = field(default_factory=set)
    away: dict[str, float] = field(default_factory=dict)
    look_seconds: float = 0.0
    look_at: float = 0.0
    wrote_at: float = float("-inf")

    def enter(self, registration: Registration, outlet: Outlet, group: Group, now: str) -> Session | None:
        """A consumer has connected and registers; None, and it is refused, if it was replaced by another one.

        Args:
            registration: what it comes with.
            outlet: the way to it.
            group: as recorded.
            now: RFC 3339.
        """
        name = registration.name
        present = self.sessions.get(name)
        current = present.registration.incarnation if present else None
        if current is None and name in group.members:
            current = group.members[name].incarnation
        if registration.resume and current not in (None, registration.incarnation):
            outlet.refuse(409, REPLACED, final=True)
            return None
        if self._is_full(outlet):
            return None
        if present is not None:
            is_same = present.registration.incarnation == registration.incarnation
            present.outlet.refuse(409, REPLACED, final=not is_same)
        # Though it may be gone again before anybody looks: its grace begins anew then.
        self.away.pop(name, None)
        session = self.sessions[name] = Session(registration, outlet)
        self.said.append(
            lambda group: group.join(
                name, registration.incarnation, registration.holds, now, shares=registration.shares
            )
        )
        self.look_soon()
        return session

    def is_present(self, session: Session) -> bool:
        """Whether a session counts still."""
        return self.sessions.get(session.registration.name) is session

    def released(self, session: Session, parts: Iterable[Part]) -> None:
        """A consumer has detached from something."""
        gone, one = frozenset(parts), session.registration
        if self._is_full(session.outlet):
            return
        self.said.append(lambda group: group.release(one.name, one.incarnation, gone))

    def drained(self, parts: Iterable[Part]) -> None:
        """A consumer believes that these are read to their ends."""
        for part in parts:
            if len(self.hints) < MOST_HINTS:
                self.hints.add(part.segment_id)
        self.look_soon()

    def left(self, session: Session) -> None:
        """A consumer goes for good."""
        one = session.registration
        if self.is_present(session):
            del self.sessions[one.name]
        self.said.append(lambda group: group.leave(one.name, one.incarnation))

    def lost(self, session: Session, now: float) -> None:
        """A consumer's connection is gone; its grace begins."""
        name = session.registration.name
        if self.is_present(session):
            del self.sessions[name]
            self.away.setdefault(name, now + self.grace_seconds)

    def look_soon(self) -> None:
        """Sealed segments are worth a look again."""
        self.look_at = self.look_seconds = 0.0

    def watch(self, group: Group, now: float) -> None:
        """Keep times in step with the members: a new leader gives everybody a whole grace period (pip-468)."""
        overdue = {name for name, session in self.sessions.items() if self._is_overdue(session, now)}
        for name in list(self.away):
            if name not in group.members or (name in self.sessions and name not in overdue):
                del self.away[name]
        for name, member in group.members.items():
            session = self.sessions.get(name)
            if session is None or name in overdue:
                self.away.setdefault(name, now + self.grace_seconds)
            if session is None:
                continue
            if not member.releasing:
                session.taken_at = None
            elif session.taken_at is None:
                session.taken_at = now

    def send_overdue_away(self, now: float) -> None:
        """Disconnect consumers that do not let go of what was taken from them (R21)."""
        for name, session in list(self.sessions.items()):
            if self._is_overdue(session, now):
                reason = f"it has not let go of its segments within {self.handover_seconds:g} s"
                session.outlet.refuse(408, reason, final=False)
                del self.sessions[name]
                self.away.setdefault(name, now + self.grace_seconds)

    def send_forgotten_away(self, group: Group) -> None:
        """Have those register again that are connected and no members, or another of their name is: whoever led before
        may have removed them, or let that one in, after they came here. Nobody would ever tell them anything.

        Args:
            group: as committed.
        """
        if self.said:
            # One that has just come is not a member yet.
            return
        for name, session in list(self.sessions.items()):
            member = group.members.get(name)
            if member is None or member.incarnation != session.registration.incarnation:
                session.outlet.refuse(503, "a former leader has removed or replaced it; register again", final=False)
                del self.sessions[name]

    def expired(self, now: float) -> list[str]:
        """Members whose grace is over."""
        return sorted(name for name, until in self.away.items() if until <= now)

    def next_time(self) -> float | None:
        """Monotonic time at which a grace or a hand-over is over."""
        taken = [session.taken_at for session in self.sessions.values() if session.taken_at is not None]
        return min([*self.away.values(), *(at + self.handover_seconds for at in taken)], default=None)

    def refuse_all(self, status: int, reason: str, *, final: bool) -> None:
        """Send everybody away."""
        for session in self.sessions.values():
            session.outlet.refuse(status, reason, final=final)
        self.sessions.clear()

    def _is_full(self, outlet: Outlet) -> bool:
        """Whether nothing more can be taken in; then a consumer is sent away, to come again."""
        full = len(self.said) >= MOST_SAID
        if full:
            outlet.refuse(503, "more is said than can be written down; register again", final=False)
        return full

    def _is_overdue(self, session: Session, now: float) -> bool:
        # The very sum that `next_time` tells: a difference may round to a little less, and be looked at again at once.
        return session.taken_at is not None and now >= session.taken_at + self.handover_seconds
