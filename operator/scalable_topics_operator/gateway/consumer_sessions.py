"""Consumer sessions: one WebSocket a coordinated consumer, with the leader of its topic (docs/sessions.md, pip-468)."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

from aiohttp import WSMsgType, web
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from scalable_topics.layout import MAX_BUCKETS, Part, TopicName
from scalable_topics.layout.json_fields import parse_json
from scalable_topics_operator.cluster.kube_errors import KubeError
from scalable_topics_operator.cluster.object_key import connection_of
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.consumer_sessions import (
    ConsumerSessions,
    Membership,
    RegistrationRefused,
)
from scalable_topics_operator.controllers.session_room import Registration
from scalable_topics_operator.controllers.shard_work import NotLed
from scalable_topics_operator.gateway.admission import TOPIC_PATH, Admitted
from scalable_topics_operator.gateway.parts import GatewayParts
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.route import Right
from scalable_topics_operator.gateway.session_places import SessionKind
from scalable_topics_operator.gateway.topic_directory import Unfound
from scalable_topics_operator.gateway.websockets import SILENT_SECONDS, CloseCode, close_socket, make_socket

logger = logging.getLogger(__name__)

SESSION_PATH = TOPIC_PATH + "/subscriptions/{subscription}/session"

_REGISTER_SECONDS = 10.0
# Together, a right that is taken away ends a session within a minute.
_JUDGE_SECONDS = 50.0
_ANSWER_SECONDS = 8.0
_CLOSE_SECONDS = 3.0
# Assignments of a few hundred segments each; a consumer that does not read them is of no use as one.
_MOST_FRAMES = 64
_INTERNAL = ("__", "pulsar.")

SegmentIds = Annotated[frozenset[Annotated[int, Field(ge=0, le=2**53)]], Field(max_length=1024)]


class _Frame(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, frozen=True, extra="ignore")


class SegmentBuckets(_Frame):
    """Entry buckets of one segment."""

    segment: Annotated[int, Field(ge=0, le=2**53)]
    buckets: Annotated[frozenset[Annotated[int, Field(ge=0, lt=MAX_BUCKETS)]], Field(max_length=MAX_BUCKETS)]


SegmentsBuckets = Annotated[tuple[SegmentBuckets, ...], Field(max_length=1024)]


class Register(_Frame):
    """The first frame."""

    type: Literal["register"]
    consumer: Annotated[str, Field(min_length=1, max_length=255)]
    incarnation: Annotated[str, Field(min_length=1, max_length=64)]
    resume: bool = False
    kind: Literal["Stream", "Checkpoint"] = "Stream"
    initial_position: Literal["Earliest", "Latest"] = "Earliest"
    shares_segments: bool = False
    holds: SegmentIds = frozenset()
    holds_buckets: SegmentsBuckets = ()

    @property
    def parts(self) -> frozenset[Part]:
        """What it is attached to."""
        return _parts(self.holds, self.holds_buckets)


class Segments(_Frame):
    """What became of segments and of entry buckets."""

    type: Literal["released", "drained"]
    segments: SegmentIds = frozenset()
    buckets: SegmentsBuckets = ()

    @property
    def parts(self) -> frozenset[Part]:
        """All of them."""
        return _parts(self.segments, self.buckets)


class Leave(_Frame):
    """The last frame."""

    type: Literal["leave"]


_SAID: TypeAdapter[Segments | Leave] = TypeAdapter(Annotated[Segments | Leave, Field(discriminator="type")])


class ConsumerSessionRoutes:
    """Serves consumer sessions on the leader, and passes them on to it elsewhere.

    Args:
        parts: what it shares with the other routes.
        sessions: where consumers register.
    """

    def __init__(self, parts: GatewayParts, sessions: ConsumerSessions) -> None:
        self._parts = parts
        self._sessions = sessions
        self._open: set[_Socket] = set()
        parts.endings.append(self.close)

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """What to serve."""
        yield web.get(SESSION_PATH, self._serve, name="consumer-session", allow_head=False)

    async def close(self) -> None:
        """Send all consumers to another replica."""
        await asyncio.gather(*(socket.close(CloseCode.GOING_AWAY) for socket in tuple(self._open)))

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        admitted = await self._admit(request)
        subscription = request.match_info["subscription"]
        if len(subscription) > 255 or subscription.startswith(_INTERNAL):
            raise Refusal(400, f"{subscription[:255]!r} is no name of a subscription that applications may use")
        leader = self._parts.leaders.leader_of(admitted.key)
        if leader is None or not leader.is_me:
            return await self._parts.forwarding.websocket(request, admitted.topic, leader, admitted.authorization)
        socket = _Socket(request, make_socket(request))
        self._parts.places.take(SessionKind.CONSUMER, admitted.caller)
        try:
            await socket.prepare()
            self._open.add(socket)
            await self._converse(request, admitted, subscription, socket)
        finally:
            self._parts.places.give_back(SessionKind.CONSUMER, admitted.caller)
            self._open.discard(socket)
            await socket.close(CloseCode.DONE)
        return socket.response

    async def _admit(self, request: web.Request) -> Admitted:
        """Let a consumer in. Raises Refusal; that an ordinary topic must be migrated first is told with 404."""
        try:
            admitted = await self._parts.admission.admit(request, "consume")
        except Unfound as unfound:
            what = await self._describe_undeclared(request) if unfound.status == 404 else ""
            if not what:
                raise
        else:
            what = await self._describe(admitted)
            if not what:
                return admitted
        raise Refusal(404, f"{what}; until then its consumers need no session")

    async def _describe_undeclared(self, request: web.Request) -> str:
        match = request.match_info
        topic = TopicName(match["tenant"], match["namespace"], match["topic"])
        connection, authorization = request.query.get("connection"), request.headers.get("Authorization")
        rights = (Right("consume", TOPICS),)
        return await self._parts.ordinary.describe_undeclared(topic, connection, authorization, rights)

    async def _describe(self, admitted: Admitted) -> str:
        """What a topic is that an object declares, in words; empty unless it is an ordinary one, and known to be."""
        body = self._parts.directory.body(admitted.key)
        if body is None or (body.get("status") or {}).get("layout"):
            return ""
        try:
            return await self._parts.ordinary.describe(admitted.topic, connection_of(body))
        except Refusal:
            return ""

    async def _converse(self, request: web.Request, admitted: Admitted, subscription: str, socket: _Socket) -> None:
        try:
            registration = _registration(await socket.receive(_REGISTER_SECONDS))
            member = await self._sessions.register(admitted.key, subscription, registration, socket)
        except RegistrationRefused as refused:
            return socket.refuse(refused.status, refused.reason, final=refused.final)
        except (NotLed, KubeError) as error:
            logger.info("%s: a consumer of %s cannot register: %s", admitted.topic, subscription, error)
            return socket.refuse(
                503, "the topic's leader has just changed or cannot write; register again", final=False
            )
        except ValidationError as error:
            return socket.refuse(400, f"the first frame is no registration: {_first(error)}", final=True)
        except EndOfSession:
            return None
        if member is None:
            return None
        judging = asyncio.create_task(self._judge(request, socket))
        try:
            await _listen(socket, member)
        finally:
            judging.cancel()
            await asyncio.gather(judging, return_exceptions=True)
            member.lost()
        return None

    async def _judge(self, request: web.Request, socket: _Socket) -> None:
        """End the session once the caller's right has ended (R33)."""
        while True:
            await asyncio.sleep(_JUDGE_SECONDS * random.uniform(0.8, 1.0))
            try:
                await self._parts.admission.admit(request, "consume", granted_within_seconds=_ANSWER_SECONDS)
            except Refusal as refusal:
                if refusal.status != 503:
                    socket.refuse(refusal.status, refusal.reason, final=refusal.status in (401, 403, 404))


