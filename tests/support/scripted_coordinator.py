"""A coordinator for tests of the client library: it divides the segments of a scripted leader's topic among consumers,
as docs/sessions.md says of a leader, and remembers nothing beyond its process.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Self

from tests.support.pulsar_view import PulsarView
from tests.support.scripted_leader import ScriptedLeader
from tests.support.session_server import GatewaySession, SessionServer, serve_sessions

_LOOK_SECONDS = 0.1


@dataclass
class Member:
    """A consumer of a subscription."""

    name: str
    incarnation: str
    kind: str
    session: GatewaySession | None
    holds: set[int]
    """What it may be attached to."""
    told: Any = None
    """The assignment it was sent last."""
    seen_at: float = 0.0


@dataclass
class Group:
    """A subscription.

    Attributes:
        members: its consumers by name.
        owners: who is assigned each segment.
        readers: who read each segment last.
        drained: the segments it is through with.
        reports: what consumers said was drained, in the order of saying.
        moves: segments and their new owners, in the order of assigning.
    """

    name: str
    members: dict[str, Member] = field(default_factory=dict)
    owners: dict[int, str] = field(default_factory=dict)
    readers: dict[int, str] = field(default_factory=dict)
    drained: set[int] = field(default_factory=set)
    reports: list[int] = field(default_factory=list)
    moves: list[tuple[int, str]] = field(default_factory=list)
    counter: int = 0
    has_cursors: bool = False


class ScriptedCoordinator:
    """Coordinates the consumers of one topic.

    Args:
        leader: makes and changes the topic.
        view: a superuser's view of the brokers.
        grace_seconds: how long a consumer without a session stays a member.
        handover_seconds: told to consumers.
    """

    def __init__(
        self, leader: ScriptedLeader, view: PulsarView, *, grace_seconds: float = 60.0, handover_seconds: float = 30.0
    ) -> None:
        self._leader = leader
        self._view = view
        self._grace_seconds = grace_seconds
        self._handover_seconds = handover_seconds
        self._groups: dict[str, Group] = {}
        self._ends: dict[int, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._serving = AsyncExitStack()
        self._port: int | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        await self.up()
        self._spawn(self._keep_dividing())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._serving.aclose()

    async def up(self) -> None:
        """Serve."""
        server = await self._serving.enter_async_context(serve_sessions(port=self._port))
        self.url = server.url
        self._port = int(server.url.rpartition(":")[2])
        self._spawn(self._accept(server))

    async def down(self) -> None:
        """Break every session and serve no more, until `up`; what is assigned stays so."""
        await self._serving.aclose()
        self._serving = AsyncExitStack()

    def group(self, subscription: str) -> Group:
        """What is known of a subscription."""
        return self._groups.setdefault(subscription, Group(subscription))

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, server: SessionServer) -> None:
        while True:
            session = await server.sessions.get()
            self._spawn(self._serve(session))

    async def _serve(self, session: GatewaySession) -> None:
        group = self.group(session.subscription)
        ended = asyncio.create_task(session.ended.wait())
        member: Member | None = None
        try:
            while True:
                taking = asyncio.create_task(session.received.get())
                await asyncio.wait({taking, ended}, return_when=asyncio.FIRST_COMPLETED)
                if not taking.done():
                    taking.cancel()
                    return
                frame = taking.result()
                if frame["type"] == "register":
                    member = await self._register(group, session, frame)
                elif member is not None and member.session is session:
                    await self._hear(group, member, frame)
        except ConnectionError:
            return
        finally:
            ended.cancel()
            if member is not None and member.session is session:
                member.session, member.seen_at = None, time.monotonic()

    async def _register(self, group: Group, session: GatewaySession, frame: Mapping[str, Any]) -> Member:
        await self._make_cursors(group, frame["initialPosition"])
        name = frame["consumer"]
        former = group.members.get(name)
        if former is not None and former.incarnation != frame["incarnation"] and former.session is not None:
            await former.session.refuse(409, f"another consumer has registered as {name!r}", final=True)
        member = Member(name, frame["incarnation"], frame["kind"], session, set(frame["holds"]))
        group.members[name] = member
        await session.registered(
            grace_ms=int(self._grace_seconds * 1000), handover_ms=int(self._handover_seconds * 1000)
        )
        await self._divide(group)
        return member

    async def _hear(self, group: Group, member: Member, frame: Mapping[str, Any]) -> None:
        match frame["type"]:
            case "released":
                member.holds -= set(frame["segments"])
            case "drained":
                group.reports += frame["segments"]
            case "leave":
                assert member.session is not None
                self._remove(group, member)
                await member.session.left()
        await self._divide(group)

    async def _make_cursors(self, group: Group, position: str) -> None:
        if group.name not in self._leader.subscriptions:
            self._leader.subscriptions += (group.name,)
            for segment_id, segment in self._leader.layout.segments.items():
                if position == "Latest" and not segment.is_active:
                    # It never reads this one (R18), and an attempt to do so would make it a cursor.
                    group.drained.add(segment_id)
                    continue
                topic = self._leader.segment_topic(segment_id)
                await self._view.create_subscription(topic, group.name)
                if position == "Latest":
                    await self._view.skip_all(topic, group.name)
        group.has_cursors = True

    async def _keep_dividing(self) -> None:
        while True:
            for group in [group for group in self._groups.values() if group.has_cursors]:
                for member in list(group.members.values()):
                    if member.session is None and time.monotonic() - member.seen_at > self._grace_seconds:
                        self._remove(group, member)
                await self._look(group)
                with contextlib.suppress(ConnectionError):
                    await self._divide(group)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _look(self, group: Group) -> None:
        for segment_id, segment in list(self._leader.layout.segments.items()):
            if segment.is_active or segment_id in group.drained:
                continue
            topic = self._leader.segment_topic(segment_id)
            if segment_id not in self._ends:
                self._ends[segment_id] = (await self._view.internal(topic))["lastConfirmedEntry"]
            cursor = (await self._view.stats(topic))["subscriptions"][group.name]
            # It only believes what a consumer has told it, too, so that tests depend on that.
            if segment_id in group.reports and not cursor["msgBacklog"]:
                group.drained.add(segment_id)

    async def _divide(self, group: Group) -> None:
        """Take away what is due elsewhere, and give what nobody holds; then tell everybody concerned."""
        layout = self._leader.layout
        free = [
            segment_id
            for segment_id, segment in layout.segments.items()
            if segment_id not in group.drained
            and all(parent in group.drained for parent in segment.parent_ids if parent in layout.segments)
        ]
        parents = {segment_id: layout.segments[segment_id].parent_ids for segment_id in free}
        wanted = divide(free, group.owners, sorted(group.members), group.readers, parents)
        group.owners = {each: owner for each, owner in group.owners.items() if wanted.get(each) == owner}
        for segment_id, owner in wanted.items():
            if segment_id in group.owners or any(
                segment_id in member.holds for member in group.members.values() if member.name != owner
            ):
                continue
            group.owners[segment_id] = group.readers[segment_id] = owner
            group.members[owner].holds.add(segment_id)
            group.moves.append((segment_id, owner))
        for member in list(group.members.values()):
            await self._tell(group, member)

    async def _tell(self, group: Group, member: Member) -> None:
        segments = [self._segment(each) for each, owner in sorted(group.owners.items()) if owner == member.name]
        if member.session is None or member.told == segments:
            return
        member.told = segments
        group.counter += 1
        await member.session.assign((1, self._leader.layout.epoch, group.counter), segments)

    def _segment(self, segment_id: int) -> dict[str, Any]:
        segment = self._leader.layout.segments[segment_id]
        described: dict[str, Any] = {
            "id": segment_id,
            "range": segment.hash_range.descriptor,
            "topic": self._leader.segment_topic(segment_id),
            "state": segment.state.value,
            "buckets": [],
        }
        if segment_id in self._ends:
            described["end"] = self._ends[segment_id]
        return described

    def _remove(self, group: Group, member: Member) -> None:
        if group.members.get(member.name) is member:
            del group.members[member.name]
            group.owners = {each: owner for each, owner in group.owners.items() if owner != member.name}


def divide(
    segments: Collection[int],
    owners: Mapping[int, str],
    members: Sequence[str],
    readers: Mapping[int, str],
    parents: Mapping[int, Iterable[int]],
) -> dict[int, str]:
    """Who is to read what: shares differ by one at most; whoever has a segment keeps it as far as its share allows; a
    child goes to the reader of its parent first. Pure.
    """
    if not members:
        return {}
    has = {name: sorted(each for each in segments if owners.get(each) == name) for name in members}
    base, extra = divmod(len(segments), len(members))
    by_share = sorted(members, key=lambda name: (-len(has[name]), name))
    room = {name: base + (place < extra) for place, name in enumerate(by_share)}
    result: dict[int, str] = {}
    for name in members:
        for segment_id in has[name][: room[name]]:
            result[segment_id] = name
            room[name] -= 1
    for segment_id in sorted(segments):
        if segment_id not in result:
            before = [readers[parent] for parent in parents[segment_id] if room.get(readers.get(parent, ""), 0) > 0]
            owner = before[0] if before else max(members, key=lambda name: room[name])
            result[segment_id] = owner
            room[owner] -= 1
    return result
