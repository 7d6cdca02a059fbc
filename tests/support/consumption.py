"""What the consumers of a subscription received and acknowledged, each in a process with a log of its own.

A log has a line for every message received, in order; one for every acknowledgement of the messages before it; and one
for every checkpoint that is committed. The latter two are written before the call that does so, and everything received
before them: what is not on record as acknowledged never was.
Times are of the machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from scalable_topics.layout import Part
from tests.support.guarantee_checker import Numbered

Place = tuple[int, ...]
"""Where a message is in its segment: ledger, entry, index within a batch."""


class Kind(StrEnum):
    """Kinds of consumers."""

    STREAM = "stream"
    QUEUE = "queue"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True)
class Receipt:
    """A message as one consumer got it.

    Args:
        message: which one.
        part: what the consumer read of the segment it came from.
        place: it has there.
        consumer: name of the log.
        at_ns: when.
        acknowledged_at_ns: when it was acknowledged; None if it was not.
    """

    message: Numbered
    part: Part
    place: Place
    consumer: str
    at_ns: int
    acknowledged_at_ns: int | None = None


def received_line(payload: bytes, part: Part, place: Place) -> str:
    """The line for a message that was just received."""
    producer, key, counter = Numbered.parse(payload)
    return f"R {time.monotonic_ns()} {_part_text(part)} {_place_text(place)} {producer} {key} {counter}\n"


def acknowledged_line(messages: int) -> str:
    """The line for an acknowledgement of so many messages, the last ones received."""
    return f"A {time.monotonic_ns()} {messages}\n"


def committed_line(positions: Mapping[Part, Place]) -> str:
    """The line for a checkpoint: places by part, each acknowledging what was received of it up to there."""
    texts = [f"{_part_text(part)}@{_place_text(place)}" for part, place in sorted(positions.items())]
    return " ".join(["C", str(time.monotonic_ns()), *texts]) + "\n"


def read_log(consumer: str, text: str) -> list[Receipt]:
    """What a log says; a last line that was cut off when the process died is none."""
    receipts: dict[int, Receipt] = {}
    reader = LogReader(consumer)
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        receipts.update(reader.read(line))
    return list(receipts.values())


class LogReader:
    """Reads a log line by line, and keeps only what is not acknowledged yet.

    Args:
        consumer: name of the log.
    """

    def __init__(self, consumer: str) -> None:
        self._consumer = consumer
        self._received = 0
        self._pending: dict[int, Receipt] = {}

    def read(self, line: str) -> list[tuple[int, Receipt]]:
        """What a whole line tells: receipts with their numbers in the log, new ones or those acknowledged now."""
        match line.split():
            case ["R", at, part, place, producer, key, counter]:
                message = Numbered(producer, key, int(counter))
                receipt = Receipt(message, _read_part(part), _read_place(place), self._consumer, int(at))
                number = self._received
                self._received += 1
                self._pending[number] = receipt
                return [(number, receipt)]
            case ["A", at, count]:
                numbers = list(self._pending)
                return self._acknowledge(numbers[len(numbers) - int(count) :], int(at))
            case ["C", at, *texts]:
                positions = {_read_part(part): _read_place(place) for part, _, place in map(_partition, texts)}
                reached = [number for number, one in self._pending.items() if _is_covered(one, positions)]
                return self._acknowledge(reached, int(at))
            case _:
                raise ValueError(f"{self._consumer}: {line!r} is no line of a log")

    def _acknowledge(self, numbers: Sequence[int], at_ns: int) -> list[tuple[int, Receipt]]:
        return [(number, replace(self._pending.pop(number), acknowledged_at_ns=at_ns)) for number in numbers]


def _is_covered(receipt: Receipt, positions: Mapping[Part, Place]) -> bool:
    return receipt.part in positions and receipt.place <= positions[receipt.part]


def _partition(text: str) -> tuple[str, str, str]:
    return text.partition("@")


def _part_text(part: Part) -> str:
    return f"{part.segment_id}/{part.bucket}"


def _read_part(text: str) -> Part:
    segment_id, _, bucket = text.partition("/")
    return Part(int(segment_id), int(bucket))


def _place_text(place: Place) -> str:
    return ":".join(map(str, place))


def _read_place(text: str) -> Place:
    return tuple(map(int, text.split(":")))