class EndOfSession(Exception):
    """The consumer is gone, or was sent away."""


class _Socket:
    """A consumer's socket; implements `Outlet`."""

    def __init__(self, request: web.Request, response: web.WebSocketResponse) -> None:
        self.response = response
        self._request = request
        self._frames: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue(_MOST_FRAMES)
        self._writing: asyncio.Task[None] | None = None
        self._code = CloseCode.DONE

    async def prepare(self) -> None:
        await self.response.prepare(self._request)
        self._writing = asyncio.create_task(self._write())

    def send(self, frame: Mapping[str, Any]) -> None:
        try:
            self._frames.put_nowait(frame)
        except asyncio.QueueFull:
            self._end()

    def refuse(self, status: int, reason: str, *, final: bool) -> None:
        self.send({"type": "refused", "status": status, "reason": reason, "final": final})
        self._end()

    def leave(self) -> None:
        self.send({"type": "left"})
        self._end()

    async def receive(self, timeout_seconds: float = SILENT_SECONDS) -> dict[str, Any]:
        """The next frame. Raises EndOfSession."""
        while True:
            try:
                message = await self.response.receive(timeout_seconds)
            except TimeoutError:
                raise EndOfSession from None
            if message.type is WSMsgType.PING:
                await self.response.pong(message.data)
            elif message.type is WSMsgType.TEXT:
                try:
                    frame = parse_json(message.data)
                except ValueError:
                    frame = None
                if isinstance(frame, dict):
                    return frame
                self.refuse(400, "a frame is no JSON object", final=True)
                raise EndOfSession
            elif message.type is not WSMsgType.PONG:
                raise EndOfSession

    async def close(self, code: CloseCode) -> None:
        """Send what waits, then close."""
        self._code = code
        self._end()
        if self._writing is not None:
            await asyncio.wait((self._writing,), timeout=_CLOSE_SECONDS)
            self._writing.cancel()

    def _end(self) -> None:
        """Write what waits, and then no more; a consumer for whom too much waits is cut off."""
        try:
            self._frames.put_nowait(None)
        except asyncio.QueueFull:
            if self._request.transport is not None:
                self._request.transport.abort()

    async def _write(self) -> None:
        with suppress(ConnectionError):
            while (frame := await self._next()) is not None:
                await self.response.send_str(json.dumps(frame, separators=(",", ":")))
        # The reader finds the end, and ends the session.
        await close_socket(self._request, self.response, self._code)

    async def _next(self) -> Mapping[str, Any] | None:
        """What to write next; meanwhile the consumer is asked whether it is there."""
        while True:
            try:
                async with asyncio.timeout(SILENT_SECONDS / 2):
                    return await self._frames.get()
            except TimeoutError:
                await self.response.ping()


