"""Watch sessions: the memory of idle ones, and how soon the last of many has a change."""

import asyncio
import json
import resource
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dev.pki import Authority
from tests.unit.gateway.api_server import GOOD, api_server

_PATH = "/admin/v2/scalable/acme/shop/orders/watch"
_SEGMENTS = 8
_AT_ONCE = 50
_IDLE_SECONDS = 30.0
_COMMITS = 10
_TLS_SESSIONS = 1_000
_PING, _TEXT = 0x89, 0x81
_MEBIBYTE, _KIBIBYTE = 1 << 20, 1 << 10


async def report(sessions: int) -> str:
    """Open so many sessions of one topic on a gateway in a process of its own, and commit changes."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    few = min(1_000, sessions)
    lines = [
        f"## Watch sessions of one topic of {_SEGMENTS} segments\n",
        "| sessions | | resident before | after | a session | CPU while idle | commit to the last one's frame, median "
        f"of {_COMMITS} | longest |",
        "|---|---|---|---|---|---|---|---|",
        await _measured(few),
        await _measured(sessions),
    ]
    with tempfile.TemporaryDirectory() as folder:
        lines.append(await _measured(min(_TLS_SESSIONS, sessions), Path(folder)))
    return "\n".join(lines) + "\n"


async def _measured(sessions: int, pki: Path | None = None) -> str:
    async with _gateway(pki) as gateway:
        before = await gateway.ask("usage")
        clients = await gateway.connect(sessions)
        started = await gateway.ask("usage")
        await asyncio.sleep(_IDLE_SECONDS)
        after = await gateway.ask("usage")
        assert not any(client.lost for client in clients), "sessions were dropped"
        delays_ms = [1000 * await _commit(gateway, clients) for _ in range(_COMMITS)]
        for client in clients:
            client.close()
    each = (after["resident"] - before["resident"]) / sessions / _KIBIBYTE
    idle = (after["cpu"] - started["cpu"]) / _IDLE_SECONDS
    return (
        f"| {sessions:,} | {'plain' if pki is None else 'TLS'} | {before['resident'] / _MEBIBYTE:,.0f} MiB | "
        f"{after['resident'] / _MEBIBYTE:,.0f} MiB | {each:,.1f} KiB | {idle:.1%} of a core | "
        f"{statistics.median(delays_ms):,.0f} ms | {max(delays_ms):,.0f} ms |"
    )


async def _commit(gateway: "_Gateway", clients: list["_Client"]) -> float:
    """From a status that the cache is told to the moment when all have its frame."""
    wanted = clients[0].frames + 1
    committed_at = (await gateway.ask("commit"))["at"]
    async with asyncio.timeout(60):
        while any(client.frames < wanted for client in clients):
            await asyncio.sleep(0.01)
    return float(max(client.heard_at for client in clients) - committed_at)


class _Client(asyncio.Protocol):
    """A watcher with as little of its own as can be: it counts frames, and answers pings."""

    def __init__(self) -> None:
        self.frames = 0
        self.heard_at = 0.0
        self.lost = False
        self.first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(
            f"GET {_PATH} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer {GOOD}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._is_open:
            head, end, rest = self._buffer.partition(b"\r\n\r\n")
            if not end:
                return
            assert b" 101 " in head.split(b"\r\n")[0], head
            self._is_open, self._buffer = True, rest
        while (frame := self._take()) is not None:
            if frame == _TEXT:
                self.frames += 1
                self.heard_at = time.monotonic()
                if not self.first.done():
                    self.first.set_result(None)
            elif frame == _PING and self._transport is not None:
                self._transport.write(b"\x8a\x80\x00\x00\x00\x00")

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _take(self) -> int | None:
        """The kind of the next whole frame, which is taken out of the buffer."""
        if len(self._buffer) < 2:
            return None
        start, length = 2, self._buffer[1]
        if length >= 126:
            start = 4 if length == 126 else 10
            if len(self._buffer) < start:
                return None
            length = int.from_bytes(self._buffer[2:start], "big")
        if len(self._buffer) < start + length:
            return None
        kind, self._buffer = self._buffer[0], self._buffer[start + length :]
        return kind


class _Gateway:
    """The process under measurement."""

    def __init__(self, process: asyncio.subprocess.Process, tls: ssl.SSLContext | None) -> None:
        self._process = process
        self._tls = tls
        self.address = ""

    async def ask(self, command: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(command.encode() + b"\n")
        return await self.answer()

    async def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        found: dict[str, Any] = json.loads(await self._process.stdout.readline())
        return found

    async def connect(self, count: int) -> list[_Client]:
        """Sessions that have each had their first frame."""
        loop = asyncio.get_running_loop()
        host, _, port = self.address.partition(":")
        permits = asyncio.Semaphore(_AT_ONCE)

        async def one() -> _Client:
            async with permits, asyncio.timeout(30):
                _, client = await loop.create_connection(_Client, host, int(port), ssl=self._tls)
                await client.first
                return client

        return list(await asyncio.gather(*(one() for _ in range(count))))


@asynccontextmanager
async def _gateway(pki: Path | None) -> AsyncIterator[_Gateway]:
    """A gateway, with a certificate if there is a folder to make one in."""
    tls, options = None, []
    if pki is not None:
        authority = Authority(pki)
        authority.create()
        pair = authority.server("gateway", "DNS:gateway.example")
        options = [f"--certificate={pair.certificate}", f"--key={pair.key}"]
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    async with api_server() as (server, _):
        command = [
            *(sys.executable, "-m", "bench.watching_gateway"),
            *(f"--api-server={server.url}", f"--segments={_SEGMENTS}", *options),
        ]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        found = _Gateway(process, tls)
        try:
            found.address = (await found.answer())["address"]
            yield found
        finally:
            process.kill()
            await process.wait()
