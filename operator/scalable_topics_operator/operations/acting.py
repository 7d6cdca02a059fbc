"""How long what runs now may still act on the world: the leader's own deadline, asked before every call (R6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_UNTIL_SECONDS: ContextVar[Callable[[], float]] = ContextVar("acting_until_seconds", default=lambda: math.inf)


@contextmanager
def acting_until(seconds: Callable[[], float]) -> Iterator[None]:
    """Let what runs inside, and the tasks it starts, act until a deadline that renewals move.

    Args:
        seconds: says the deadline on the monotonic clock as of now; the past once leadership is lost.
    """
    token = _UNTIL_SECONDS.set(seconds)
    try:
        yield
    finally:
        _UNTIL_SECONDS.reset(token)


def seconds_to_act(now_seconds: float, most_seconds: float) -> float:
    """The time that a call made now may take, `most_seconds` at most; 0 when it must not be made any more."""
    return max(0.0, min(most_seconds, _UNTIL_SECONDS.get()() - now_seconds))
