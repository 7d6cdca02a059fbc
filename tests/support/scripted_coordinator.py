"""A coordinator for tests of the client library: it deals the segments of a scripted leader's topic to consumers, and
entry buckets of segments where there are more consumers, as docs/sessions.md says of a leader. It remembers nothing
beyond its process.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Self

from scalable_topics.layout import Part, buckets_of, whole_of
from scalable_topics_operator.assignment.sharing import deal_buckets, share
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
    holds: set[Part]
    """What it may be attached to."""
    told: Any = None
    """The assignment it was sent last."""
    seen_at: float = 0.0


@dataclass
class Group:
    """A subscription.

    Attributes:
        members: its consumers by name.
        owners: who is assigned each segment, or bucket of one.
        readers: who read each segment last.
        drained: the segments it is through with.
        reports: what consumers said was drained, in the order of saying.
        moves: what was assigned, and to whom, in the order of assigning.
    """

    name: str
    members: dict[str, Member] = field(default_factory=dict)
    owners: dict[Part, str] = field(default_factory=dict)
    readers: dict[int, tuple[str, ...]] = field(default_factory=dict)
    drained: set[int] = field(default_factory=set)
    reports: list[Part] = field(default_factory=list)
    moves: list[tuple[Part, str]] = field(default_factory=list)
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
        self.floors: dict[int, list[dict[str, Any]]] = {}
        """By segment, what is told of its buckets: see docs/sessions.md."""
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
        member = Member(name, frame["incarnation"], frame["kind"], session, set(_parts(frame, "holds", "holdsBuckets")))
        group.members[name] = member
        await session.registered(
            grace_ms=int(self._grace_seconds * 1000), handover_ms=int(self._handover_seconds * 1000)
        )
        await self._divide(group)
        return member

    async def _hear(self, group: Group, member: Member, frame: Mapping[str, Any]) -> None:
        match frame["type"]:
            case "released":
                member.holds -= set(_parts(frame))
            case "drained":
                group.reports += _parts(frame)
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
            if _is_reported(segment_id, segment.buckets, group.reports) and not cursor["msgBacklog"]:
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
        for segment_id in free:
            parents = layout.segments[segment_id].parent_ids
            before = [name for parent in parents for name in group.readers.get(parent, ())]
            group.readers.setdefault(segment_id, tuple(before))
        buckets = {segment_id: layout.segments[segment_id].buckets for segment_id in free}
        wanted = deal(buckets, group.members, group.owners, group.readers)
        group.owners = {part: owner for part, owner in group.owners.items() if wanted.get(part) == owner}
        for part, owner in wanted.items():
            is_held = any(
                part.conflicts_with(held)
                for member in group.members.values()
                for held in member.holds
                if (held, member.name) != (part, owner)
            )
            if part in group.owners or is_held:
                continue
            group.owners[part] = owner
            group.members[owner].holds.add(part)
            group.moves.append((part, owner))
        for segment_id in free:
            group.readers[segment_id] = (
                tuple(
                    dict.fromkeys(
                        owner for part, owner in sorted(group.owners.items()) if part.segment_id == segment_id
                    )
                )
                or group.readers[segment_id]
            )
        for member in list(group.members.values()):
            await self._tell(group, member)

    async def _tell(self, group: Group, member: Member) -> None:
        parts = [part for part, owner in group.owners.items() if owner == member.name]
        shared = buckets_of(parts)
        segments = [self._segment(each, shared.get(each, ())) for each in sorted({*whole_of(parts), *shared})]
        if member.session is None or member.told == segments:
            return
        member.told = segments
        group.counter += 1
        await member.session.assign((1, self._leader.layout.epoch, group.counter), segments)

    def _segment(self, segment_id: int, buckets: Iterable[int]) -> dict[str, Any]:
        segment = self._leader.layout.segments[segment_id]
        described: dict[str, Any] = {
            "id": segment_id,
            "range": segment.hash_range.descriptor,
            "topic": self._leader.segment_topic(segment_id),
            "state": segment.state.value,
            "buckets": list(buckets),
            "bucketCount": segment.buckets,
        }
        if segment_id in self._ends:
            described["end"] = self._ends[segment_id]
        if segment_id in self.floors:
            described["floors"] = self.floors[segment_id]
        return described

    def _remove(self, group: Group, member: Member) -> None:
        if group.members.get(member.name) is member:
            del group.members[member.name]
            group.owners = {part: owner for part, owner in group.owners.items() if owner != member.name}


def deal(
    buckets: Mapping[int, int],
    members: Iterable[str],
    owners: Mapping[Part, str],
    readers: Mapping[int, tuple[str, ...]],
) -> dict[Part, str]:
    """Who is to read what, of segments with so many entry buckets each: whole segments as long as there are enough, and
    otherwise buckets. Pure.
    """
    result: dict[Part, str] = {}
    names = sorted(members)
    for segment_id, sharing in share(sorted(buckets), names, readers, buckets, names).items():
        if len(sharing) == 1:
            result[Part(segment_id)] = sharing[0]
            continue
        owned: defaultdict[str, set[int]] = defaultdict(set)
        for part, owner in owners.items():
            if part.segment_id == segment_id and not part.is_whole:
                owned[owner].add(part.bucket)
        for name, dealt in deal_buckets(buckets[segment_id], {name: owned[name] for name in sharing}).items():
            result |= {Part(segment_id, bucket): name for bucket in dealt}
    return result


def _parts(frame: Mapping[str, Any], whole: str = "segments", buckets: str = "buckets") -> list[Part]:
    return [
        *(Part(segment_id) for segment_id in frame[whole]),
        *(Part(one["segment"], bucket) for one in frame[buckets] for bucket in one["buckets"]),
    ]


def _is_reported(segment_id: int, buckets: int, reports: Iterable[Part]) -> bool:
    """Whether consumers have said so of the whole segment, or of each of its buckets."""
    told = {part for part in reports if part.segment_id == segment_id}
    return Part(segment_id) in told or told >= {Part(segment_id, bucket) for bucket in range(buckets)}
