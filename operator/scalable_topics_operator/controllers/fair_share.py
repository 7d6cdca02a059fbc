"""How many workers the objects of one group may hold, so that no group holds them all (hazards C22, C37). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

G = TypeVar("G", bound=Hashable)

_SUFFERING_LIMIT = 2


class FairShare(Generic[G]):
    """Counts workers by group.

    A group in good order may hold three quarters of the workers. One whose cluster did not answer may hold two
    until something succeeds again: each of its objects would hold a worker for as long as a call takes to time out.

    Args:
        workers: all workers there are, 1 or more.
    """

    def __init__(self, workers: int) -> None:
        self._limit = max(1, workers * 3 // 4)
        self._held: Counter[G] = Counter()
        self._suffering: set[G] = set()

    def free(self, group: G) -> int:
        """How many more workers the group may hold now."""
        limit = min(_SUFFERING_LIMIT, self._limit) if group in self._suffering else self._limit
        return max(0, limit - self._held[group])

    def enter(self, group: G) -> None:
        """A worker begins with an object of the group."""
        self._held[group] += 1

    def leave(self, group: G) -> None:
        """A worker is done with an object of the group."""
        self._held[group] -= 1
        if not self._held[group]:
            del self._held[group]

    def suffers(self, group: G) -> None:
        """The group's cluster did not answer."""
        self._suffering.add(group)

    def recovers(self, group: G) -> None:
        """Something succeeded for the group."""
        self._suffering.discard(group)
