"""Whether what the consumers of a subscription received and acknowledged was right. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.support.consumption import Receipt
from tests.support.guarantee_checker import Numbered

_NS = 1_000_000_000
# An acknowledgement that was called for, and that pulsar-client has not sent yet.
UNDER_WAY_NS = _NS // 10


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Acknowledgements that may have been lost, with whoever had not passed them on or kept them yet.

    Args:
        begin_ns: those from then,
        end_ns: to then.
        died_ns: when whoever had them died; nothing was lost before.
        consumer: name of the log of the only one whose they are; empty for everybody's.
    """

    begin_ns: int
    end_ns: int
    died_ns: int
    consumer: str = ""

    def excuses(self, acknowledged: Receipt, again_ns: int) -> bool:
        """Whether a message that was acknowledged may come again at that time."""
        at_ns = acknowledged.acknowledged_at_ns
        return (
            at_ns is not None
            and self.begin_ns <= at_ns <= self.end_ns
            and again_ns >= self.died_ns
            and self.consumer in ("", acknowledged.consumer)
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is wrong; empty if the guarantee held.

    Args:
        lost: stored, and never both received and acknowledged: nobody is done with it.
        disordered: received although the message before it of its key had not been, or was to come again first.
        repeated: received again although it had been acknowledged, with the seconds since.
        again: how many were received again, all in all.
        forgiven: how many of these had been acknowledged in a way that may be forgotten.
        receipts: how many there were.
    """

    lost: Sequence[Numbered] = ()
    disordered: Sequence[Receipt] = ()
    repeated: Sequence[tuple[Receipt, float]] = ()
    again: int = 0
    forgiven: int = 0
    receipts: int = 0

    def __bool__(self) -> bool:
        return bool(self.lost or self.disordered or self.repeated)

    def __str__(self) -> str:
        return (
            f"{self.receipts} received, {self.again} again ({self.forgiven} forgiven), lost {len(self.lost)} "
            f"{self.lost[:3]}, disorder {len(self.disordered)} {self.disordered[:3]}, repeated though acknowledged "
            f"{len(self.repeated)} {self.repeated[:3]}"
        )


def judge_ordered(
    stored: Iterable[Numbered], receipts: Iterable[Receipt], forgotten: Sequence[Forgotten] = ()
) -> Judgement:
    """Judge an ordered subscription: each key's messages come in order and without a gap, also when they come again,
    and they come again only if they were not acknowledged.

    Args:
        stored: what producers were told is stored; of each of their keys all, counted from 0.
        receipts: of all consumers of the subscription.
        forgotten: acknowledgements that do not count against coming again.
    """
    known = list(receipts)
    last_counters: defaultdict[tuple[str, str], int] = defaultdict(lambda: -1)
    earlier: defaultdict[Numbered, list[Receipt]] = defaultdict(list)
    disordered, repeated, again, forgiven = [], [], 0, 0
    for receipt in sorted(known, key=lambda one: one.at_ns):
        producer, key, counter = receipt.message
        if counter > last_counters[producer, key] + 1:
            disordered.append(receipt)
        last_counters[producer, key] = counter
        before = earlier[receipt.message]
        if before:
            again += 1
            acknowledged = [one for one in before if _is_acknowledged(one, receipt.at_ns - UNDER_WAY_NS)]
            counting = [one for one in acknowledged if not any(each.excuses(one, receipt.at_ns) for each in forgotten)]
            if counting:
                since_ns = min(one.acknowledged_at_ns or 0 for one in counting)
                repeated.append((receipt, (receipt.at_ns - since_ns) / _NS))
            forgiven += bool(acknowledged) and not counting
        before.append(receipt)
    return Judgement(_lost(stored, known), disordered, repeated, again, forgiven, len(known))


def judge_shared(stored: Iterable[Numbered], receipts: Iterable[Receipt]) -> Judgement:
    """Judge a shared subscription: everything comes and is acknowledged, in any order and as often as it likes."""
    known = list(receipts)
    again = len(known) - len({one.message for one in known})
    return Judgement(lost=_lost(stored, known), again=again, receipts=len(known))


def _lost(stored: Iterable[Numbered], receipts: Iterable[Receipt]) -> list[Numbered]:
    return sorted(set(stored) - {one.message for one in receipts if one.acknowledged_at_ns is not None})


def _is_acknowledged(receipt: Receipt, at_ns: int) -> bool:
    return receipt.acknowledged_at_ns is not None and receipt.acknowledged_at_ns < at_ns
