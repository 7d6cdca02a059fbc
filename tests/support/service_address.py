"""One address before several servers of which some may be dead, as a Service in Kubernetes is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from itertools import count
from typing import Self

_HOST = "127.0.0.1"
_CHUNK = 64 * 1024


class ServiceAddress:
    """Sends each connection to the next server that accepts it.

    Args:
        servers: `host:port` of those that there are at this moment.
    """

    def __init__(self, servers: Callable[[], Sequence[str]]) -> None:
        self._servers = servers
        self._turn = count()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.address = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, _HOST, 0)
        self.address = f"{_HOST}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = await self._reach()
        if server is None:
            writer.transport.abort()
            return
        server_reader, server_writer = server
        pumps = {asyncio.create_task(_pump(reader, server_writer)), asyncio.create_task(_pump(server_reader, writer))}
        self._tasks |= pumps
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for end in (writer, server_writer):
            end.transport.abort()
        await asyncio.wait(pumps)
        self._tasks -= pumps

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        servers = self._servers()
        for _ in servers:
            host, _, port = servers[next(self._turn) % len(servers)].rpartition(":")
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(host, int(port))
        return None


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