async def _listen(socket: _Socket, member: Membership) -> None:
    """Take what a consumer says until it is gone."""
    while True:
        try:
            frame = await socket.receive()
        except EndOfSession:
            return
        try:
            said = _SAID.validate_python(frame)
        except ValidationError as error:
            if frame.get("type") in ("released", "drained", "leave"):
                socket.refuse(400, f"a frame cannot be read: {_first(error)}", final=True)
                return
            # What later releases may say.
            continue
        match said:
            case Leave():
                member.leave()
            case Segments(type="released"):
                member.released(said.parts)
            case Segments():
                member.drained(said.parts)


def _registration(frame: Mapping[str, Any]) -> Registration:
    """Raises ValidationError."""
    said = Register.model_validate(frame)
    return Registration(
        name=said.consumer,
        incarnation=said.incarnation,
        resume=said.resume,
        kind=said.kind,
        latest=said.initial_position == "Latest",
        holds=said.parts,
        shares=said.shares_segments,
    )


def _parts(segments: Iterable[int], buckets: Iterable[SegmentBuckets]) -> frozenset[Part]:
    shared = frozenset(Part(one.segment, bucket) for one in buckets for bucket in one.buckets)
    return shared.union(Part(segment) for segment in segments)


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc']) or 'it'}: {first['msg']}"
