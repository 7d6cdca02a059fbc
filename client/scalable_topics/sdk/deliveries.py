"""What a consumer has delivered and the application has not acknowledged, over all its segments. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Any, Generic, NamedTuple, TypeVar

H = TypeVar("H", bound=Hashable)

Place = tuple[int, ...]
"""Where a message is within its segment: ledger, entry, and index within a batch. Later messages compare greater."""


class _Delivery(NamedTuple):
    number: int
    place: Place
    position: Any


class Deliveries(Generic[H]):
    """Numbers messages in the order of delivery, so that acknowledging one acknowledges everything before it (pip-460:
    a position in a scalable topic is a set of positions, one on each segment).

    A *holding* stands for one segment from attaching to giving back; one that comes back is another one. So what was
    delivered while a segment was held before cannot acknowledge anything of it now.
    """

    def __init__(self) -> None:
        self._unacknowledged: dict[H, deque[_Delivery]] = {}
        self._last_place: dict[H, Place] = {}
        self._next_number = 0

    def hold(self, holding: H) -> None:
        """Begin with a segment."""
        self._last_place[holding] = ()
        self._unacknowledged[holding] = deque()

    def deliver(self, holding: H, place: Place, position: Any) -> int | None:
        """A message is about to be delivered.

        Brokers deliver everything again that is not acknowledged, in order, when a connection returns. What this
        consumer has delivered already is no news to the application, and acknowledging it still works.

        Args:
            holding: the segment it is from.
            place: where it is there.
            position: the same as the consumer of the segment understands it.

        Returns:
            The message's number, or None if it is not to be delivered: it was before, or the segment is given back.
        """
        if holding not in self._last_place or place <= self._last_place[holding]:
            return None
        self._last_place[holding] = place
        number = self._next_number
        self._next_number += 1
        self._unacknowledged[holding].append(_Delivery(number, place, position))
        return number

    def acknowledge(self, number: int) -> dict[H, Any]:
        """Acknowledge a message and everything delivered before it.

        Returns:
            For each segment on which that is anything new: the position up to which it is acknowledged now.
        """
        reached: dict[H, Any] = {}
        for holding, waiting in self._unacknowledged.items():
            while waiting and waiting[0].number <= number:
                reached[holding] = waiting.popleft().position
        return reached

    def acknowledge_to(self, holding: H, place: Place) -> Any:
        """Acknowledge a segment up to a place.

        Returns:
            The position up to which it is acknowledged now; None if that is nothing new.
        """
        reached = None
        waiting = self._unacknowledged.get(holding) or deque()
        while waiting and waiting[0].place <= place:
            reached = waiting.popleft().position
        return reached

    def is_settled(self, holding: H) -> bool:
        """Whether everything delivered of a segment is acknowledged."""
        return not self._unacknowledged.get(holding)

    def last_place(self, holding: H) -> Place:
        """Where the last message delivered of a held segment is; empty if there is none."""
        return self._last_place[holding]

    def places(self) -> dict[H, Place]:
        """Where the last message delivered of each held segment is; empty if there is none."""
        return dict(self._last_place)

    def give_back(self, holding: H) -> None:
        """Be done with a segment: nothing of it is delivered or acknowledged any more."""
        self._last_place.pop(holding, None)
        self._unacknowledged.pop(holding, None)
