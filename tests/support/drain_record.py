"""How the consumers of a subscription drained a backlog that is too large to be kept in memory as receipts, by reading
their logs (`tests.support.consumption`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from pathlib import Path

_NS = 1_000_000_000
_Line = tuple[int, int, int, str, str, int]
"""When, who by number, which segment, and whose message: producer, key, counter."""


@dataclass(frozen=True, slots=True)
class DrainRecord:
    """What was seen.

    Args:
        seconds: from the first message of the backlog to the last one.
        busy_seconds: from the first message to when every consumer had had one.
        shares: messages of the backlog by consumer.
        received: messages, of the backlog and others.
        again: how many of these had been received before.
        disordered: how many were received although the message before it of its key had not been.
        lost: how many were never received.
        unacknowledged: how many were received by somebody who did not acknowledge them.
        early: how many of other segments were received before the last one of the backlog.
    """

    seconds: float
    busy_seconds: float
    shares: Sequence[int]
    received: int
    again: int
    disordered: int
    lost: int
    unacknowledged: int
    early: int


def read_drain(logs: Sequence[Path], stored: Mapping[tuple[str, str], int], backlog_segment: int) -> DrainRecord:
    """Judge what consumers have written.

    Args:
        logs: of all consumers.
        stored: how many messages there are, by producer and key, each numbered from 0.
        backlog_segment: id of the segment that has the backlog.
    """
    unacknowledged: Counter[int] = Counter()
    shares: Counter[int] = Counter()
    first_ns: dict[int, int] = {}
    last_ns = 0
    # The number that comes next, and the highest one that has come, by key.
    expected: Counter[tuple[str, str]] = Counter()
    reached: Counter[tuple[str, str]] = Counter()
    received = again = disordered = others = others_by_the_end = 0
    for at_ns, who, segment, producer, key, counter in merge(
        *(_received(log, number, unacknowledged) for number, log in enumerate(logs))
    ):
        received += 1
        if segment == backlog_segment:
            first_ns.setdefault(who, at_ns)
            last_ns, others_by_the_end = at_ns, others
            shares[who] += 1
        else:
            others += 1
        lane = (producer, key)
        disordered += counter > expected[lane]
        again += counter < reached[lane]
        expected[lane] = counter + 1
        reached[lane] = max(reached[lane], counter + 1)
    began_ns = min(first_ns.values(), default=0)
    return DrainRecord(
        seconds=(last_ns - began_ns) / _NS,
        busy_seconds=(max(first_ns.values(), default=0) - began_ns) / _NS,
        shares=[shares[number] for number in range(len(logs))],
        received=received,
        again=again,
        disordered=disordered,
        lost=sum(max(0, count - reached[lane]) for lane, count in stored.items()),
        unacknowledged=sum(unacknowledged.values()),
        early=others_by_the_end,
    )


def _received(log: Path, number: int, unacknowledged: Counter[int]) -> Iterator[_Line]:
    with log.open() as lines:
        for line in lines:
            match line.split():
                case ["R", at, part, _, producer, key, counter]:
                    unacknowledged[number] += 1
                    yield int(at), number, int(part.partition("/")[0]), producer, key, int(counter)
                case ["A", _, count]:
                    unacknowledged[number] -= int(count)
