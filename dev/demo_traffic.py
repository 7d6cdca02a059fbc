"""The application of the tests, beside the demonstration, in a thread with an event loop of its own."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from statistics import median
from typing import Self

from dev.access import PulsarAccess
from dev.errors import DevError
from tests.support.application import Application, Journal

_PRODUCERS, _CONSUMERS, _PER_SECOND = 2, 2, 200.0
_START_SECONDS, _END_SECONDS = 30.0, 90.0


class DemoTraffic:
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
        self._started: Future[Journal] = Future()
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)
        self._error: BaseException | None = None
        self._changes: list[tuple[float, float]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        self.journal = self._started.result(_START_SECONDS)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stopping.set()
        self._thread.join(_END_SECONDS)
        if kind is None and self._error is not None:
            raise DevError(f"the traffic failed: {self._error}") from self._error

    @property
    def stored(self) -> int:
        """Messages stored so far."""
        return len(self.journal.sends)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Remember when a change began and ended."""
        began = time.monotonic()
        yield
        self._changes.append((began, time.monotonic()))

    def stalls_ms(self) -> list[float]:
        """For each change, the longest that a message under way meanwhile took to be stored."""
        return [self.journal.longest_ms(begin, end) for begin, end in self._changes]

    def ordinary_ms(self) -> float:
        """How long half of all messages took at most."""
        return 1000 * median(took for _, took in self.journal.sends)

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        except BaseException as error:
            self._error = error
            if not self._started.done():
                self._started.set_exception(error)

    async def _work(self) -> None:
        application = Application(
            self._access,
            self._topic,
            self._subscription,
            producers=_PRODUCERS,
            consumers=_CONSUMERS,
            per_second=_PER_SECOND,
        )
        async with application:
            self._started.set_result(application.journal)
            await asyncio.to_thread(self._stopping.wait)
