"""What all WebSockets of the gateway have in common: their bounds, how they begin and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from enum import IntEnum

from aiohttp import web

from scalable_topics_operator.gateway.refusal import Refusal

FRAME_BYTES = 1 << 20
"""A larger message ends a socket."""

SILENT_SECONDS = 20.0
"""A peer that sends nothing for so long, not even a pong, is taken for gone (docs/sessions.md)."""

CLOSE_SECONDS = 1.0
"""How long a peer has to answer that it closes, too."""

_SHUTDOWN_SECONDS = 0.5
# A control frame holds 125 bytes, two of them for the code.
_REASON_BYTES = 123


class CloseCode(IntEnum):
    """Why a socket is closed; those of 4000 and above are the gateway's own, after statuses of HTTP."""

    DONE = 1000
    GOING_AWAY = 1001
    INTERNAL_ERROR = 1011
    TRY_AGAIN_LATER = 1013
    UNKNOWN_CALLER = 4401
    NO_RIGHT = 4403


def make_socket(request: web.Request, frame_bytes: int = FRAME_BYTES) -> web.WebSocketResponse:
    """The response that makes a request a WebSocket, whose pings are for the caller to answer.

    Args:
        request: the handshake.
        frame_bytes: a longer message ends it.

    Raises Refusal: 400 for a request that is no handshake.
    """
    # Compression would cost each session a hundred times the memory of its connection.
    socket = web.WebSocketResponse(timeout=CLOSE_SECONDS, autoping=False, compress=False, max_msg_size=frame_bytes)
    if not socket.can_prepare(request).ok:
        raise Refusal(400, f"{request.path} is a WebSocket: send `Upgrade: websocket` and what belongs to it")
    return socket


async def close_socket(request: web.Request, socket: web.WebSocketResponse, code: int, reason: str = "") -> None:
    """Say goodbye, and be gone in bounded time whether or not the client takes it; quiet when it is closed already."""
    with suppress(TimeoutError):
        async with asyncio.timeout(2 * CLOSE_SECONDS):
            await socket.close(code=code, message=close_reason(reason))
    transport = request.transport
    if transport is not None and transport.get_write_buffer_size():
        # What a client does not read would keep the connection for as long as the client likes.
        transport.abort()


async def all_ended(endings: Iterable[tuple[web.Request, Coroutine[None, None, None]]]) -> None:
    """Let sockets end, all together and in half a second; connections of those that do not are broken.

    Args:
        endings: requests, each with what ends its socket.
    """
    tasks = {asyncio.create_task(ending): request for request, ending in endings}
    if not tasks:
        return
    _, late = await asyncio.wait(tasks, timeout=_SHUTDOWN_SECONDS)
    for task in late:
        task.cancel()
        transport = tasks[task].transport
        if transport is not None:
            transport.abort()


def close_reason(reason: str) -> bytes:
    """A text as it fits into a close frame."""
    return reason.encode()[:_REASON_BYTES].decode(errors="ignore").encode()
