"""Pulsar's own V5 client for Java, which uses native scalable topics, in a process steered from Python.

`Traffic.java` is that process. It is compiled once a machine, against the jars of the brokers, which hold the client.
"""

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
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

_SOURCES = Path(__file__).parent
_HEAP_MB = 128
_LONGEST_LINE_BYTES = 64 * 1024 * 1024
_CALL_SECONDS = 60.0
_END_SECONDS = 20.0


class V5Error(Exception):
    """The client refused something.

    Args:
        error: full name of the exception's class in Java.
        text: what it says.
    """

    def __init__(self, error: str, text: str) -> None:
        super().__init__(f"{error}: {text}")
        self.error = error
        self.text = text

    @classmethod
    def read(cls, report: Mapping[str, Any]) -> Self:
        """Read a report that says `failed`."""
        return cls(report["error"], report["message"])


class V5Process:
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

    def listen(self, name: str, listener: Callable[[dict[str, Any]], None]) -> None:
        """Have what it tells of a producer or consumer passed on, in order.

        Args:
            name: it is started with.
            listener: takes each report.
        """
        self._listeners[name] = listener

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
