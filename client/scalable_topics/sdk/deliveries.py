"""What a consumer has delivered and the application has not acknowledged, over all it holds. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Generic, NamedTuple, TypeVar

H = TypeVar("H", bound=Hashable)

Place = tuple[int, ...]
"""Where a message is within its segment: ledger, entry, and index within a batch. Later messages compare greater."""

_MOST_REMEMBERED = 5000
"""Acknowledged messages that are still known, of each entry bucket: more than acknowledgements can be on their way when
a connection breaks. One that is not known any more would be delivered again."""


class _Delivery(NamedTuple):
    number: int
    position: Any


class _Holding:
    def __init__(self, *, one_by_one: bool) -> None:
        self.one_by_one = one_by_one
        self.last_place: Place = ()
        self.unacknowledged: OrderedDict[Place, _Delivery] = OrderedDict()
        self.acknowledged: OrderedDict[Place, None] = OrderedDict()

    def has_delivered(self, place: Place) -> bool:
        if self.one_by_one:
            # Brokers keep the order of a bucket only if producers have them see one key of it.
            return place in self.unacknowledged or place in self.acknowledged
        return place <= self.last_place

    def acknowledge(self, places: list[Place]) -> list[Any]:
        """What a broker is to be told: each of these, or the last where that says it all."""
        positions = [self.unacknowledged.pop(place).position for place in places]
        if not self.one_by_one:
            return positions[-1:]
        for place in places:
            self.remember(place)
        return positions

    def remember(self, place: Place) -> None:
        self.acknowledged[place] = None
        if len(self.acknowledged) > _MOST_REMEMBERED:
            self.acknowledged.popitem(last=False)


class Deliveries(Generic[H]):
    """Numbers messages in the order of delivery, so that acknowledging one acknowledges everything before it (pip-460:
    a position in a scalable topic is a set of positions, one on each segment).

    A *holding* stands for one segment, or one entry bucket, from attaching to giving back; one that comes back is
    another one. So what was delivered while a segment was held before cannot acknowledge anything of it now.
    """

    def __init__(self) -> None:
        self._holdings: dict[H, _Holding] = {}
        self._next_number = 0

    def hold(self, holding: H, *, one_by_one: bool = False) -> None:
        """Begin with a segment, or with an entry bucket, of which brokers want every message acknowledged by itself."""
        self._holdings[holding] = _Holding(one_by_one=one_by_one)

    def deliver(self, holding: H, place: Place, position: Any) -> int | None:
        """A message is about to be delivered.

        Brokers deliver everything again that is not acknowledged, in order, when a connection returns. What this
        consumer has delivered already is no news to the application, and acknowledging it still works: see `again`.

        Args:
            holding: what it is from.
            place: where it is there.
            position: the same as the consumer of the segment understands it.

        Returns:
            The message's number, or None if it is not to be delivered: it was before, or the segment is given back.
        """
        held = self._holdings.get(holding)
        if held is None or held.has_delivered(place):
            return None
        held.last_place = max(held.last_place, place)
        number = self._next_number
        self._next_number += 1
        held.unacknowledged[place] = _Delivery(number, position)
        return number

    def again(self, holding: H, place: Place, position: Any) -> list[Any]:
        """A message has come that is not to be delivered again.

        Arguments are those of `deliver`.

        Returns:
            The position, if it is to be acknowledged again: that was lost with a connection, and nothing else says it.
        """
        held = self._holdings.get(holding)
        if held is None:
            return []
        if place in held.unacknowledged:
            # A batch counts what is acknowledged of it as it came last.
            held.unacknowledged[place] = held.unacknowledged[place]._replace(position=position)
        return [position] if place in held.acknowledged else []

    def skip(self, holding: H, place: Place, position: Any) -> list[Any]:
        """A message is not for the application, which has it from before.

        Arguments are those of `deliver`.

        Returns:
            The position, if it is to be acknowledged now; otherwise it is with the message delivered before it.
        """
        held = self._holdings.get(holding)
        if held is None:
            return []
        held.last_place = max(held.last_place, place)
        if held.one_by_one or not held.unacknowledged:
            return [position]
        last, delivery = next(reversed(held.unacknowledged.items()))
        if place > last:
            held.unacknowledged[last] = delivery._replace(position=position)
        return []

    def acknowledge(self, number: int) -> dict[H, list[Any]]:
        """Acknowledge a message and everything delivered before it.

        Returns:
            For each holding of which that is anything new: the positions that brokers are to be told, or the one up to
            which all of it is acknowledged now.
        """
        reached: dict[H, list[Any]] = {}
        for holding, held in self._holdings.items():
            places = []
            for place, delivery in held.unacknowledged.items():
                if delivery.number > number:
                    break
                places.append(place)
            if places:
                reached[holding] = held.acknowledge(places)
        return reached

    def acknowledge_to(self, holding: H, up_to: Place) -> list[Any]:
        """Acknowledge one holding up to a place.

        Returns:
            As of `acknowledge`; nothing if that is nothing new.
        """
        held = self._holdings.get(holding)
        if held is None:
            return []
        return held.acknowledge([place for place in held.unacknowledged if place <= up_to])

    def is_settled(self, holding: H) -> bool:
        """Whether everything delivered of a holding is acknowledged."""
        held = self._holdings.get(holding)
        return held is None or not held.unacknowledged

    def last_place(self, holding: H) -> Place:
        """Where the last message delivered of a holding is; empty if there is none."""
        return self._holdings[holding].last_place

    def places(self) -> dict[H, Place]:
        """Where the last message delivered of each holding is; empty if there is none."""
        return {holding: held.last_place for holding, held in self._holdings.items()}

    def give_back(self, holding: H) -> None:
        """Be done with a holding: nothing of it is delivered or acknowledged any more."""
        self._holdings.pop(holding, None)
