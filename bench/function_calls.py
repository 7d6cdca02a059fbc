"""How many functions are called for what is done most often: a count that no other work on the machine changes."""

import sys
import types
from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from bench.measurement import Better, Group, Measured, Measurement
from bench.section import Run, Section
from bench.segment_load_fleet import document
from scalable_topics.layout import SegmentLayout, key_hash, parse_classic_segment_name, route
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.decide import Situation, decide
from scalable_topics_operator.autoscale.load import Rates, SegmentLoad
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.gateway.watch_frames import layout_frame
from scalable_topics_operator.load.sampling import Sampling
from scalable_topics_operator.load.statistics import StatisticsTimes, read_bulk
from scalable_topics_operator.load.topic_load import SampledSegment, TopicLoad
from tests.unit.gateway.topics import ORDERS, created

T = TypeVar("T")

_MANY, _FEW = 64, 8
_NOW_MS = 1_700_000_000_000
_HOUR_MS = 3_600_000
_INTERVAL_SECONDS = 60.0
_CONFIG = AutoScaleConfig(max_segments=2 * _MANY)
_HOT, _WARM = 30_000.0, 5_000.0


@dataclass(slots=True)
class CallCounter:
    """Counts calls of functions of Python and of C, while it is told to.

    Args:
        calls: counted so far.
        waits: how often a coroutine had to wait.
    """

    calls: int = 0
    waits: int = 0

    def of(self, work: Callable[[], object]) -> int:
        """How many calls a piece of work makes the second time: the first fills caches."""
        work()
        self.calls = 0
        self._counted(work)
        return self.calls

    @types.coroutine
    def along(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Await a coroutine, and count what is called in it and not what others do while it waits."""
        value: Any = None
        while True:
            try:
                waits_for = self._counted(partial(work.send, value))
            except StopIteration as done:
                result: T = done.value
                return result
            self.waits += 1
            value = yield waits_for

    def _counted(self, work: Callable[[], T]) -> T:
        sys.setprofile(self._see)
        try:
            return work()
        finally:
            sys.setprofile(None)
            # It has seen itself being taken away.
            self.calls -= 1

    def _see(self, frame: types.FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            self.calls += 1


async def _measure(run: Run) -> Measured:
    counter = CallCounter()
    rows = (
        Measurement(name, "calls", (counter.of(work),), Better.LOWER, is_exact=True) for name, work in _work().items()
    )
    return Measured((Group("Function calls", tuple(rows)),))


SECTION = Section(
    "function-calls",
    "What is done most often, in function calls",
    "Calls of functions of Python and of C, counted by `sys.setprofile`, the second time that the same is done. "
    "Such a count is the same in every run of the same code with the same Python, so that any difference is one of "
    "the code.",
    _measure,
)


def _work() -> Mapping[str, Callable[[], object]]:
    layout = SegmentLayout.initial(8 * _MANY)
    some_hash = key_hash("key-1")
    return {
        f"decide() on {_MANY} warm segments: no rule fires": _decision({}),
        f"decide() on {_MANY} segments of which one is hot: a split": _decision({_MANY // 2: _HOT}),
        f"decide() on {_MANY} cold segments: a merge": _decision(dict.fromkeys(range(_MANY), 1.0)),
        f"a key's segment among {8 * _MANY}": lambda: route(layout, some_hash),
        f"a load sample of a topic of {_FEW} segments, from the broker's answer on": _sample(),
        f"a watch frame of a topic of {_FEW} segments": _frame(),
    }


def _decision(rates: Mapping[int, float]) -> Callable[[], object]:
    layout = SegmentLayout.initial(_MANY)
    loads = {
        number: SegmentLoad(Rates(rates.get(number, _WARM)), _NOW_MS - (_HOUR_MS if rates.get(number) == 1.0 else 0))
        for number in range(_MANY)
    }
    situation = Situation(layout, loads, {"orders": _MANY // 2}, _CONFIG, Clocks(), _NOW_MS)
    return lambda: decide(situation)


def _sample() -> Callable[[], object]:
    """Rounds follow each other, as they do: what a topic's load was is known from the ones before."""
    answer = document(0, _FEW, 0)
    names = [topic for topic, _ in read_bulk(answer)]
    segments = {parsed[2]: SampledSegment(name, 0) for name in names if (parsed := parse_classic_segment_name(name))}
    if len(segments) != _FEW:
        raise RuntimeError(f"these are no segments of one topic: {names}")
    sampling, load, times = Sampling(), TopicLoad(), StatisticsTimes()
    at_ms = _NOW_MS

    def take() -> None:
        nonlocal at_ms
        at_ms += int(_INTERVAL_SECONDS * 1000)
        sample = sampling.take(
            {"broker": read_bulk(answer)}, {}, at_ms=at_ms, times=times, interval_seconds=_INTERVAL_SECONDS
        )
        load.take(sample, segments, _CONFIG, times.most_gap_seconds(_INTERVAL_SECONDS))

    # A topic counts from one whole period after it was first seen.
    take()
    take()
    return take


def _frame() -> Callable[[], object]:
    state, leader = created(_FEW), Peer("replica", "127.0.0.1:1", is_me=True, term=1)
    return lambda: layout_frame(ORDERS, state, leader, hold_ms=10_000, least_term=0)
