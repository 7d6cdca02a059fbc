"""`python -m tests.simulation.simulate [--seeds N] [--first N] [--story KIND:SEED]`: many stories at once.

Stops at nothing: every story that fails is named, with the command that tells it again.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

from tests.simulation.kinds import KINDS, Story, stories

_AT_ONCE = 20
_SHOWN_SECONDS = 30.0


@dataclass
class Tally:
    """What came of the stories so far.

    Args:
        told: how many, by kind.
        seconds: of one processor, by kind.
        failed: what each failing one said first.
    """

    told: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys((kind.name for kind in KINDS), 0.0))
    failed: dict[Story, str] = field(default_factory=dict)


def main(arguments: Sequence[str]) -> int:
    """Tell stories; answers the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--story", type=Story.parse, help="tell only this one, KIND:SEED, and show all of it")
    options = parser.parse_args(arguments)
    if options.story is not None:
        options.story.tell()
        print(f"{options.story}: nothing went wrong")
        return 0
    started = time.monotonic()
    tally = tell_all(stories(options.first, options.seeds))
    seconds = time.monotonic() - started
    print(f"{options.seeds} seeds in {seconds:.0f} s, {options.seeds / seconds:.1f} a second")
    for kind in KINDS:
        if tally.told[kind.name]:
            one = 1000 * tally.seconds[kind.name] / tally.told[kind.name]
            print(f"{kind.name}: {tally.told[kind.name]} stories, {one:.0f} ms each on one processor")
    return 1 if tally.failed else 0


def tell_quietly(told: Sequence[Story]) -> list[tuple[Story, float, str]]:
    """Tell some stories; answers each with its time in seconds and what went wrong, empty for nothing."""
    # What replicas log as errors is a fault of a story, and read by it.
    logging.getLogger("scalable_topics_operator").setLevel(logging.ERROR)
    results = []
    for story in told:
        started, wrong = time.process_time(), story.what_went_wrong()
        results.append((story, time.process_time() - started, wrong))
    return results


def tell_all(told: Iterable[Story]) -> Tally:
    """Tell stories on all processors."""
    tally, shown_at = Tally(), time.monotonic()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for results in pool.map(tell_quietly, _parts(told)):
            for story, seconds, wrong in results:
                tally.told[story.kind] += 1
                tally.seconds[story.kind] += seconds
                if wrong:
                    tally.failed[story] = wrong
                    print(f"{story}: {wrong}\n    again: make simulate STORY={story}", flush=True)
            if time.monotonic() - shown_at > _SHOWN_SECONDS:
                shown_at = time.monotonic()
                print(f"{tally.told.total()} stories, {len(tally.failed)} failed", flush=True)
    return tally


def _parts(told: Iterable[Story]) -> Iterator[Sequence[Story]]:
    left = iter(told)
    while part := list(islice(left, _AT_ONCE)):
        yield part


def _begin_anew_unless_ordered() -> None:
    """The order of sets of texts is part of a story, so that of this process has to be the same as that of all."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation.simulate", *sys.argv[1:]])


if __name__ == "__main__":
    _begin_anew_unless_ordered()
    sys.exit(main(sys.argv[1:]))
