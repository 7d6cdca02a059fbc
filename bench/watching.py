"""Watch sessions: the memory of idle ones, and how soon the last of many has a change."""

import asyncio
import json
import resource
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.measurement import Better, Group, Measured, Measurement, Target
from bench.section import Run, Section
from dev.pki import Authority
from tests.unit.gateway.api_server import GOOD, api_server

_PATH = "/admin/v2/scalable/acme/shop/orders/watch"
_SEGMENTS = 8
_AT_ONCE = 50
_IDLE_SECONDS = 15
_COMMITS = 10
_FEW, _MANY = 1_000, 10_000
_TARGET = Target("the last of 1,000 watch sessions has a change within 100 ms", 100)
_PING, _TEXT = 0x89, 0x81
_KIBIBYTE = 1 << 10


@dataclass(frozen=True, slots=True)
class _Case:
    """So many sessions, with TLS or without."""

    sessions: int
    has_tls: bool
    target: Target | None = None

    @property
    def name(self) -> str:
        return f"{self.sessions:,} sessions{', TLS' if self.has_tls else ''}"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one gateway showed.

    Args:
        session_kibibytes: of resident memory for each session.
        idle_cores: processor time by time while sessions are idle.
        delays_ms: of each commit, until the last session has its frame.
    """

    session_kibibytes: float
    idle_cores: float
    delays_ms: tuple[float, ...]


async def _measure(run: Run) -> Measured:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    few = run.size(_FEW, 20)
    cases = (_Case(few, False, _TARGET), _Case(run.size(_MANY, 50), False), _Case(few, True))
    idle_seconds = run.size(_IDLE_SECONDS, 1)
    seen: dict[_Case, list[_Seen]] = {case: [] for case in cases}
    for _ in range(run.rounds):
        for case in cases:
            with tempfile.TemporaryDirectory() as folder:
                seen[case].append(
                    await _gateway_seen(case.sessions, Path(folder) if case.has_tls else None, idle_seconds)
                )

    def rows(unit: str, value: Callable[[_Seen], float], *, is_aimed: bool = False) -> tuple[Measurement, ...]:
        return tuple(
            Measurement(one.name, unit, tuple(map(value, found)), Better.LOWER, one.target if is_aimed else None)
            for one, found in seen.items()
        )

    delays = rows("ms", lambda one: statistics.median(one.delays_ms), is_aimed=True)
    longest = rows("ms", lambda one: max(one.delays_ms))
    memory = rows("KiB", lambda one: one.session_kibibytes)
    idle = rows("cores", lambda one: one.idle_cores)
    base = cases[0].name
    return Measured(
        (
            Group(f"From a commit to the last session's frame, median of {_COMMITS}", delays, reference=base),
            Group(f"The longest of the {_COMMITS}", longest, reference=base),
            Group("Resident memory of a session", memory, reference=base),
            Group("Processor time while idle", idle, reference=base),
        )
    )


SECTION = Section(
    "watching",
    "Watch sessions",
    f"A gateway in a process of its own, and watchers of one topic of {_SEGMENTS} segments in another: what an idle "
    "session costs, heartbeats included, and how soon the last of all watchers has a change, from when the gateway's "
    "cache was told of it; the watchers' own work is part of that time.",
    _measure,
)


async def _gateway_seen(sessions: int, pki: Path | None, idle_seconds: float) -> _Seen:
    async with _gateway(pki) as gateway:
        before = await gateway.ask("usage")
        clients = await gateway.connect(sessions)
        started = await gateway.ask("usage")
        # What idle sessions cost is what they cost over a time.
        await asyncio.sleep(idle_seconds)
        after = await gateway.ask("usage")
        assert not any(client.lost for client in clients), "sessions were dropped"
        delays_ms = tuple([1000 * await _commit(gateway, clients) for _ in range(_COMMITS)])
        for client in clients:
            client.close()
    each = (after["resident"] - before["resident"]) / sessions / _KIBIBYTE
    return _Seen(each, (after["cpu"] - started["cpu"]) / idle_seconds, delays_ms)


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
