"""The judge of a subscription for as long as it takes: what is settled is kept as counts. Pure.

`consumption_judge` does the same with all receipts at once, for runs of minutes. Receipts and acknowledgements are told
in the order of their times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.support.consumption import Place, Receipt
from tests.support.consumption_judge import UNDER_WAY_NS, Forgotten

_MINUTE_NS = 60_000_000_000
_KEPT_NS = 10 * _MINUTE_NS
_SHOWN = 20

LaneName = tuple[str, str]
"""Producer and key: the messages of one are numbered from 0."""


@dataclass(slots=True)
class _Recent:
    """A message that came not long ago."""

    where: tuple[int, Place]
    acknowledged: list[Receipt] = field(default_factory=list)


@dataclass(slots=True)
class _Lane:
    """What is known of a lane; messages below `floor` are all acknowledged."""

    floor: int = 0
    last: int = -1
    highest: int = -1
    above: set[int] = field(default_factory=set)
    recent: dict[int, _Recent] = field(default_factory=dict)

    def acknowledge(self, counter: int) -> None:
        if counter < self.floor:
            return
        self.above.add(counter)
        while self.floor in self.above:
            self.above.discard(self.floor)
            self.floor += 1

    def is_acknowledged(self, counter: int) -> bool:
        return counter < self.floor or counter in self.above


@dataclass(slots=True)
class Verdict:
    """What is wrong, as far as is known; empty if the guarantee held.

    Args:
        disordered: received although the message before it of its key had not been, or was to come again first.
        repeated: received again although it had been acknowledged, and nothing excuses that.
        duplicated: found at two places, so that it is stored twice.
        again: how many were received again, all in all.
        forgiven: how many of these had been acknowledged in a way that may be forgotten.
        receipts: how many there were.
    """

    disordered: list[Receipt] = field(default_factory=list)
    repeated: list[Receipt] = field(default_factory=list)
    duplicated: list[Receipt] = field(default_factory=list)
    again: int = 0
    forgiven: int = 0
    receipts: int = 0

    def __bool__(self) -> bool:
        return bool(self.disordered or self.repeated or self.duplicated)


class Ledger:
    """Told of everything that the consumers of a subscription received and acknowledged.

    Args:
        ordered: whether each key's messages come in order and only until they are acknowledged.
        kept_ns: how long it is known who acknowledged a message, and where it is. One that comes again later though it
            was acknowledged counts as repeated.
    """

    def __init__(self, ordered: bool, kept_ns: int = _KEPT_NS) -> None:
        self._ordered = ordered
        self._kept_ns = kept_ns
        self._lanes: dict[LaneName, _Lane] = {}
        self._by_age: deque[tuple[int, LaneName, int]] = deque()
        self.verdict = Verdict()

    @property
    def kept(self) -> int:
        """How many messages it knows by themselves."""
        return sum(len(lane.recent) + len(lane.above) for lane in self._lanes.values())

    def tell(self, receipt: Receipt, forgotten: Sequence[Forgotten] = ()) -> None:
        """Something was received, or acknowledged if the receipt says so.

        Args:
            receipt: at its time; not before anything told so far.
            forgotten: acknowledgements that may have been lost by then.
        """
        producer, key, counter = receipt.message
        name = (producer, key)
        lane = self._lanes.setdefault(name, _Lane())
        if receipt.acknowledged_at_ns is not None:
            lane.acknowledge(counter)
            if counter in lane.recent:
                lane.recent[counter].acknowledged.append(receipt)
            return
        self._receive(name, lane, receipt, forgotten)
        self._forget(receipt.at_ns - self._kept_ns)

    def lacking(self, stored: Mapping[LaneName, int]) -> Iterator[tuple[LaneName, int]]:
        """What is stored, so many of each lane, and was never both received and acknowledged."""
        for name, count in stored.items():
            lane = self._lanes.get(name, _Lane())
            yield from ((name, counter) for counter in range(lane.floor, count) if counter not in lane.above)

    def _receive(self, name: LaneName, lane: _Lane, receipt: Receipt, forgotten: Sequence[Forgotten]) -> None:
        counter = receipt.message.counter
        self.verdict.receipts += 1
        if self._ordered and counter > lane.last + 1:
            _note(self.verdict.disordered, receipt)
        lane.last = counter
        where = (receipt.part.segment_id, receipt.place)
        known = lane.recent.get(counter)
        if counter <= lane.highest and (known is not None or lane.is_acknowledged(counter)):
            self.verdict.again += 1
            if known is not None and known.where != where:
                _note(self.verdict.duplicated, receipt)
            if self._ordered and lane.is_acknowledged(counter):
                self._come_again(known, receipt, forgotten)
        lane.highest = max(lane.highest, counter)
        if known is None:
            lane.recent[counter] = _Recent(where)
            self._by_age.append((receipt.at_ns, name, counter))

    def _come_again(self, known: _Recent | None, receipt: Receipt, forgotten: Sequence[Forgotten]) -> None:
        if known is None or not known.acknowledged:
            # Acknowledged so long ago that it is not known by whom.
            _note(self.verdict.repeated, receipt)
            return
        before_ns = receipt.at_ns - UNDER_WAY_NS
        sure = [one for one in known.acknowledged if (one.acknowledged_at_ns or 0) < before_ns]
        if any(not any(each.excuses(one, receipt.at_ns) for each in forgotten) for one in sure):
            _note(self.verdict.repeated, receipt)
        elif sure:
            self.verdict.forgiven += 1

    def _forget(self, before_ns: int) -> None:
        while self._by_age and self._by_age[0][0] < before_ns:
            _, name, counter = self._by_age.popleft()
            del self._lanes[name].recent[counter]


def _note(findings: list[Receipt], receipt: Receipt) -> None:
    """Keep some: where one thing is wrong, much may be."""
    if len(findings) < _SHOWN:
        findings.append(receipt)
