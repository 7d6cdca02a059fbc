"""HTTP and WebSockets between replicas: bounded in time and size, tried once."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import aiohttp
from yarl import URL

from scalable_topics_operator.gateway.websockets import CLOSE_SECONDS, FRAME_BYTES

PEER_SECONDS = 3.0
# A segment is about 150 bytes of a connection's load.
_MOST_BYTES = 64 * 1024 * 1024
_SWITCHING_PROTOCOLS = 101


class PeerUnreachable(Exception):
    """Another replica gave no whole answer in time; the message says which and why."""


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    """What another replica answered.

    Args:
        status: of HTTP.
        headers: all of them.
        body: as it came.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class PeerRefused(Exception):
    """Another replica answered to a WebSocket's handshake with something else.

    Args:
        answer: what it said.
    """

    def __init__(self, answer: PeerAnswer) -> None:
        super().__init__(f"answered {answer.status}")
        self.answer = answer


class PeerTransport:
    """Sends requests to other replicas. Use as an async context manager.

    Args:
        fingerprint: SHA-256 of the certificate that all replicas show; None for plain HTTP.
        timeout_seconds: bound of one exchange.
    """

    def __init__(self, fingerprint: bytes | None = None, timeout_seconds: float = PEER_SECONDS) -> None:
        self._scheme = "http" if fingerprint is None else "https"
        # Replicas share one certificate, which names the Service and not each address.
        self._ssl: aiohttp.Fingerprint | bool = True if fingerprint is None else aiohttp.Fingerprint(fingerprint)
        self._timeout_seconds = timeout_seconds
        self._session: aiohttp.ClientSession | None = None
        self._sockets: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64))
        # Apart and without a limit: sockets stay open, and whoever accepts them counts them.
        self._sockets = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            middlewares=(_read_refusal,),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in (self._session, self._sockets):
            if session is not None:
                await session.close()

    async def get(self, address: str, path: str, headers: Mapping[str, str]) -> PeerAnswer:
        """Send one GET.

        Args:
            address: host and port of the other replica.
            path: encoded, with the query.
            headers: to send.

        Raises PeerUnreachable.
        """
        return await self.send("GET", address, path, headers)

    async def send(
        self, method: str, address: str, path: str, headers: Mapping[str, str], more_seconds: float = 0.0
    ) -> PeerAnswer:
        """Send one request without a body.

        Args:
            method: of HTTP.
            address: host and port of the other replica.
            path: encoded, with the query.
            headers: to send.
            more_seconds: how long the other replica may take besides what an exchange may.

        Raises PeerUnreachable.
        """
        if self._session is None:
            raise RuntimeError("PeerTransport is used outside its context manager")
        seconds = self._timeout_seconds + more_seconds
        timeout = aiohttp.ClientTimeout(total=seconds, ceil_threshold=math.inf)
        url = URL(f"{self._scheme}://{address}{path}", encoded=True)
        try:
            async with self._session.request(
                method, url, headers=headers, ssl=self._ssl, timeout=timeout, allow_redirects=False
            ) as response:
                body = await _read(response)
                return PeerAnswer(response.status, response.headers, body)
        except TimeoutError:
            raise PeerUnreachable(f"replica at {address}: no answer in {seconds:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            # What the library says may quote the request.
            raise PeerUnreachable(f"replica at {address}: {type(error).__name__}") from None

    async def websocket(self, address: str, path: str, headers: Mapping[str, str]) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket, which the caller closes; its pings are for the caller to answer.

        Args:
            address: host and port of the other replica.
            path: encoded, with the query.
            headers: to send with the handshake.

        Raises PeerUnreachable, PeerRefused.
        """
        if self._sockets is None:
            raise RuntimeError("PeerTransport is used outside its context manager")
        scheme = "ws" if self._scheme == "http" else "wss"
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._sockets.ws_connect(
                    URL(f"{scheme}://{address}{path}", encoded=True),
                    headers=headers,
                    ssl=self._ssl,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
                    autoping=False,
                    max_msg_size=FRAME_BYTES,
                )
        except TimeoutError:
            raise PeerUnreachable(f"replica at {address}: no answer in {self._timeout_seconds:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise PeerUnreachable(f"replica at {address}: {type(error).__name__}") from None


async def _read_refusal(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep what a replica says when it refuses a handshake, of which the library would keep the status only."""
    response = await handler(request)
    if response.status == _SWITCHING_PROTOCOLS:
        return response
    async with response:
        raise PeerRefused(PeerAnswer(response.status, response.headers, await _read(response)))


async def _read(response: aiohttp.ClientResponse) -> bytes:
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > _MOST_BYTES:
            raise aiohttp.ClientPayloadError("the answer is too long")
        chunks.append(chunk)
    return b"".join(chunks)
