"""What the consumers of a subscription received and acknowledged, each in a process, and whether that was right.

A log has a line for every message received, in order, and one for every acknowledgement of the messages before it.
Times are of the machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tests.support.guarantee_checker import Numbered

_NS = 1_000_000_000
# pulsar-client keeps an acknowledgement back for a tenth of a second, and a killed process takes it along.
_ACKNOWLEDGED_SECONDS = 1.0


class Kind(StrEnum):
    """Kinds of consumers."""

    STREAM = "stream"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class Receipt:
    """A message as one consumer got it.

    Args:
        message: which one.
        segment: it came from.
        consumer: name of the log.
        at_ns: when.
        acknowledged_at_ns: when it was acknowledged; None if it was not.
    """

    message: Numbered
    segment: int
    consumer: str
    at_ns: int
    acknowledged_at_ns: int | None = None


def received_line(payload: bytes, segment: int) -> str:
    """The line for a message that was just received."""
    producer, key, counter = Numbered.parse(payload)
    return f"R {time.monotonic_ns()} {segment} {producer} {key} {counter}\n"


def acknowledged_line(messages: int) -> str:
    """The line for an acknowledgement of so many messages, the last ones received."""
    return f"A {time.monotonic_ns()} {messages}\n"


def read_log(consumer: str, text: str) -> list[Receipt]:
    """What a log says; a last line that was cut off when the process died is none."""
    receipts: list[Receipt] = []
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        match line.split():
            case ["R", at, segment, producer, key, counter]:
                message = Numbered(producer, key, int(counter))
                receipts.append(Receipt(message, int(segment), consumer, int(at)))
            case ["A", at, count]:
                first = len(receipts) - int(count)
                receipts[first:] = [replace(one, acknowledged_at_ns=int(at)) for one in receipts[first:]]
            case _:
                raise ValueError(f"{consumer}: {line!r} is no line of a log")
    return receipts


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is wrong; empty if the guarantee held.

    Args:
        lost: stored, and received by nobody.
        disordered: received although an earlier message of its key had not been.
        repeated: received again although it had been acknowledged, with the seconds since.
        again: how many were received again, all in all.
        receipts: how many there were.
    """

    lost: Sequence[Numbered] = ()
    disordered: Sequence[Receipt] = ()
    repeated: Sequence[tuple[Receipt, float]] = ()
    again: int = 0
    receipts: int = 0

    def __bool__(self) -> bool:
        return bool(self.lost or self.disordered or self.repeated)

    def __str__(self) -> str:
        return (
            f"{self.receipts} received, {self.again} again, lost {len(self.lost)} {self.lost[:3]}, disorder "
            f"{len(self.disordered)} {self.disordered[:3]}, repeated though acknowledged {len(self.repeated)} "
            f"{self.repeated[:3]}"
        )


@dataclass(slots=True)
class _Key:
    """One key of one producer, as far as it was received."""

    next_counter: int = 0
    acknowledged_at_ns: dict[int, int] = field(default_factory=dict)


def judge_ordered(
    acknowledged: Iterable[Numbered], receipts: Iterable[Receipt], forgiven_ns: Sequence[tuple[int, int]] = ()
) -> Judgement:
    """Judge an ordered subscription: each key's messages come in order and without a gap, and come again only if they
    were not acknowledged.

    Args:
        acknowledged: what producers were told is stored; of each of their keys all, counted from 0.
        receipts: of all consumers of the subscription.
        forgiven_ns: times in which brokers died, which forget acknowledgements of their last seconds.
    """
    keys: defaultdict[tuple[str, str], _Key] = defaultdict(_Key)
    disordered, repeated, again, count = [], [], 0, 0
    for receipt in sorted(receipts, key=lambda one: one.at_ns):
        count += 1
        producer, name, counter = receipt.message
        key = keys[producer, name]
        if counter > key.next_counter:
            disordered.append(receipt)
        elif counter < key.next_counter:
            again += 1
            seconds = _seconds_since(key.acknowledged_at_ns, counter, receipt.at_ns)
            if seconds > _ACKNOWLEDGED_SECONDS and not _is_forgiven(receipt.at_ns, seconds, forgiven_ns):
                repeated.append((receipt, seconds))
        key.next_counter = max(key.next_counter, counter + 1)
        if receipt.acknowledged_at_ns is not None:
            known = key.acknowledged_at_ns.get(counter, receipt.acknowledged_at_ns)
            key.acknowledged_at_ns[counter] = min(known, receipt.acknowledged_at_ns)
    lost = [one for one in acknowledged if one.counter >= keys[one.producer, one.key].next_counter]
    return Judgement(lost, disordered, repeated, again, count)


def judge_shared(acknowledged: Iterable[Numbered], receipts: Iterable[Receipt]) -> Judgement:
    """Judge a shared subscription: everything comes, in any order."""
    got = [one.message for one in receipts]
    lost = sorted(set(acknowledged) - set(got))
    return Judgement(lost=lost, again=len(got) - len(set(got)), receipts=len(got))


def _seconds_since(acknowledged_at_ns: Mapping[int, int], counter: int, at_ns: int) -> float:
    """How long a message had been acknowledged at a time; below 0 if it had not been."""
    return (at_ns - acknowledged_at_ns.get(counter, at_ns + _NS)) / _NS


def _is_forgiven(at_ns: int, seconds: float, forgiven_ns: Sequence[tuple[int, int]]) -> bool:
    acknowledged_ns = at_ns - int(seconds * _NS)
    return any(acknowledged_ns <= end and at_ns >= begin for begin, end in forgiven_ns)
