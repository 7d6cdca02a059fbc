"""When a consumer says that it is through with a sealed segment, or with its entry bucket of one (R17). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from scalable_topics.layout import Part

_SILENCE_SECONDS = 1.0
_LEAST_DOUBT_SECONDS = 5.0
_MOST_DOUBT_SECONDS = 60.0


class Finding(Enum):
    """What a look at a sealed segment leads to."""

    NOTHING = "there is more to read or to acknowledge"
    DRAINED = "everything is acknowledged, as far as is known"
    DOUBTFUL = "the leader does not see it: the last acknowledgement may have been lost"


@dataclass(slots=True)
class _Reported:
    arrived: int
    at: float
    doubt_after_seconds: float


class DrainWatch:
    """Looks at the sealed segments of one consumer.

    It is once the last entry is acknowledged. But the last position of a sealed segment need not be that of a message
    (measured: one that is sealed right after an unload ends at `ledger:-1`), so a second of silence will do, too: the
    leader looks for itself. It takes the segment away as soon as it sees so. If it does not, acknowledgements may have
    been lost with a connection, and nothing else would ever send them again.
    """

    def __init__(self) -> None:
        self._arrived: dict[Part, tuple[int, float]] = {}
        self._reported: dict[Part, _Reported] = {}

    def look(self, part: Part, *, arrived: int, is_settled: bool, is_at_end: bool, now: float) -> Finding:
        """Look at one.

        Args:
            part: the segment, or the bucket.
            arrived: how many messages have come of it.
            is_settled: all of these are delivered and acknowledged.
            is_at_end: the last one is in the segment's last entry.
            now: seconds of a clock that only rises.
        """
        seen, since = self._arrived.get(part, (arrived, now))
        self._arrived[part] = (arrived, since if seen == arrived else now)
        is_silent = seen == arrived and now - since >= _SILENCE_SECONDS
        if not is_settled or not (is_silent or is_at_end):
            return Finding.NOTHING
        reported = self._reported.get(part)
        if reported is None or reported.arrived != arrived:
            doubt_after_seconds = _LEAST_DOUBT_SECONDS if reported is None else reported.doubt_after_seconds
            self._reported[part] = _Reported(arrived, now, doubt_after_seconds)
            return Finding.DRAINED
        if now - reported.at < reported.doubt_after_seconds:
            return Finding.NOTHING
        reported.at = now
        reported.doubt_after_seconds = min(2 * reported.doubt_after_seconds, _MOST_DOUBT_SECONDS)
        return Finding.DOUBTFUL

    def forget(self, part: Part) -> None:
        """It is held no longer."""
        self._arrived.pop(part, None)
        self._reported.pop(part, None)
