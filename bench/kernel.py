"""Layout kernel: splits applied, routes found and records read at different sizes of the layout."""

import time
from collections.abc import Callable

from bench.measuring import Rate, table
from scalable_topics.layout import SegmentLayout, from_record, key_hash, route, to_record

_SIZES = (4, 64, 512)
_SECONDS = 0.3


def report(rounds: int) -> str:
    """Measure each operation at each size; the ratio is to the smallest."""
    parts = []
    for title, unit, make in (
        ("Split of one segment", "splits/s", _split),
        ("Route of 64 keys", "times/s", _route),
        ("Record written and read", "records/s", _record),
    ):
        rates = [Rate(f"{size} segments", tuple(_rate(make(size)) for _ in range(rounds))) for size in _SIZES]
        parts.append(table(title, unit, rates))
    return "\n".join(parts)


def _rate(work: Callable[[], object]) -> float:
    done, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < _SECONDS:
        work()
        done += 1
    return done / elapsed


def _split(size: int) -> Callable[[], object]:
    layout = SegmentLayout.initial(size)
    return lambda: layout.split(0, now_ms=1)


def _route(size: int) -> Callable[[], object]:
    layout = SegmentLayout.initial(size)
    hashes = [key_hash(f"key-{index}") for index in range(64)]

    def work() -> None:
        for value in hashes:
            route(layout, value)

    return work


def _record(size: int) -> Callable[[], object]:
    layout = SegmentLayout.initial(size)
    return lambda: from_record(to_record(layout))
