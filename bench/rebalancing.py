"""How many segments change hands when consumers come and go: as dealt, at the least, and dealt round robin anew."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from bench.measurement import Better, Group, Measured, Measurement
from bench.section import Run, Section
from scalable_topics_operator.assignment.sharing import share

Deal = Callable[[Sequence[int], Sequence[str], Mapping[int, str]], dict[int, str]]
Step = tuple[Sequence[int], Sequence[str]]

_SIZES = (8, 64, 512)
_CONSUMERS = 8
_WALK = 200


def report() -> str:
    """A Markdown table. Every step of a story hands over segments from the readers of the step before."""
    lines = [
        "## Segments that change hands\n",
        "| segments | story | steps | moved, of all read | at the least | ratio to the least | round robin anew |",
        "|---|---|---|---|---|---|---|",
    ]
    for segments in _SIZES:
        for name, steps in _stories(segments).items():
            read, moved, least = _told(steps, _sticky)
            _, anew, _ = _told(steps, _round_robin)
            ratio = f"{moved / least:.2f}" if least else "none to move"
            lines.append(
                f"| {segments} | {name} | {len(steps) - 1} | {moved} of {read} ({moved / read:.1%}) | {least} "
                f"| {ratio} | {anew} ({anew / read:.1%}) |"
            )
    return "\n".join(lines) + "\n"


async def _measure(run: Run) -> Measured:
    return Measured(tuple(Group(f"{segments} segments", tuple(_rows(segments))) for segments in _SIZES))


def _rows(segments: int) -> Iterator[Measurement]:
    for name, steps in _stories(segments).items():
        read, moved, least = _told(steps, _sticky)
        _, anew, _ = _told(steps, _round_robin)
        beside = f"of {read:,} read; the least is {least:,}, round robin anew moves {anew:,}"
        yield Measurement(f"{name}, {beside}", "moved", (moved,), Better.LOWER, is_exact=True)


SECTION = Section(
    "rebalancing",
    "Segments that change hands",
    "How many segments get another reader when consumers come and go, summed over the steps of a story. They are dealt "
    "by the operator's own code; beside that the fewest that could move if everyone is to have a fair share, and what "
    "moves where segments are dealt round robin anew at each step.",
    _measure,
)


def _stories(count: int) -> dict[str, list[Step]]:
    segments, names = list(range(count)), [f"c{number}" for number in range(_CONSUMERS + 1)]
    few = names[:-1]
    rolling: list[Step] = [(segments, few)]
    for number, gone in enumerate(few):
        left = [one for one in rolling[-1][1] if one != gone]
        rolling += [(segments, left), (segments, [*left, f"n{number}"])]
    grown = [(segments, names[: number + 1]) for number in range(_CONSUMERS)]
    return {
        "one of 8 is joined by a ninth": [(segments, few), (segments, names)],
        "one of 8 leaves": [(segments, few), (segments, few[:-1])],
        "8 are replaced, one after the other": rolling,
        "from 1 to 8 and back": [*grown, *reversed(grown[:-1])],
        f"{_WALK} random joins and leaves": _walk(segments),
    }


def _walk(segments: list[int]) -> list[Step]:
    chances = random.Random(1)
    steps: list[Step] = [(segments, ["c0"])]
    for number in range(_WALK):
        present = list(steps[-1][1])
        if len(present) > 1 and chances.random() < 0.5:
            present.remove(chances.choice(present))
        else:
            present.append(f"j{number}")
        steps.append((segments, present))
    return steps


def _told(steps: Sequence[Step], deal: Deal) -> tuple[int, int, int]:
    """Segments read after each step, those of them that were moved, and how many had to be."""
    readers: dict[int, str] = {}
    read = moved = least = 0
    for segments, consumers in steps:
        before = readers
        readers = deal(segments, consumers, before)
        if before:
            read += len(segments)
            moved += sum(before[segment] != reader for segment, reader in readers.items())
            least += _least(before, consumers)
    return read, moved, least


def _least(before: Mapping[int, str], consumers: Sequence[str]) -> int:
    """Those of readers that are gone, and what others have above fair shares."""
    had = Counter(before.values())
    fair, one_more = divmod(len(before), len(consumers))
    kept = sorted((had[name] for name in consumers), reverse=True)
    return len(before) - sum(min(have, fair + (place < one_more)) for place, have in enumerate(kept))


def _sticky(segments: Sequence[int], consumers: Sequence[str], before: Mapping[int, str]) -> dict[int, str]:
    claims = {segment: (reader,) for segment, reader in before.items()}
    return {segment: reader for segment, (reader,) in share(segments, consumers, claims, {}, ()).items()}


def _round_robin(segments: Sequence[int], consumers: Sequence[str], before: Mapping[int, str]) -> dict[int, str]:
    names = sorted(consumers)
    return {segment: names[place % len(names)] for place, segment in enumerate(segments)}
