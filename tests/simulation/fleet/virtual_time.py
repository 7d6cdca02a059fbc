"""An event loop whose time passes only when nobody has anything to do, and then at once.

Everything that tells the time is told this one: a story of minutes takes a moment, and takes the same course again.
"""

from __future__ import annotations

import asyncio
import random
import selectors
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, tzinfo
from typing import Any, TypeVar
from unittest import mock

from scalable_topics_operator.cluster import event_recorder, lease_record
from scalable_topics_operator.cluster.event_recorder import EventRecorder
from scalable_topics_operator.controllers import segment_operations, timestamps
from scalable_topics_operator.controllers.coordinator import Coordinator
from scalable_topics_operator.controllers.work_queue import WorkQueue

T = TypeVar("T")

START_SECONDS = 1_800_000_000.0
"""Wall clock at the beginning of every story, seconds since 1970."""

_FIRST_MONOTONIC_SECONDS = 1000.0
# Turns of the loop in which no time passes.
_MOST_TURNS = 20_000
_ASKS_DATETIME = (event_recorder, lease_record, segment_operations, timestamps)
_TAKE_A_CLOCK: tuple[Any, ...] = (WorkQueue.__init__, Coordinator.__init__, EventRecorder.__init__)


class Stalled(AssertionError):
    """Nothing will ever happen again, or something happens for ever at one moment."""


class _NothingReal(selectors.BaseSelector):
    """Waits for no file: lets the time pass that would have been waited."""

    def __init__(self, pass_seconds: Callable[[float], None]) -> None:
        self._pass_seconds = pass_seconds
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._turns = 0

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Note a file, of which nothing will ever be told."""
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = self._keys[number] = selectors.SelectorKey(fileobj, number, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Forget a file."""
        return self._keys.pop(fileobj if isinstance(fileobj, int) else fileobj.fileno())

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Let so many seconds pass."""
        if timeout is None:
            raise Stalled("nothing will happen any more")
        if timeout > 0:
            self._pass_seconds(timeout)
            self._turns = 0
        self._turns += 1
        if self._turns > _MOST_TURNS:
            raise Stalled("somebody goes on and on without a pause")
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """The files."""
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time.

    Attributes:
        wall_offset_seconds: how far the wall clock was set ahead.
    """

    def __init__(self) -> None:
        self._now_seconds = _FIRST_MONOTONIC_SECONDS
        self.wall_offset_seconds = 0.0
        super().__init__(_NothingReal(self._pass))

    def time(self) -> float:
        """Monotonic seconds."""
        return self._now_seconds

    def wall_seconds(self) -> float:
        """The wall clock, seconds since 1970."""
        return START_SECONDS + self._now_seconds - _FIRST_MONOTONIC_SECONDS + self.wall_offset_seconds

    def _pass(self, seconds: float) -> None:
        self._now_seconds += seconds

    def _write_to_self(self) -> None:
        """Nobody calls from another thread."""


def run_virtually(seed: int, story: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time; all that is random follows from `seed`."""
    loop = VirtualLoop()
    with _told(loop, seed), asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(story)


@contextmanager
def _told(loop: VirtualLoop, seed: int) -> Iterator[None]:
    chances = random.Random(f"ids {seed}")

    class VirtualDatetime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> VirtualDatetime:
            return cls.fromtimestamp(loop.wall_seconds(), tz)

    def wall_ns() -> int:
        return round(loop.wall_seconds() * 1_000_000) * 1000

    def next_id() -> uuid.UUID:
        return uuid.UUID(int=chances.getrandbits(128), version=4)

    before = random.getstate()
    random.seed(seed)
    patches = [
        mock.patch.object(time, "monotonic", loop.time),
        mock.patch.object(time, "time", loop.wall_seconds),
        mock.patch.object(time, "time_ns", wall_ns),
        mock.patch.object(uuid, "uuid4", next_id),
        *(mock.patch.object(module, "datetime", VirtualDatetime) for module in _ASKS_DATETIME),
        *(patch for function in _TAKE_A_CLOCK for patch in _with_clock(function, loop)),
    ]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in reversed(patches):
            patch.stop()
        random.setstate(before)


def _with_clock(function: Any, loop: VirtualLoop) -> Iterator[Any]:
    """What replaces the clock that a function takes unless it is given another one."""
    real = time.monotonic
    if function.__defaults__:
        told = tuple(loop.time if value is real else value for value in function.__defaults__)
        yield mock.patch.object(function, "__defaults__", told)
    if function.__kwdefaults__:
        named = {name: loop.time if value is real else value for name, value in function.__kwdefaults__.items()}
        yield mock.patch.object(function, "__kwdefaults__", named)
