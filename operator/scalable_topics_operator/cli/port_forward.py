"""A port of a pod on loopback, carried by the API server, as `kubectl port-forward` does it.

Not the API server's `proxy` of pods and Services: it takes the Authorization header for its own and passes none on, and
the gateway knows its callers by theirs.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from scalable_topics_operator.cli.api_server import PODS, ApiServer
from scalable_topics_operator.cluster.kube_errors import KubeError, KubeUnavailable

# Each port has two channels; both begin with the number of the port.
_PROTOCOL = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1
_CHUNK_BYTES = 64 * 1024


class Forwarding:
    """Connections into one pod.

    Args:
        port: on loopback, which leads to the pod's.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.error: KubeError | None = None
        """Why the last connection did not come about, or broke off."""


@asynccontextmanager
async def forwarded(kube: ApiServer, namespace: str, pod: str, port: int) -> AsyncIterator[Forwarding]:
    """Connections to a port of a pod while it lasts. Whoever fails to connect finds the reason in `error`.

    Args:
        kube: the API server.
        namespace: of the pod.
        pod: its name.
        port: that the pod listens on.
    """
    forwarding = Forwarding(0)
    open_ones: set[asyncio.Task[None]] = set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_ones.add(task)
        try:
            await _carry(kube, namespace, pod, port, reader, writer)
        except KubeError as error:
            forwarding.error = error
        except asyncio.CancelledError:
            # It ends with the forwarding; asyncio would tell of it on stderr, as of a fault.
            return
        finally:
            open_ones.discard(task)
            writer.close()

    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    forwarding.port = server.sockets[0].getsockname()[1]
    try:
        yield forwarding
    finally:
        server.close()
        for task in open_ones:
            task.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)
        await server.wait_closed()


async def _carry(
    kube: ApiServer,
    namespace: str,
    pod: str,
    port: int,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    what = f"forward port {port} of pod {namespace}/{pod}"
    path = PODS.path(namespace, pod, "portforward")
    async with kube.web_socket(path, {"ports": str(port)}, _PROTOCOL, what) as socket:
        sending = asyncio.create_task(_send(reader, socket))
        try:
            await _receive(socket, writer, port, what)
        finally:
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError, aiohttp.ClientError):
                await sending


async def _send(reader: asyncio.StreamReader, socket: aiohttp.ClientWebSocketResponse) -> None:
    while chunk := await reader.read(_CHUNK_BYTES):
        await socket.send_bytes(bytes([_DATA]) + chunk)
    await socket.close()


async def _receive(socket: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter, port: int, what: str) -> None:
    begun: set[int] = set()
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            continue
        channel, content = message.data[0], message.data[1:]
        if channel not in begun:
            if content != struct.pack("<H", port):
                raise KubeUnavailable(what, 0, "the API server speaks another protocol")
            begun.add(channel)
        elif channel == _ERROR:
            raise KubeUnavailable(what, 0, content.decode(errors="replace").strip() or "broke off")
        elif channel == _DATA:
            writer.write(content)
            await writer.drain()
