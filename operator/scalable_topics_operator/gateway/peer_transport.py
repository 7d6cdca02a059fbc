"""HTTP between replicas: bounded in time and size, tried once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import aiohttp
from yarl import URL

PEER_SECONDS = 3.0
# A segment is about 150 bytes of a connection's load.
_MOST_BYTES = 64 * 1024 * 1024


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

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, address: str, path: str, headers: Mapping[str, str]) -> PeerAnswer:
        """Send one GET.

        Args:
            address: host and port of the other replica.
            path: encoded, with the query.
            headers: to send.

        Raises PeerUnreachable.
        """
        if self._session is None:
            raise RuntimeError("PeerTransport is used outside its context manager")
        timeout = aiohttp.ClientTimeout(total=self._timeout_seconds, ceil_threshold=math.inf)
        url = URL(f"{self._scheme}://{address}{path}", encoded=True)
        try:
            async with self._session.get(
                url, headers=headers, ssl=self._ssl, timeout=timeout, allow_redirects=False
            ) as response:
                body = await _read(response)
                return PeerAnswer(response.status, response.headers, body)
        except TimeoutError:
            raise PeerUnreachable(f"replica at {address}: no answer in {self._timeout_seconds:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            # What the library says may quote the request.
            raise PeerUnreachable(f"replica at {address}: {type(error).__name__}") from None


async def _read(response: aiohttp.ClientResponse) -> bytes:
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > _MOST_BYTES:
            raise aiohttp.ClientPayloadError("the answer is too long")
        chunks.append(chunk)
    return b"".join(chunks)
