"""The session of a coordinated consumer with the topic's leader, by way of the gateway (docs/sessions.md)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

import aiohttp

from scalable_topics.layout import Part, TopicName
from scalable_topics.layout.json_fields import parse_json
from scalable_topics.scrubbing import scrubbed
from scalable_topics.sdk.errors import ClientError, ConnectError, ScalableTopicNotFoundError, SessionRefusedError
from scalable_topics.sdk.gateway_options import GatewayOptions
from scalable_topics.sdk.session_frames import AssignedSegment, ConsumerKind, Refused, parse_frame
from scalable_topics.sdk.session_state import (
    AttachTo,
    Drop,
    Effect,
    Fail,
    GiveBack,
    SendFrame,
    SessionState,
    Update,
)

logger = logging.getLogger(__name__)

_LEAST_PAUSE_SECONDS = 0.1
_FIRST_PAUSE_SECONDS = 1.0
_MOST_PAUSE_SECONDS = 15.0
_PING_SECONDS = 5.0
_SILENCE_SECONDS = 20.0
_LOOK_SECONDS = 1.0
_LEAVE_SECONDS = 5.0
_CLOSE_SECONDS = 1.0
_MOST_REASON = 500
_MOST_REFUSAL_BYTES = 64 * 1024
_BAD_REQUEST, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 400, 401, 403, 404
# What waiting does not mend. A consumer that was registered before goes on trying, but for a lost right (R7).
_WRONG_FROM_THE_BEGINNING = frozenset({_BAD_REQUEST, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND})


class SegmentHolder(Protocol):
    """Attaches to segments and entry buckets as its session says; tells the session of each that it has `detached`
    from.
    """

    def attach(self, segments: tuple[AssignedSegment, ...]) -> None:
        """Attach to these, as often as it takes."""
        ...

    def update(self, segment: AssignedSegment) -> None:
        """One that is attached to is as this says now."""
        ...

    def give_back(self, part: Part, within_seconds: float) -> None:
        """Deliver nothing more of it, let what was delivered be acknowledged in this time, and detach."""
        ...

    def drop(self, part: Part) -> None:
        """Deliver nothing more of it, and detach at once."""
        ...

    def unserved(self) -> Collection[Part]:
        """What no broker serves it at this moment."""
        ...


class _HandshakeRefusedError(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"the gateway answers {status}: {reason}")
        self.status = status
        self.reason = reason


class ConsumerSession:
    """Registers a consumer, follows its assignments, and registers again for as long as it is not closed.

    Args:
        topic: the scalable topic.
        subscription: name of the subscription.
        consumer: name of the consumer, unique within the subscription.
        kind: what it is.
        initial_position: where a new subscription starts, `Earliest` or `Latest`.
        gateway: how the gateway is reached.
        failed: called once when the consumer is of no use any more, with the error for the application.
    """

    def __init__(
        self,
        topic: TopicName,
        subscription: str,
        *,
        consumer: str,
        kind: ConsumerKind,
        initial_position: str,
        gateway: GatewayOptions,
        failed: Callable[[ClientError], None],
    ) -> None:
        self._topic = topic
        self._where = f"consumer {consumer!r} of subscription {subscription!r} on {topic}"
        self._url = gateway.session_url(topic, subscription)
        self._gateway = gateway
        self._holder: SegmentHolder | None = None
        self._tell_failed = failed
        self._state = SessionState(consumer, uuid.uuid4().hex, kind, initial_position)
        self._loop = asyncio.get_running_loop()
        self._registered: asyncio.Future[None] = self._loop.create_future()
        self._gone = asyncio.Event()
        self._outgoing: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._trouble = ""

    @property
    def is_registered(self) -> bool:
        """Whether there is a session at this moment."""
        return self._state.is_registered

    async def start(self, holder: SegmentHolder) -> None:
        """Register.

        Args:
            holder: attaches to segments.

        Raises:
            ScalableTopicNotFoundError: the gateway knows no such topic.
            SessionRefusedError: the leader refuses the consumer for good.
            ConnectError: the gateway refuses the caller, or nobody took the registration in time.
        """
        self._begin(holder)
        seconds = self._gateway.register_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._registered)
        except TimeoutError:
            raise ConnectError(
                f"{self._where} could not register within {seconds:g} s: {self._trouble or 'nobody answers'}"
            ) from None

    def join(self, holder: SegmentHolder) -> None:
        """Register in the background, as often as it takes: for a consumer that is at work already (R7)."""
        self._registered.set_result(None)
        self._begin(holder)

    def detached(self, part: Part) -> None:
        """The consumer is attached to a segment, or to an entry bucket, no longer."""
        self._apply(self._state.detached(part))

    def drained(self, part: Part) -> None:
        """Everything in a part of a sealed segment is acknowledged, as far as the consumer knows."""
        self._apply(self._state.drained(part))

    def leave(self) -> None:
        """Drop everything, and leave as soon as it is detached from; then `close`."""
        self._apply(self._state.leave())

    async def close(self) -> None:
        """End, after having left if there is anybody to tell; waits for that for 5 seconds at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self._gone.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._registered.done() and not self._registered.cancelled():
            # An error nobody has asked for is not worth a warning of the event loop.
            self._registered.exception()

    def _begin(self, holder: SegmentHolder) -> None:
        self._holder = holder
        self._tasks = [self._loop.create_task(self._keep_talking()), self._loop.create_task(self._keep_time(holder))]

    async def _keep_talking(self) -> None:
        try:
            tls = await asyncio.to_thread(self._gateway.tls)
        except ConnectError as error:
            self._fail(error)
            return
        most_seconds = _FIRST_PAUSE_SECONDS
        async with aiohttp.ClientSession(raise_for_status=_explain) as http:
            while not self._state.is_gone:
                was_registered = await self._talk(http, True if tls is None else tls)
                if not self._state.is_gone:
                    most_seconds = (
                        _FIRST_PAUSE_SECONDS if was_registered else min(2 * most_seconds, _MOST_PAUSE_SECONDS)
                    )
                    await asyncio.sleep(random.uniform(_LEAST_PAUSE_SECONDS, most_seconds))

    async def _talk(self, http: aiohttp.ClientSession, tls: Any) -> bool:
        """One session from beginning to end; answers whether the consumer was registered in it."""
        trouble = "the gateway has closed the session"
        try:
            async with await self._connect(http, tls) as socket:
                await self._converse(socket)
        except _HandshakeRefusedError as error:
            trouble = str(error)
            self._judge(error)
        except TimeoutError:
            trouble = "the gateway does not answer"
        except (aiohttp.ClientError, OSError, ClientError) as error:
            trouble = f"{type(error).__name__}: {error}"
        except Exception:
            logger.exception("the session of %s has failed; it is tried again", self._where)
        finally:
            was_registered = self._state.is_registered
            self._state.lost()
            self._look_whether_gone()
        if not self._state.is_gone:
            # Once for every outage, however long it is.
            level = logging.WARNING if trouble != self._trouble and not was_registered else logging.INFO
            logger.log(level, "%s has no session and goes on with what it has: %s", self._where, trouble)
        self._trouble = trouble
        return was_registered

    async def _connect(self, http: aiohttp.ClientSession, tls: Any) -> aiohttp.ClientWebSocketResponse:
        try:
            authorization = await asyncio.to_thread(self._gateway.authorization)
        except ConnectError as error:
            if not self._registered.done():
                self._fail(error)
            raise
        async with asyncio.timeout(self._gateway.connect_timeout_seconds):
            return await http.ws_connect(
                self._url,
                headers={"Authorization": authorization},
                ssl=tls,
                autoping=False,
                timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_SECONDS),
            )

    async def _converse(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._outgoing = asyncio.Queue()
        self._apply(self._state.opened())
        speaking = self._loop.create_task(self._speak(socket, self._outgoing))
        try:
            await self._listen(socket)
        finally:
            speaking.cancel()
            await asyncio.gather(speaking, return_exceptions=True)

    async def _speak(self, socket: aiohttp.ClientWebSocketResponse, outgoing: asyncio.Queue[Mapping[str, Any]]) -> None:
        while True:
            try:
                async with asyncio.timeout(_PING_SECONDS):
                    frame = await outgoing.get()
            except TimeoutError:
                await socket.ping()
            else:
                await socket.send_str(json.dumps(frame))

    async def _listen(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        while not self._state.is_over:
            async with asyncio.timeout(_SILENCE_SECONDS):
                message = await socket.receive()
            match message.type:
                case aiohttp.WSMsgType.TEXT:
                    self._take(message.data)
                case aiohttp.WSMsgType.PING:
                    await socket.pong(message.data)
                case aiohttp.WSMsgType.PONG | aiohttp.WSMsgType.BINARY:
                    pass
                case _:
                    return
            self._state.heard(self._loop.time())

    def _take(self, data: str) -> None:
        frame = parse_frame(data)
        if frame is None:
            return
        self._apply(self._state.received(frame))
        if isinstance(frame, Refused) and not frame.is_final:
            raise ClientError(f"refused for now ({frame.status}): {frame.reason[:_MOST_REASON]}")
        if self._state.is_registered and not self._registered.done():
            self._registered.set_result(None)

    def _apply(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendFrame(frame):
                    self._outgoing.put_nowait(frame)
                case Fail(refusal):
                    self._fail(SessionRefusedError(refusal.status, refusal.reason[:_MOST_REASON], self._where))
                case _ if self._holder is not None:
                    _tell(self._holder, effect)
        self._look_whether_gone()

    def _look_whether_gone(self) -> None:
        if self._state.is_gone:
            self._gone.set()

    async def _keep_time(self, holder: SegmentHolder) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self._apply(self._state.passed(self._loop.time(), holder.unserved()))

    def _judge(self, error: _HandshakeRefusedError) -> None:
        if self._registered.done():
            if error.status == _FORBIDDEN:
                self._apply(self._state.received(Refused(error.status, error.reason, is_final=True)))
        elif error.status == _NOT_FOUND:
            self._fail(ScalableTopicNotFoundError(f"the gateway knows no scalable topic {self._topic}: {error.reason}"))
        elif error.status in _WRONG_FROM_THE_BEGINNING:
            self._fail(ConnectError(f"{self._where} may not register: {error}"))

    def _fail(self, error: ClientError) -> None:
        if not self._registered.done():
            self._registered.set_exception(error)
        elif not self._registered.exception():
            self._tell_failed(error)


def _tell(holder: SegmentHolder, effect: AttachTo | Update | GiveBack | Drop) -> None:
    match effect:
        case AttachTo(segments):
            holder.attach(segments)
        case Update(segment):
            holder.update(segment)
        case GiveBack(part, within_seconds):
            holder.give_back(part, within_seconds)
        case Drop(part):
            holder.drop(part)


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    """The body, or of one that is long its beginning: what answers may be no gateway."""
    text = b""
    while len(text) < _MOST_REFUSAL_BYTES and (chunk := await response.content.read(_MOST_REFUSAL_BYTES - len(text))):
        text += chunk
    return text


async def _explain(response: aiohttp.ClientResponse) -> None:
    """Raise what the gateway says about a handshake it refuses, which aiohttp would throw away."""
    if response.status == 101:
        return
    reason = response.reason or "no reason is given"
    with contextlib.suppress(aiohttp.ClientError, ValueError, TimeoutError):
        body = parse_json(await _beginning(response))
        if isinstance(body, dict) and isinstance(body.get("reason"), str):
            reason = body["reason"]
    # Something in front of the gateway may repeat what it was sent.
    token = response.request_info.headers.get("Authorization", "").partition(" ")[2]
    raise _HandshakeRefusedError(response.status, scrubbed(reason, [token], "***")[:_MOST_REASON])
