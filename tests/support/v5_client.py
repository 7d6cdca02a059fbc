"""Pulsar's own V5 client for Java: the reference for native scalable topics, in a process that a test steers.

`tests/support/v5/Traffic.java` is that process. It is compiled once a machine, against the jars of the brokers, which
hold the client.
"""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Self

from dev import prerequisites
from dev.artifacts import native_pulsar_jars
from dev.cache import content_key, ensure
from dev.jvm import Jvm
from dev.steps import run_step
from tests.support.consumption import Kind, Receipt
from tests.support.guarantee_checker import Latencies
from tests.support.v5_reports import Received, Sent, V5Error, acknowledge, read_latencies, read_received

_SOURCES = Path(__file__).parent / "v5"
_HEAP_MB = 128
_LONGEST_LINE_BYTES = 64 * 1024 * 1024
_CALL_SECONDS = 60.0
_END_SECONDS = 20.0


class V5Client:
    """One process with one client. Made by `connected`; every wait has an end, and its errors name the log."""

    def __init__(self, process: Process, log_file: Path) -> None:
        self._process = process
        self._log_file = log_file
        self._ids = count()
        self._replies: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._listeners: dict[str, Callable[[dict[str, Any]], None]] = {}
        self._news = asyncio.Event()
        self._ended = False
        self._reading = asyncio.create_task(self._read())

    @classmethod
    @asynccontextmanager
    async def connected(cls, service_url: str, token_file: Path, directory: Path) -> AsyncIterator[Self]:
        """Start a process and have it connect; what it has started ends with it.

        Args:
            service_url: of the brokers.
            token_file: who it is.
            directory: for its log, `v5-client.log`, and temporary files.
        """
        jvm = await asyncio.to_thread(_prepare, directory)
        log_file = directory / "v5-client.log"
        with log_file.open("ab") as log:
            command = jvm.command("Traffic", heap_mb=_HEAP_MB)
            process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=log, limit=_LONGEST_LINE_BYTES
            )
        client = cls(process, log_file)
        try:
            await client.call("connect", serviceUrl=service_url, tokenFile=str(token_file))
            yield client
        finally:
            await client.end()

    async def produce(self, topic: str, name: str, keys: Sequence[str | None]) -> list[int]:
        """Send a message to each of these keys, many at a time; answers the segment of each.

        Args:
            topic: `topic://` and the name of a scalable topic.
            name: of the list, as its messages tell it; those of each key are numbered from 0.
            keys: None for a message without a key, of which they are numbered together.

        Raises:
            V5Error: one of them failed.
        """
        reply = await self.call("produce", topic=topic, name=name, keys=list(keys))
        segments: list[int] = reply["segments"]
        return segments

    async def producer(
        self,
        topic: str,
        name: str,
        keys: Sequence[str],
        *,
        total: int,
        per_second: float = 0.0,
        producer_name: str = "",
    ) -> V5Producer:
        """Start a producer that sends to the keys in turn, one message after the other.

        Args:
            topic: `topic://` and the name of a scalable topic.
            name: as its messages tell it; no other of this client has it.
            keys: the messages of each are numbered from 0.
            total: it ends after so many.
            per_second: messages; 0 for as many as it can.
            producer_name: as brokers know it; empty to have it named by them.
        """
        producer = V5Producer(self, name)
        self._listeners[name] = producer.hear
        told = {"total": total, "perSecond": per_second, "producerName": producer_name}
        await self.call("send", topic=topic, name=name, keys=list(keys), **told)
        return producer

    async def consumer(self, kind: Kind, topic: str, subscription: str, name: str) -> V5Consumer:
        """Start a stream or a queue consumer, from the earliest message on if the subscription is new.

        Args:
            kind: a stream consumer acknowledges up to what it has received, a queue consumer each message.
            topic: `topic://` and the name of a scalable topic.
            subscription: its name.
            name: of the consumer; no other of this client has it.
        """
        consumer = V5Consumer(self, name)
        self._listeners[name] = consumer.hear
        await self.call(kind.value, topic=topic, subscription=subscription, name=name)
        return consumer

    async def call(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Have it do something, and wait until it is done; answers the report. Raises V5Error."""
        if self._ended or self._process.stdin is None:
            raise self._died()
        identity = f"call-{next(self._ids)}"
        reply = self._replies[identity] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(json.dumps({"id": identity, "do": do, **arguments}).encode() + b"\n")
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                await self._process.stdin.drain()
                report: dict[str, Any] = await reply
        except ConnectionError:
            raise self._died() from None
        except TimeoutError:
            raise AssertionError(f"no answer to {do} in {_CALL_SECONDS:.0f} s; its log is {self._log_file}") from None
        finally:
            self._replies.pop(identity, None)
        if report["is"] == "failed":
            raise V5Error.read(report)
        return report

    async def until(self, holds: Callable[[], bool], what: Callable[[], str], within_seconds: float) -> None:
        """Wait until something holds, looking after each report. Raises AssertionError that says what there is."""
        try:
            async with asyncio.timeout(within_seconds):
                while not holds() and not self._ended:
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"{what()} after {within_seconds:.0f} s; its log is {self._log_file}") from None
        if not holds():
            raise self._died()

    async def _read(self) -> None:
        """Pass on what it tells, until it ends."""
        try:
            while self._process.stdout is not None and (line := await self._process.stdout.readline()):
                report = json.loads(line)
                if (reply := self._replies.get(report["of"])) and not reply.done():
                    reply.set_result(report)
                elif listener := self._listeners.get(report["of"]):
                    listener(report)
                self._wake()
        finally:
            self._ended = True
            self._wake()
            for reply in self._replies.values():
                if not reply.done():
                    reply.set_exception(self._died())

    def _wake(self) -> None:
        """Let all who wait look again."""
        self._news.set()
        self._news = asyncio.Event()

    def _died(self) -> RuntimeError:
        return RuntimeError(f"the process of the V5 client has ended; its log is {self._log_file}")

    async def end(self) -> None:
        """Close its input, which ends it; kill it if that does not."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reading


class V5Producer:
    """A producer that sends one message after the other; made by `V5Client.producer`."""

    def __init__(self, client: V5Client, name: str) -> None:
        self._client = client
        self.name = name
        self._sent: list[Sent] = []
        self._failure: V5Error | None = None
        self._latencies: Latencies | None = None

    @property
    def sent(self) -> tuple[Sent, ...]:
        """What it was told is stored, in order."""
        return tuple(self._sent)

    async def until(self, more: int, within_seconds: float = 60.0) -> None:
        """Wait until so many more are stored. Raises V5Error if one fails, AssertionError if it ends before."""
        wanted = len(self._sent) + more
        await self._client.until(
            lambda: len(self._sent) >= wanted or self._latencies is not None,
            lambda: f"{self.name} has sent {len(self._sent)} of {wanted}",
            within_seconds,
        )
        self._raise_failure()
        assert len(self._sent) >= wanted, f"{self.name} has ended with {len(self._sent)} of {wanted} messages"

    async def ended(self, within_seconds: float = 120.0) -> Latencies:
        """Wait until it has sent all; answers how long sends took. Raises V5Error if one has failed."""
        await self._client.until(
            lambda: self._latencies is not None, lambda: f"{self.name} has sent {len(self._sent)}", within_seconds
        )
        self._raise_failure()
        assert self._latencies is not None
        return self._latencies

    async def stop(self) -> Latencies:
        """Send no more; answers how long sends took. Raises V5Error if one has failed."""
        await self._client.call("stop", name=self.name)
        return await self.ended()

    def hear(self, report: dict[str, Any]) -> None:
        """Note a report."""
        match report["is"]:
            case "sent":
                self._sent.append(Sent.read(report))
            case "failed":
                self._failure = V5Error.read(report)
            case "ended":
                self._latencies = read_latencies(report)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


class V5Consumer:
    """A stream or queue consumer; made by `V5Client.consumer`."""

    def __init__(self, client: V5Client, name: str) -> None:
        self._client = client
        self.name = name
        self._received: list[Received] = []
        self._acknowledged = 0
        self._failure: V5Error | None = None

    @property
    def received(self) -> tuple[Received, ...]:
        """What it has received, in order."""
        return tuple(self._received)

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The same for the judges. Raises ValueError if a message has no key."""
        return tuple(one.receipt(self.name) for one in self._received)

    async def until(self, total: int, within_seconds: float = 60.0) -> None:
        """Wait until so many messages have been received, and acknowledged. Raises V5Error if it has failed."""
        await self._client.until(
            lambda: self._acknowledged >= total or self._failure is not None,
            lambda: f"{self.name} has received {len(self._received)} of {total}",
            within_seconds,
        )
        self._raise_failure()

    async def stop(self) -> tuple[Received, ...]:
        """Close it; answers all it has received. Raises V5Error if it has failed."""
        await self._client.call("stop", name=self.name)
        self._raise_failure()
        return self.received

    def hear(self, report: dict[str, Any]) -> None:
        """Note a report."""
        match report["is"]:
            case "received":
                self._received.extend(read_received(report))
            case "acknowledged":
                acknowledge(self._received, report)
                self._acknowledged += report["count"]
            case "failed":
                self._failure = V5Error.read(report)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


def _prepare(directory: Path) -> Jvm:
    """Compile what runs there, if this was not done yet, and write what it needs."""
    java, jars = prerequisites.native_java(), native_pulsar_jars()
    sources = sorted(_SOURCES.glob("*.java"))
    compiler = java.executable.resolve().with_name("javac")
    key = content_key(sources, java.description, str(jars))
    classes = ensure("v5-traffic", key, partial(_compile, compiler, jars, sources))
    directory.mkdir(parents=True, exist_ok=True)
    jvm = Jvm(java.executable, jars, directory, classes=classes)
    jvm.prepare()
    return jvm


def _compile(compiler: Path, jars: Path, sources: Sequence[Path], into: Path) -> None:
    command = [str(compiler), "-proc:none", "-cp", f"{jars}/*", "-d", str(into), *map(str, sources)]
    run_step("v5-traffic", command, directory=into)
