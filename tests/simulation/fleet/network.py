"""What lies between replicas and servers: every request takes its time, and may go wrong in every way a request can."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol, TypeVar

from tests.simulation.fleet.virtual_time import VirtualLoop

T = TypeVar("T")

_FAST_SECONDS = (0.001, 0.02)


class Server(Enum):
    """Who is asked."""

    API_SERVER = "api server"
    BROKERS = "brokers"


class Fate(Enum):
    """What becomes of a request."""

    SLOW = auto()
    """It is answered, but not soon."""
    LOST = auto()
    """It never arrives."""
    REPLY_LOST = auto()
    """It takes effect, and nobody is told."""
    LATE = auto()
    """It takes effect long after its sender has given up."""
    UNAVAILABLE = auto()
    """It is refused at once with a 503 or a closed connection, without effect."""
    THROTTLED = auto()
    """It is refused at once with a 429, without effect."""
    BROKEN = auto()
    """It takes effect and is answered with a 500."""
    SENDER_DIES = auto()
    """The replica dies once it is sent."""
    SENDER_DIES_FIRST = auto()
    """The replica dies before it is sent."""
    SENDER_SLEEPS = auto()
    """The replica is stopped right before it is sent, after it has made sure that it may, and goes on later."""
    SENDER_SLEEPS_AFTER = auto()
    """The replica is stopped once it is sent, and reads the answer later."""


_WAY_SECONDS: Mapping[Fate | None, tuple[float, float]] = {Fate.SLOW: (0.5, 9.0), Fate.LATE: (5.0, 120.0)}


class NoAnswer(Exception):
    """A request that nobody answered, or that was answered with an error.

    Args:
        status: HTTP status, 0 for none.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Sender(Protocol):
    """A replica, as the network sees it."""

    name: str

    @property
    def is_stopped(self) -> bool:
        """Whether it is being kept from running."""

    async def awake(self) -> None:
        """Wait while it is stopped. Raises CancelledError once it is dead."""

    def die(self) -> None:
        """Let it die now."""

    def sleep(self, seconds: float) -> None:
        """Stop it for so long."""


@dataclass(slots=True)
class Network:
    """All connections.

    Args:
        loop: the time.
        chances: draws everything.
        rate: chance that a request meets a fate, 0..1.
        fates: those that it may meet.
        budget: how many requests still may.
    """

    loop: VirtualLoop
    chances: random.Random
    rate: float = 0.0
    fates: tuple[Fate, ...] = ()
    budget: int = 0
    _cut_until: dict[tuple[str, Server], float] = field(default_factory=dict)

    def cut(self, sender: str, server: Server, seconds: float) -> None:
        """Let nothing through between a replica, or all (`*`), and a server for so long."""
        self._cut_until[sender, server] = self.loop.time() + seconds

    def is_cut(self, sender: str, server: Server) -> bool:
        """Whether nothing gets through."""
        now = self.loop.time()
        return any(self._cut_until.get((one, server), 0.0) > now for one in (sender, "*"))

    def heal(self) -> None:
        """Nothing goes wrong any more, but for what is under way."""
        self._cut_until.clear()
        self.budget = 0

    async def exchange(
        self, sender: Sender, server: Server, effect: Callable[[bool], T], *, timeout_seconds: float, note: str
    ) -> T:
        """Carry one request to a server and its answer back.

        Args:
            sender: who asks.
            server: who is asked.
            effect: what the request does when it arrives; told whether its sender has given up.
            timeout_seconds: how long the sender waits.
            note: for the trace.

        Raises NoAnswer, or what the effect raises.
        """
        await sender.awake()
        fate = self._draw()
        if fate is Fate.SENDER_SLEEPS:
            sender.sleep(self.chances.uniform(1.0, 40.0))
            await sender.awake()
        if fate is Fate.SENDER_DIES_FIRST:
            sender.die()
            await sender.awake()
        answered: asyncio.Future[T] = self.loop.create_future()
        seconds = self._way_seconds(fate)
        if fate not in (Fate.LOST, Fate.UNAVAILABLE, Fate.THROTTLED):
            self.loop.call_later(seconds, self._arrive, sender, server, effect, fate, answered)
        if fate is Fate.SENDER_DIES:
            sender.die()
            await sender.awake()
        if fate is Fate.SENDER_SLEEPS_AFTER:
            sender.sleep(self.chances.uniform(1.0, 40.0))
        if fate in (Fate.UNAVAILABLE, Fate.THROTTLED):
            await asyncio.sleep(seconds)
            await sender.awake()
            raise NoAnswer(429 if fate is Fate.THROTTLED else 503, f"{note}: {fate.name}")
        try:
            async with asyncio.timeout(timeout_seconds):
                return await answered
        except TimeoutError:
            raise NoAnswer(0, f"{note}: no answer in {timeout_seconds:.0f} s") from None
        finally:
            answered.cancel()
            await sender.awake()

    def _arrive(
        self,
        sender: Sender,
        server: Server,
        effect: Callable[[bool], T],
        fate: Fate | None,
        answered: asyncio.Future[T],
    ) -> None:
        if fate is not Fate.LATE and self.is_cut(sender.name, server):
            return
        error: BaseException | None = None
        try:
            result = effect(answered.done())
        except Exception as raised:
            error = raised
        if fate in (Fate.REPLY_LOST, Fate.LATE):
            return
        if fate is Fate.BROKEN:
            error = NoAnswer(500, "answered with an error")

        def answer() -> None:
            if answered.done() or self.is_cut(sender.name, server):
                return
            if error is not None:
                answered.set_exception(error)
            else:
                answered.set_result(result)

        self.loop.call_later(self._way_seconds(fate), answer)

    def _draw(self) -> Fate | None:
        if not self.budget or self.chances.random() >= self.rate:
            return None
        self.budget -= 1
        return self.chances.choice(self.fates)

    def _way_seconds(self, fate: Fate | None) -> float:
        return self.chances.uniform(*_WAY_SECONDS.get(fate, _FAST_SECONDS))
