"""How many messages each segment of a consumer may keep waiting for the application (R24). Pure."""

from __future__ import annotations


class PrefetchBudget:
    """A bound over all segments of one consumer.

    Segments that come later must be fed from the same budget, and a prefetch cannot be changed while a consumer is
    attached. So segments that come together share half of what is left, and what detached segments had comes back.

    Args:
        budget: messages that may wait for the application, over all segments; each segment gets at least one.
    """

    def __init__(self, budget: int) -> None:
        self._left = budget

    def take(self, segments: int) -> int:
        """What each of so many new segments may prefetch, 1 or more."""
        share = max(1, self._left // (2 * segments))
        self._left -= share * segments
        return share

    def give_back(self, share: int) -> None:
        """A segment is detached from that had this share."""
        self._left += share
