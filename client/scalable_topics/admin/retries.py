"""Which requests are sent again, and when. Pure but for chance."""

from __future__ import annotations

import random

MAX_ATTEMPTS = 5

_FIRST_PAUSE_SECONDS = 0.2
_MOST_PAUSE_SECONDS = 10.0
_MOST_RETRY_AFTER_SECONDS = 30.0
_JITTER_SECONDS = 0.5
_NOT_BEGUN = frozenset({429, 503})
_MAY_PASS = frozenset({429, 502, 503, 504})


def may_repeat(status: int, retry_after: str | None, *, reads: bool) -> bool:
    """Whether a request that was answered so may be sent again.

    Args:
        status: of the answer.
        retry_after: its header. The gateway sends it where nothing was begun.
        reads: the request changes nothing.
    """
    if reads:
        return status in _MAY_PASS
    return status in _NOT_BEGUN and retry_after is not None


def pause_seconds(attempt: int, retry_after: str | None = None) -> float:
    """How long to wait after this many attempts (from 1), with jitter so that callers do not come back together."""
    if retry_after is not None and retry_after.isascii() and retry_after.isdigit():
        return min(float(retry_after), _MOST_RETRY_AFTER_SECONDS) + random.uniform(0, _JITTER_SECONDS)
    return random.uniform(0, min(_FIRST_PAUSE_SECONDS * 2.0**attempt, _MOST_PAUSE_SECONDS))
