"""The line over which a process reaches brokers and store; whatever goes wrong goes wrong here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from scalable_topics_operator.cluster.kube_errors import KubeUnavailable
from scalable_topics_operator.cluster.status_store import StaleStatus
from scalable_topics_operator.operations.errors import AccessDenied, BackendError, BackendUnavailable
from tests.simulation.faults import Call, Crash, Fault, FaultKind, FaultPlan, Nature

T = TypeVar("T")
Effect = Callable[[], object]


class Surroundings(Protocol):
    """The world around a process, as its line needs it."""

    plan: FaultPlan

    def begin(self, verb: str, target: str, nature: Nature) -> Call:
        """Number a call; everybody else makes a step first."""

    def note(self, line: str) -> None:
        """Write a line of the trace."""

    def postpone(self, call: Call, effect: Effect, after: int) -> None:
        """Let a call take effect that many calls later, when all is quiet, or at the end."""

    def belated(self, call: Call, effect: Callable[[], T]) -> T:
        """Let a call take effect now that was under way for long."""

    def depose(self, line: Line) -> None:
        """Let another process take over from the one of a line."""

    def disturb(self, fault: Fault, call: Call) -> None:
        """Do what happens just before a call."""


class Line:
    """One process's line; dead for good once the process has crashed.

    Args:
        name: of the process.
        around: the world.
    """

    def __init__(self, name: str, around: Surroundings) -> None:
        self._name = name
        self._around = around
        self._alive = True
        self._awake: asyncio.Event | None = None

    async def call(self, verb: str, target: str, nature: Nature, effect: Callable[[], T]) -> T:
        """Send one request and wait for its reply. Raises what the request raises, or what the plan has."""
        self._require_alive()
        if self._awake is not None:
            await self._awake.wait()
            self._require_alive()
        for _ in range(self._around.plan.pauses()):
            await asyncio.sleep(0)
        self._require_alive()
        call = self._around.begin(verb, target, nature)
        fault = self._around.plan.at(call)
        if fault is None:
            self._around.note(f"{self._name} {call}")
            return effect()
        self._around.note(f"{self._name} {call} !! {fault}")
        if fault.kind is FaultKind.DEPOSED:
            await self._sleep_on(call, fault.amount)
            return self._around.belated(call, effect)
        return self._faulty(call, fault, effect)

    def end(self) -> None:
        """Let the process die, wherever it is."""
        self._alive = False
        if self._awake is not None:
            self._awake.set()

    async def _sleep_on(self, call: Call, after: int) -> None:
        """Send nothing more until somebody else has gone on with the work."""
        if self._awake is None:
            self._awake = asyncio.Event()
            self._around.postpone(call, self._awake.set, after)
            self._around.depose(self)
        await self._awake.wait()
        self._require_alive()

    def _faulty(self, call: Call, fault: Fault, effect: Callable[[], T]) -> T:
        match fault.kind:
            case FaultKind.CRASH_BEFORE:
                self._die(call)
            case FaultKind.WIPED | FaultKind.RESTORED:
                self._around.disturb(fault, call)
                self._die(call)
            case FaultKind.CRASH_AFTER:
                _quietly(effect)
                self._die(call)
            case FaultKind.CRASH_LATE:
                self._around.postpone(call, effect, fault.amount)
                self._die(call)
            case FaultKind.TIMED_OUT:
                self._around.postpone(call, effect, fault.amount)
                raise _no_answer(call)
            case FaultKind.LOST_REPLY:
                _quietly(effect)
                raise _no_answer(call)
            case FaultKind.UNAVAILABLE:
                raise _no_answer(call)
            case FaultKind.DENIED:
                raise AccessDenied(f"{call}: denied")
            case FaultKind.STALE:
                raise StaleStatus(f"{call}: changed elsewhere")
            case _:
                self._around.disturb(fault, call)
        return effect()

    def _require_alive(self) -> None:
        if not self._alive:
            raise Crash(f"{self._name} is dead")

    def _die(self, call: Call) -> None:
        self._alive = False
        raise Crash(f"{self._name} died at {call}")


def _no_answer(call: Call) -> Exception:
    if call.nature is Nature.COMMIT:
        return KubeUnavailable(str(call), 0, "no answer")
    return BackendUnavailable(f"{call}: no answer")


def _quietly(effect: Effect) -> None:
    """A request takes effect, or is refused, and nobody hears of it."""
    try:
        effect()
    except (BackendError, StaleStatus):
        return
