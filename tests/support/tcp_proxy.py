"""A TCP proxy before the brokers, for connections that stall, break or cannot be made.

Brokers tell clients an address to connect to; the proxy puts its own in its place, which is as long, so that everything
goes through it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Self
from urllib.parse import urlsplit

_HOST = "127.0.0.1"
_CHUNK = 64 * 1024


class TcpProxy:
    """Stands before one broker.

    Args:
        service_url: the broker's `pulsar://` address.
    """

    def __init__(self, service_url: str) -> None:
        parts = urlsplit(service_url)
        self._target = (parts.hostname or _HOST, int(parts.port or 0))
        self._server: asyncio.Server | None = None
        self._port = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._requests_flow = asyncio.Event()
        self._replies_flow = asyncio.Event()
        self._requests_flow.set()
        self._replies_flow.set()

    async def __aenter__(self) -> Self:
        # As many digits as the broker's port, so that its address can be replaced in the stream.
        digits = len(str(self._target[1]))
        for _ in range(100):
            self._port = random.randrange(10 ** (digits - 1), min(10**digits, 65_000))
            with contextlib.suppress(OSError):
                await self.accept()
                return self
        raise RuntimeError("no free port")

    async def __aexit__(self, *_: object) -> None:
        await self.refuse()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def service_url(self) -> str:
        """The address for clients."""
        return f"pulsar://{_HOST}:{self._port}"

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._writers) // 2

    async def accept(self) -> None:
        """Accept connections."""
        if self._server is None:
            self._server = await asyncio.start_server(self._connected, _HOST, self._port)

    async def refuse(self) -> None:
        """Accept no more connections, and break those there are."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()

    def cut(self) -> None:
        """Break all connections."""
        for writer in self._writers:
            writer.transport.abort()

    def stall(self, *, requests: bool = True, replies: bool = True) -> None:
        """Hold back what clients send, what brokers answer, or both; connections stay."""
        if requests:
            self._requests_flow.clear()
        if replies:
            self._replies_flow.clear()

    def flow(self) -> None:
        """Hold nothing back any more."""
        self._requests_flow.set()
        self._replies_flow.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            broker_reader, broker_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, broker_writer}
        there = asyncio.create_task(self._pump(reader, broker_writer, self._requests_flow))
        back = asyncio.create_task(self._pump(broker_reader, writer, self._replies_flow))
        self._tasks |= {there, back}
        await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
        for end in (writer, broker_writer):
            end.transport.abort()
        for task in (there, back):
            task.cancel()
        await asyncio.gather(there, back, return_exceptions=True)
        self._tasks -= {there, back}
        self._writers -= {writer, broker_writer}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flows: asyncio.Event) -> None:
        told, own = f"{_HOST}:{self._target[1]}".encode(), f"{_HOST}:{self._port}".encode()
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(_CHUNK):
                await flows.wait()
                writer.write(chunk.replace(told, own))
                await writer.drain()
