"""How often what is not asked for by events is looked at."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import Protocol

_OBSERVATIONS_FOR_A_COMPARISON = 10
"""How many looks at a layout that brokers own cost what one comparison of a record with its brokers costs."""

_TIMES_PUT_OFF = 2
"""How often a comparison gives way to other work: one that never came would be none."""


@dataclass(frozen=True, slots=True)
class ReconcileTimes:
    """How often what is not asked for by events is looked at.

    Args:
        drift_seconds: between two comparisons of the record with the brokers, where few topics are led.
        drift_per_second: topics that one replica compares with their brokers at most, in one second on average; > 0.
        prune_seconds: between two looks for prunable segments (R19).
        observe_seconds: between two looks at a layout that the brokers own, where few topics are led.
        refused_retry_seconds: when to try again what brokers have refused.
    """

    drift_seconds: float = 300.0
    drift_per_second: float = 5.0
    prune_seconds: float = 60.0
    observe_seconds: float = 60.0
    refused_retry_seconds: float = 30.0


class Compared(Protocol):
    """What is remembered of a topic.

    Attributes:
        drift_due: monotonic time of the next comparison with its brokers; 0.0 for at once.
        drift_patience: how often it may still be put off while there is other work to do.
    """

    drift_due: float
    drift_patience: int


def _never() -> bool:
    return False


class LookTimes:
    """Says when topics are compared with their brokers next, so that a large fleet costs no more than a bounded share
    of the processor, and of the brokers.

    Args:
        times: how often.
        led: what is remembered of the topics that this process leads, of which the number counts.
        is_busy: whether there is more work than can be done at once, such as topics to be made.
    """

    def __init__(self, times: ReconcileTimes, led: Sized, is_busy: Callable[[], bool] = _never) -> None:
        self._times = times
        self._led = led
        self._is_busy = is_busy

    def is_due(self, memory: Compared) -> bool:
        """Whether a topic is to be compared with its brokers now.

        A comparison that nobody asked for gives way to what somebody did, as thousands of topics to be made: it is put
        off by as long as is between two of them, and not for ever.
        """
        if time.monotonic() < memory.drift_due:
            return False
        if memory.drift_due and memory.drift_patience and self._is_busy():
            memory.drift_patience -= 1
            self._again(memory, self._at_least(self._times.drift_seconds))
            return False
        return True

    def begin(self, memory: Compared) -> None:
        """A topic that seems to be in order is led from now on: it is compared once those before it have been."""
        memory.drift_due = time.monotonic() + (len(self._led) - 1) / self._times.drift_per_second
        memory.drift_patience = _TIMES_PUT_OFF

    def compared(self, memory: Compared) -> None:
        """Note that record and brokers have been compared."""
        self._again(memory, self._at_least(self._times.drift_seconds))
        memory.drift_patience = _TIMES_PUT_OFF

    def observed(self, memory: Compared) -> None:
        """Note that a layout has been read that the brokers own."""
        per_second = self._times.drift_per_second * _OBSERVATIONS_FOR_A_COMPARISON
        self._again(memory, max(self._times.observe_seconds, len(self._led) / per_second))
        memory.drift_patience = 0

    def clients_seconds(self, *, decides: bool) -> float:
        """How long until the clients and settings of a topic are looked at again whose layout the brokers own.

        Args:
            decides: whether the operator decides on its segments, for which it must know of consumers.
        """
        return self._at_least(self._times.observe_seconds if decides else self._times.drift_seconds)

    def _at_least(self, seconds: float) -> float:
        """So long, or as long as it takes to compare all topics that are led."""
        return max(seconds, len(self._led) / self._times.drift_per_second)

    def _again(self, memory: Compared, seconds: float) -> None:
        # Spread, so that a fleet that started together does not ask the brokers together for ever.
        memory.drift_due = time.monotonic() + seconds * random.uniform(0.8, 1.2)
