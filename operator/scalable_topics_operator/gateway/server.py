"""The gateway's server: its port, its certificate, its beginning and its end."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import logging
import ssl
from asyncio import sslproto
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from aiohttp import web

from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.peers import make_address
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.gateway.access import Access
from scalable_topics_operator.gateway.admission import Admission
from scalable_topics_operator.gateway.app import make_app
from scalable_topics_operator.gateway.brokers import Brokers
from scalable_topics_operator.gateway.forwarding import Forwarding
from scalable_topics_operator.gateway.mappings import Mappings
from scalable_topics_operator.gateway.ordinary_topics import OrdinaryTopics
from scalable_topics_operator.gateway.ordinary_watch import OrdinaryWatch
from scalable_topics_operator.gateway.parts import GatewayParts, RouteMaker
from scalable_topics_operator.gateway.peer_transport import PeerTransport
from scalable_topics_operator.gateway.pulsar_tokens import PulsarTokens
from scalable_topics_operator.gateway.session_places import SessionLimits, SessionPlaces
from scalable_topics_operator.gateway.sessions import Sessions
from scalable_topics_operator.gateway.topic_directory import TopicDirectory
from scalable_topics_operator.gateway.views import Connections, Leaders
from scalable_topics_operator.gateway.watch_hub import WatchHub
from scalable_topics_operator.gateway.watch_sessions import WatchSessions
from scalable_topics_operator.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

# Requests under way are short, and whoever waits for one longer asks another replica.
_SHUTDOWN_SECONDS = 0.5
_GOODBYE_SECONDS = 1.0
# asyncio gives each TLS connection 256 KiB to read into, which ten thousand idle sessions would pay for with 2.5 GiB.
_TLS_BUFFER_BYTES = 16 * 1024
# Percent-encoded, a character takes up to twelve bytes; with less than this, names of proper length would not fit.
_REQUEST_LINE_BYTES = 64 * 1024
_MS = 1000


class GatewayUnusable(Exception):
    """The gateway cannot be served as it is set; the message says why."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What the gateway shows, and the other replicas with it.

    Args:
        context: for the server.
        fingerprint: SHA-256 of the certificate itself, by which replicas know each other.
    """

    context: ssl.SSLContext
    fingerprint: bytes


def load_certificate(certificate_file: str, key_file: str) -> Certificate | None:
    """Read PEM files; None if none are named. Raises GatewayUnusable."""
    if not certificate_file and not key_file:
        return None
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate_file, key_file or None)
        pem, end, _ = Path(certificate_file).read_text().partition(ssl.PEM_FOOTER)
        first = pem[pem.index(ssl.PEM_HEADER) :] + end
        return Certificate(context, hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).digest())
    except (OSError, ValueError) as error:
        raise GatewayUnusable(
            f"the gateway's certificate {certificate_file} or its key {key_file} cannot be read: {error}"
        ) from error


class Gateway:
    """Serves from entering the context until leaving it.

    Args:
        host: address to listen at; of several, with commas between, the first is for other replicas.
        port: its port; 0 takes a free one.
        address: host and port at which other replicas reach it; found from the above if empty.
        certificate: for TLS; None for plain HTTP.
        kube: judges callers.
        cache: the objects.
        connections: the topics' Pulsar clusters.
        leaders: who leads what.
        transport: reaches other replicas.
        metrics: count requests and sessions.
        hold_seconds: how long producers hold after an announcement (R13).
        limits: how many sessions there may be.
        routes: make what is served, beside watch sessions, out of what all of it shares.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int,
        address: str,
        certificate: Certificate | None,
        kube: KubeClient,
        cache: ObjectCache,
        connections: Connections,
        leaders: Leaders,
        transport: PeerTransport,
        metrics: Metrics,
        hold_seconds: float,
        limits: SessionLimits,
        routes: Iterable[RouteMaker],
    ) -> None:
        self._host, *self._more_hosts = host.split(",")
        self._port = port
        self._certificate = certificate
        if certificate is not None:
            sslproto.SSLProtocol.max_size = _TLS_BUFFER_BYTES
        self._access = Access(kube, PulsarTokens(cache, connections))
        places = SessionPlaces(limits, metrics)
        self._forwarding = Forwarding(transport, places, metrics)
        self._sessions = Sessions(self._access, places, metrics)
        self._hub = WatchHub(cache, leaders, connections, round(hold_seconds * _MS))
        self._endings: list[Callable[[], Awaitable[None]]] = [self._forwarding.close, self._sessions.close]
        directory = TopicDirectory(cache)
        ordinary = OrdinaryTopics(self._access, Mappings(cache), Brokers(connections))
        self._ordinary_watch = OrdinaryWatch(cache, ordinary, self._hub, round(hold_seconds * _MS))
        parts = GatewayParts(
            admission=Admission(directory, self._access),
            leaders=leaders,
            forwarding=self._forwarding,
            sessions=self._sessions,
            places=places,
            endings=self._endings,
            metrics=metrics,
            access=self._access,
            directory=directory,
            ordinary=ordinary,
        )
        makers = (WatchSessions(self._hub, self._ordinary_watch).routes, *routes)
        app = make_app([route for make in makers for route in make(parts)], metrics)
        app.on_shutdown.append(self._send_away)
        self.application = app
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS, max_line_size=_REQUEST_LINE_BYTES
        )
        self._tasks: list[asyncio.Task[None]] = []
        self.address = address

    async def __aenter__(self) -> Self:
        """Begin to listen. Raises GatewayUnusable."""
        await self._runner.setup()
        context = self._certificate.context if self._certificate is not None else None
        port = self._port
        for host in (self._host, *self._more_hosts):
            try:
                await web.TCPSite(self._runner, host, port, ssl_context=context).start()
            except OSError as error:
                await self._runner.cleanup()
                raise GatewayUnusable(f"the gateway cannot listen at {host}:{port}: {error}") from error
            port = self._runner.addresses[0][1]
        if not self.address and _is_any(self._host):
            logger.warning("other replicas cannot reach this one: set --gateway-address to this pod's address")
        elif not self.address:
            self.address = make_address(self._host, port)
        self._tasks = [asyncio.create_task(self._sessions.run()), asyncio.create_task(self._hub.run())]
        for task in self._tasks:
            task.add_done_callback(_note_end)
        logger.info("gateway on %s", make_address(self._host, port))
        return self

    async def __aexit__(self, *_: object) -> None:
        """End, with what is under way."""
        for task in self._tasks:
            task.cancel()
        await self._runner.cleanup()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._ordinary_watch.close()
        self._hub.close()
        await self._access.close()

    async def _send_away(self, _: web.Application) -> None:
        async def end(ending: Callable[[], Awaitable[None]]) -> None:
            await ending()

        await asyncio.wait([asyncio.create_task(end(ending)) for ending in self._endings], timeout=_GOODBYE_SECONDS)


def _note_end(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        logger.error("sessions are not looked after any more", exc_info=task.exception())


def _is_any(host: str) -> bool:
    """Whether listening there is listening everywhere, so that it is no address to be reached at."""
    try:
        return not host or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
