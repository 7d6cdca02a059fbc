"""A consumer's side of a session, frame by frame, for tests that want to misbehave (docs/sessions.md)."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import aiohttp

from tests.support.waiting import eventually

Frame = dict[str, Any]


@dataclass(slots=True)
class SessionClient:
    """One session.

    Args:
        socket: to the gateway.
        name: of the consumer.
        incarnation: of the consumer object.
        frames: all that came, in order.
    """

    socket: aiohttp.ClientWebSocketResponse
    name: str
    incarnation: str
    frames: list[Frame] = field(default_factory=list)

    async def say(self, kind: str, /, **fields: Any) -> None:
        """Send a frame."""
        await self.socket.send_str(json.dumps({"type": kind, **fields}))

    async def next(self, kind: str, within_seconds: float = 15.0) -> Frame:
        """The next frame of a kind; others are passed over."""
        async with asyncio.timeout(within_seconds):
            while True:
                message = await self.socket.receive()
                assert message.type is aiohttp.WSMsgType.TEXT, f"{self.name}: {message} instead of {kind}"
                frame = json.loads(message.data)
                self.frames.append(frame)
                if frame["type"] == kind:
                    assert isinstance(frame, dict)
                    return frame

    async def assigned(self, within_seconds: float = 15.0) -> list[int]:
        """The segments of the next assignment."""
        frame = await self.next("assignment", within_seconds)
        return [segment["id"] for segment in frame["segments"]]

    async def until_assigned(self, segments: Collection[int], within_seconds: float = 15.0) -> Frame:
        """Wait for an assignment of exactly these segments."""
        async with asyncio.timeout(within_seconds):
            while True:
                frame = await self.next("assignment", within_seconds)
                if {segment["id"] for segment in frame["segments"]} == set(segments):
                    return frame

    async def is_ended(self, within_seconds: float = 15.0) -> int | None:
        """Wait until the gateway closes; answers the code."""
        async with asyncio.timeout(within_seconds):
            while not self.socket.closed:
                await self.socket.receive()
        return self.socket.close_code


@asynccontextmanager
async def open_session(
    gateway: str,
    topic_path: str,
    subscription: str,
    token: str,
    name: str,
    *,
    incarnation: str = "",
    **register: Any,
) -> AsyncIterator[SessionClient]:
    """Register a consumer.

    Args:
        gateway: its address, `http://host:port`.
        topic_path: of the topic below it.
        subscription: name of the subscription.
        token: a Kubernetes token.
        name: of the consumer.
        incarnation: of the consumer object; a new one if empty.
        register: further fields of the first frame.
    """
    url = f"{gateway}{topic_path}/subscriptions/{subscription}/session"
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session,
        await connect(session, url) as socket,
    ):
        client = SessionClient(socket, name, incarnation or uuid.uuid4().hex)
        await client.say("register", consumer=name, incarnation=client.incarnation, **register)
        yield client


async def connect(session: aiohttp.ClientSession, url: str) -> aiohttp.ClientWebSocketResponse:
    """Asks again as long as nobody leads the topic, as the contract tells consumers to."""

    async def connected() -> aiohttp.ClientWebSocketResponse | None:
        try:
            return await session.ws_connect(url)
        except aiohttp.WSServerHandshakeError as refused:
            if refused.status != HTTPStatus.SERVICE_UNAVAILABLE:
                raise
            return None

    socket = await eventually(
        connected, lambda found: found is not None, what="somebody leads the topic", within_seconds=20
    )
    assert socket is not None
    return socket
