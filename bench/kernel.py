"""Layout kernel: splits applied, routes found and records read at different sizes of the layout."""

import time
from collections.abc import Callable

from bench.measurement import Better, Group, Measured, Measurement
from bench.section import Run, Section
from scalable_topics.layout import SegmentLayout, from_record, key_hash, route, to_record

_SIZES = (4, 64, 512)
_FULL_MS, _SMALL_MS = 300, 20


async def _measure(run: Run) -> Measured:
    seconds = run.size(_FULL_MS, _SMALL_MS) / 1000
    groups = []
    for title, unit, make in (
        ("Split of one segment", "splits/s", _split),
        ("Route of 64 keys", "times/s", _route),
        ("Record written and read", "records/s", _record),
    ):
        work = {_name(size): make(size) for size in _SIZES}
        rates: dict[str, list[float]] = {name: [] for name in work}
        for _ in range(run.rounds):
            for name, one in work.items():
                rates[name].append(_rate(one, seconds))
        rows = tuple(Measurement(name, unit, tuple(found), Better.HIGHER) for name, found in rates.items())
        groups.append(Group(title, rows, reference=_name(_SIZES[0])))
    return Measured(tuple(groups))


SECTION = Section(
    "kernel",
    "Layouts: split, route, record",
    "What is done to a layout in memory, at different numbers of segments; ratios are to the smallest.",
    _measure,
)


def _name(size: int) -> str:
    return f"{size} segments"


def _rate(work: Callable[[], object], seconds: float) -> float:
    done, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
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
