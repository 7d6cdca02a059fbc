"""The admin API asked without any of the code under test, and ordinary clients: what tests check effects with."""

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pulsar

from dev.access import PulsarAccess
from scalable_topics_operator.backends.admin import (
    AdminHttp,
    Credentials,
    FixedCredentials,
    HttpSettings,
    PulsarAdmin,
    Token,
)

_NO_REDIRECT = urllib.request.build_opener(
    type("_Refuse", (urllib.request.HTTPRedirectHandler,), {"redirect_request": lambda *_: None})
)


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: Any


@dataclass(frozen=True, slots=True)
class PlainHttp:
    """Calls paths under `/admin/v2` with one token, going along with every redirect."""

    admin_url: str
    token: str = field(repr=False)

    async def call(self, method: str, path: str, body: Any = None) -> Reply:
        return await asyncio.to_thread(self._call, method, path, body)

    async def get(self, path: str) -> Any:
        reply = await self.call("GET", path)
        assert reply.status in (200, 204), (path, reply)
        return reply.body

    async def status(self, path: str) -> int:
        return (await self.call("GET", path)).status

    async def do(self, method: str, path: str, body: Any = None) -> None:
        reply = await self.call(method, path, body)
        assert reply.status in (200, 204), (method, path, reply)

    def _call(self, method: str, path: str, body: Any) -> Reply:
        url = f"{self.admin_url}/admin/v2/{path}"
        for _ in range(6):
            request = urllib.request.Request(url, method=method, headers={"Authorization": f"Bearer {self.token}"})
            if body is not None:
                request.data = json.dumps(body).encode()
                request.add_header("Content-Type", "application/json")
            try:
                with _NO_REDIRECT.open(request, timeout=15) as response:
                    return Reply(response.status, _parsed(response.read()))
            except urllib.error.HTTPError as error:
                if error.code != 307:
                    return Reply(error.code, _parsed(error.read()))
                url = error.headers["Location"]
        raise AssertionError(f"redirected for ever: {url}")


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError:
        return body.decode()


def topic_at(name: str, *rest: str) -> str:
    """Path of a `persistent://` name."""
    return "/".join(["persistent", *(quote(part, safe="") for part in (*name.split("://")[1].split("/"), *rest))])


async def eventually(read: Callable[[], Awaitable[Any]], accept: Callable[[Any], bool], seconds: float = 30) -> Any:
    """Read again and again until `accept` holds; the value that did."""
    deadline = time.monotonic() + seconds
    while not accept(value := await read()):
        assert time.monotonic() < deadline, f"still {value!r} after {seconds} s"
        await asyncio.sleep(0.05)
    return value


@dataclass(slots=True)
class Clients:
    """Ordinary Pulsar clients, called off the event loop."""

    service_url: str
    token: str
    client: pulsar.Client | None = None

    def _open(self) -> pulsar.Client:
        if self.client is None:
            self.client = pulsar.Client(
                self.service_url,
                authentication=pulsar.AuthenticationToken(self.token),
                operation_timeout_seconds=15,
                logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
            )
        return self.client

    async def producer(self, topic: str, **options: Any) -> pulsar.Producer:
        return await asyncio.to_thread(lambda: self._open().create_producer(topic, **options))

    async def consumer(self, topic: str, subscription: str, **options: Any) -> pulsar.Consumer:
        return await asyncio.to_thread(lambda: self._open().subscribe(topic, subscription, **options))

    async def reader(self, topic: str) -> pulsar.Reader:
        return await asyncio.to_thread(lambda: self._open().create_reader(topic, pulsar.MessageId.earliest))

    async def latest_reader(self, topic: str) -> pulsar.Reader:
        """A Reader that begins with the latest message, as clients of a layout topic do."""
        reader = await asyncio.to_thread(
            lambda: self._open().create_reader(topic, pulsar.MessageId.latest, start_message_id_inclusive=True)
        )
        # Only this call makes pulsar-client go back to the latest message instead of waiting for the next one.
        await asyncio.to_thread(reader.has_message_available)
        return reader

    async def send(self, topic: str, *payloads: str) -> None:
        producer = await self.producer(topic, batching_enabled=False)
        for payload in payloads:
            await asyncio.to_thread(producer.send, payload.encode(), partition_key=payload)
        await asyncio.to_thread(producer.close)

    async def receive_all(self, topic: str, subscription: str, count: int) -> list[str]:
        """Every message the subscription's cursor still has, acknowledged: so many, and none in the second after."""
        consumer = await self.consumer(topic, subscription)
        found: list[str] = []
        while True:
            try:
                message = await asyncio.to_thread(consumer.receive, 20_000 if len(found) < count else 1000)
            except pulsar.Timeout:
                break
            found.append(message.data().decode())
            await asyncio.to_thread(consumer.acknowledge, message)
        await asyncio.to_thread(consumer.close)
        return found

    def close(self) -> None:
        if self.client is not None:
            self.client.close()


def admin_for(pulsar: PulsarAccess, token: str, observed: list[tuple[str, str, float]] | None = None) -> PulsarAdmin:
    """The client under test. Who may not list brokers needs them as trusted ones, if there are several."""
    trusted = tuple(url.removeprefix("http://") for url in pulsar.broker_admin_urls)
    return PulsarAdmin(
        AdminHttp(
            HttpSettings(pulsar.admin_url, trusted_brokers=() if token == pulsar.superuser_token else trusted),
            FixedCredentials(Credentials(Token(token))),
            observe=None if observed is None else lambda *one: observed.append(one),
        )
    )
