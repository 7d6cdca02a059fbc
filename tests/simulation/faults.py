"""What can go wrong at one call, and plans of what goes wrong where."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol


class Nature(Enum):
    """What a call does."""

    READ = auto()
    WRITE = auto()
    COMMIT = auto()


@dataclass(frozen=True, slots=True)
class Call:
    """One request a process is about to send: to a broker, or a commit to the store."""

    index: int
    verb: str
    target: str
    nature: Nature

    def __str__(self) -> str:
        return f"#{self.index} {self.verb} {self.target.rpartition('/')[2]}"


class FaultKind(Enum):
    """How a call goes wrong, or what happens just before it."""

    CRASH_BEFORE = auto()
    """The process dies before the call is sent."""
    CRASH_AFTER = auto()
    """The call takes effect and the process dies before the reply."""
    CRASH_LATE = auto()
    """The process dies, and the call takes effect `amount` calls later, or as `WHEN_QUIET` and `AT_THE_END` say."""
    TIMED_OUT = auto()
    """No answer; the call takes effect late, as for `CRASH_LATE`."""
    LOST_REPLY = auto()
    """The call takes effect, but its caller is told that nobody answered."""
    UNAVAILABLE = auto()
    """Nobody answers and nothing happened."""
    DENIED = auto()
    """The broker refuses for lack of a right."""
    DEPOSED = auto()
    """Another process takes over before the call is sent; the call and all after it follow `amount` calls later."""
    STALE = auto()
    """A commit meets a newer version of the object."""
    WIPED = auto()
    """The process dies and the object's status is lost."""
    RESTORED = auto()
    """The process dies and the object's status becomes what it was `amount` commits ago."""
    REOPENED = auto()
    """The seal this call makes comes undone after `amount` looks (hazard A1-26680)."""
    HANGING = auto()
    """`amount` writes hang at the seal this call makes (hazard A1-26678)."""
    SUBSCRIBED = auto()
    """An application makes a subscription on every segment that takes writes."""
    ROLLED_OVER = auto()
    """Every segment's ledger rolls over to an empty one."""
    DROPPED = auto()
    """Somebody deletes the `amount`-th topic of the scalable topic."""
    REPLACED = auto()
    """Somebody deletes the `amount`-th topic and a client makes it again at once (hazard A1-25719)."""
    RESURRECTED = auto()
    """A client makes the segment that was deleted last again (hazard A1-25719)."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong, once."""

    kind: FaultKind
    amount: int = 0

    def __str__(self) -> str:
        return f"{self.kind.name}({self.amount})"


class Crash(BaseException):
    """The process is dead; nothing it still tries reaches anybody."""


class FaultPlan(Protocol):
    """Decides what goes wrong at a call."""

    def at(self, call: Call) -> Fault | None:
        """The fault of a call."""

    def pauses(self) -> int:
        """How many turns a call waits before it is sent: the order of calls made side by side."""


class NoFaults:
    """Everything works."""

    def at(self, call: Call) -> Fault | None:
        """None."""
        return None

    def pauses(self) -> int:
        """One turn each."""
        return 1


class OneFault(NoFaults):
    """One fault at one call."""

    def __init__(self, index: int, fault: Fault) -> None:
        self._index = index
        self._fault = fault

    def at(self, call: Call) -> Fault | None:
        """The fault, at its call."""
        return self._fault if call.index == self._index else None


class RandomFaults:
    """Faults drawn from a seeded generator.

    Args:
        rng: draws everything.
        rate: chance of a fault at a call, 0..1.
        budget: faults at most.
    """

    def __init__(self, rng: random.Random, *, rate: float, budget: int) -> None:
        self._rng = rng
        self._rate = rate
        self._left = budget

    def at(self, call: Call) -> Fault | None:
        """A fault of a kind the call can have."""
        if not self._left or self._rng.random() >= self._rate:
            return None
        self._left -= 1
        return self._rng.choice(possible_faults(call))

    def pauses(self) -> int:
        """Any order."""
        return self._rng.randrange(3)


WHEN_QUIET = 0
AT_THE_END = -1
_LATE = (4, WHEN_QUIET, AT_THE_END)
_TOPICS = (0, 1, 2)
_LOOKS = (0, 1, 2, 3)
_ANY_CALL: Mapping[FaultKind, Sequence[int]] = {
    FaultKind.CRASH_BEFORE: (0,),
    FaultKind.UNAVAILABLE: (0,),
    FaultKind.WIPED: (0,),
    FaultKind.RESTORED: (1, 3, 100),
    FaultKind.DEPOSED: _LATE,
    FaultKind.SUBSCRIBED: (0,),
    FaultKind.ROLLED_OVER: (0,),
    FaultKind.RESURRECTED: (0,),
    FaultKind.DROPPED: _TOPICS,
    FaultKind.REPLACED: _TOPICS,
}
_CHANGING_CALL: Mapping[FaultKind, Sequence[int]] = {
    FaultKind.CRASH_AFTER: (0,),
    FaultKind.LOST_REPLY: (0,),
    FaultKind.CRASH_LATE: _LATE,
    FaultKind.TIMED_OUT: _LATE,
}


_AT_EVERY_CALL = (FaultKind.CRASH_BEFORE, FaultKind.UNAVAILABLE, FaultKind.WIPED, FaultKind.REOPENED)


def possible_faults(call: Call, *, thorough: bool = True) -> Sequence[Fault]:
    """Every fault that means something at a call.

    Args:
        call: the call.
        thorough: every degree of every kind; otherwise one degree of each kind, another one at the next call,
            and at a call that only reads every second kind but those that matter most.
    """
    degrees = dict(_ANY_CALL)
    if call.nature is not Nature.READ:
        degrees |= _CHANGING_CALL
    degrees[FaultKind.STALE if call.nature is Nature.COMMIT else FaultKind.DENIED] = (0,)
    if call.verb == "terminate":
        degrees |= {FaultKind.REOPENED: _LOOKS, FaultKind.HANGING: (2,)}
    faults: list[Fault] = []
    for number, (kind, amounts) in enumerate(degrees.items()):
        if thorough or kind is FaultKind.REOPENED:
            faults += [Fault(kind, amount) for amount in amounts]
        elif call.nature is not Nature.READ or kind in _AT_EVERY_CALL or (number + call.index) % 2:
            faults.append(Fault(kind, amounts[call.index % len(amounts)]))
    return faults
