"""Applications beside a demonstration, in a thread with an event loop of its own."""

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from statistics import median
from typing import Self

from dev.access import PulsarAccess
from dev.errors import DevError
from tests.support.application import Application

_PRODUCERS, _CONSUMERS, _PER_SECOND = 2, 2, 200.0
_START_SECONDS, _END_SECONDS = 60.0, 90.0


class DemoTraffic(ABC):
    """Numbered messages of many keys are sent and received while it is entered; afterwards each has an outcome.

    Args:
        access: the brokers.
        topic: the scalable topic.
        subscription: what the consumers share.
    """

    def __init__(self, access: PulsarAccess, topic: str, subscription: str) -> None:
        self._access = access
        self._topic = topic
        self._subscription = subscription
        self._stopping = threading.Event()
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)
        self._error: BaseException | None = None
        self._changes: list[tuple[float, float]] = []

    @property
    @abstractmethod
    def sends(self) -> list[tuple[float, float]]:
        """When each message that is stored was sent, by the monotonic clock, and how long that took, in seconds."""

    @abstractmethod
    async def _work(self) -> None:
        """Start, call `_go_on`, and end."""

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.result(_START_SECONDS)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stopping.set()
        self._thread.join(_END_SECONDS)
        if kind is None and self._error is not None:
            raise DevError(f"the traffic failed: {self._error}") from self._error

    @property
    def stored(self) -> int:
        """Messages stored so far."""
        return len(self.sends)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Remember when a change began and ended."""
        began = time.monotonic()
        yield
        self._changes.append((began, time.monotonic()))

    def stalls_ms(self) -> list[float]:
        """For each change, the longest that a message under way meanwhile took to be stored."""
        return [
            1000 * max((took for at, took in self.sends if at <= end and at + took >= begin), default=0.0)
            for begin, end in self._changes
        ]

    def ordinary_ms(self) -> float:
        """How long half of all messages took at most."""
        return 1000 * median(took for _, took in self.sends)

    async def _go_on(self) -> None:
        """Say that it has started, and wait until it is to end."""
        self._started.set_result(None)
        await asyncio.to_thread(self._stopping.wait)

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        except BaseException as error:
            self._error = error
            if not self._started.done():
                self._started.set_exception(error)


class ClassicTraffic(DemoTraffic):
    """The application of the tests, with this library; `journal` is what it saw."""

    def __init__(self, access: PulsarAccess, topic: str, subscription: str) -> None:
        super().__init__(access, topic, subscription)
        self._application = Application(
            *(access, topic, subscription), producers=_PRODUCERS, consumers=_CONSUMERS, per_second=_PER_SECOND
        )
        self.journal = self._application.journal

    @property
    def sends(self) -> list[tuple[float, float]]:
        """See `DemoTraffic.sends`."""
        return self.journal.sends

    async def _work(self) -> None:
        async with self._application:
            await self._go_on()
