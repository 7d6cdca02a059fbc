"""How many consumers a topic had of late: what fewer entry buckets must have been enough for (pip-486). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from scalable_topics_operator.autoscale.config import SECONDS_MS


@dataclass(frozen=True, slots=True)
class Demand:
    """The most consumers of one coordinated subscription, over a window that slides.

    Nobody knows what was while nobody looked, so that a gap begins the window anew, and so do another leader, who
    starts with nothing, and a clock that goes back: a window is never shorter than it should be.

    Args:
        window_seconds: how far back it looks.
        since_ms: since when there has been no gap, milliseconds since 1970.
        peaks: times at which there were last so many consumers, each later and with fewer than the one before; empty
            before the first look.
    """

    window_seconds: float = 0.0
    since_ms: int = 0
    peaks: tuple[tuple[int, int], ...] = ()

    def seen(self, consumers: int, now_ms: int, *, window_seconds: float, most_gap_seconds: float) -> Demand:
        """This after a look.

        Args:
            consumers: the most that one coordinated subscription has now.
            now_ms: milliseconds since 1970.
            window_seconds: how far back to look from now on; another length begins anew, for want of what was dropped.
            most_gap_seconds: between two looks that are taken for one time.
        """
        goes_on = (
            bool(self.peaks)
            and self.window_seconds == window_seconds
            and 0 <= now_ms - self.peaks[-1][0] <= most_gap_seconds * SECONDS_MS
        )
        if not goes_on:
            return Demand(window_seconds, now_ms, ((now_ms, consumers),))
        higher = tuple(peak for peak in self._within(now_ms) if peak[1] > consumers)
        return Demand(window_seconds, self.since_ms, (*higher, (now_ms, consumers)))

    def most(self, now_ms: int) -> int | None:
        """The most consumers at any time of the window that ends now; None if it has not been looked at for so long."""
        if not self.peaks or now_ms - self.since_ms < self.window_seconds * SECONDS_MS:
            return None
        return max((consumers for _, consumers in self._within(now_ms)), default=None)

    def _within(self, now_ms: int) -> tuple[tuple[int, int], ...]:
        begins_ms = now_ms - self.window_seconds * SECONDS_MS
        return tuple(peak for peak in self.peaks if peak[0] >= begins_ms)
