"""How often and how soon a call is repeated. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

Uniform = Callable[[float, float], float]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Repeats with full jitter: the wait before repeat n is uniform in [0, min(cap, base * 2^n)].

    Args:
        attempts: sends at most, the first included; at least 1.
        base_seconds: upper bound of the first wait; > 0.
        cap_seconds: upper bound of any wait that the server did not ask for; > 0.
        total_seconds: no repeat starts later than this after the first send; > 0.
    """

    attempts: int = 5
    base_seconds: float = 0.1
    cap_seconds: float = 5.0
    total_seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError("attempts must be at least 1")
        if not (self.base_seconds > 0 and self.cap_seconds > 0 and self.total_seconds > 0):
            raise ValueError("the times of a retry policy must be greater than 0")

    def wait_seconds(
        self,
        attempt: int,
        *,
        elapsed_seconds: float,
        retry_after_seconds: float | None = None,
        uniform: Uniform = random.uniform,
    ) -> float | None:
        """How long to wait after failed send number `attempt` (from 1), or None to give up.

        A `Retry-After` of the server is a lower bound; jitter is added on top, so that callers told the same
        second do not come back together.
        """
        if attempt >= self.attempts:
            return None
        jitter = uniform(0.0, min(self.cap_seconds, self.base_seconds * 2.0 ** (attempt - 1)))
        wait = jitter if retry_after_seconds is None else retry_after_seconds + jitter
        return None if elapsed_seconds + wait > self.total_seconds else wait


def parse_retry_after(header: str | None, *, now: datetime | None = None) -> float | None:
    """Seconds a `Retry-After` header asks for (delta or HTTP date); None when absent or unreadable."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
