"""Classic topics of this operator on Pulsar 4 and native ones of Pulsar 5: how long changes take, and who waits."""

import asyncio
from collections.abc import Iterator, Sequence

from bench.measurement import Better, Group, Measured, Measurement, Target
from bench.section import Run, Section, Servers
from bench.stage import stage
from dev.access import PulsarAccess
from dev.errors import DevError
from tests.support.operator_guarantee import percentile
from tests.support.running_operator import RunningOperator
from tests.support.side_by_side import (
    CREATE,
    FLAGS,
    KEYS,
    MERGE,
    PER_SECOND,
    SEGMENTS,
    SIZE_BYTES,
    SPLIT,
    Side,
    measured,
)
from tests.support.world_making import create_namespace, random_name

# In a round, on each side: so many splits, as many merges, and as many topics made.
_TURNS = 10
_SPLIT_P50 = Target("half of all splits keep no message of a producer waiting longer than 100 ms", 100)
_SPLIT_P99 = Target("99 % of all splits keep no message of a producer waiting longer than 500 ms", 500)
_WAITS = (
    "Producers of this library are told of a change before it happens and hold messages only from the terminated "
    "parent to the next layout."
)
_MAKES = (
    "On Classic the operator makes every segment with its cursors and its record, one call each or more, and publishes "
    "the layout; brokers that own layouts do it in one call."
)
_CHANGES = (
    "On Classic the operator journals each step in the object, makes the children, waits until producers have let go, "
    "terminates the parent and looks twice whether it is sealed; brokers that own layouts do it in one call."
)
_REASONS = {
    **{f"Stall of a {kind}: {part}": _WAITS for kind in (SPLIT, MERGE) for part in ("p50", "p99")},
    **{f"{SEGMENTS} segments made, by an object: {part}": _MAKES for part in ("p50", "p99")},
    **{f"A {kind}, by an object: {part}": _CHANGES for kind in (SPLIT, MERGE) for part in ("p50", "p99")},
}


async def _measure(run: Run) -> Measured:
    native = PulsarAccess.native_from_environment()
    if native is None:
        raise DevError("the environment names no brokers of Pulsar 5")
    count = run.rounds * run.size(_TURNS, 1)
    async with stage() as on:
        namespace = random_name("stalls")
        await create_namespace(on.kube, namespace)
        operator = RunningOperator(on.kubeconfig, namespace, on.folder / "operator.log", FLAGS)
        await asyncio.to_thread(operator.start)
        try:
            sides = await measured(on.kube, namespace, on.pulsar, native, on.folder, creations=count, turns=count)
        finally:
            operator.kill()
    return Measured(tuple(_groups(sides, run.rounds)), tuple(_notes(sides)))


SECTION = Section(
    "stalls",
    "Changes beside Pulsar 5",
    "Topics of this operator on Pulsar 4 (Classic), and topics whose layout brokers of Pulsar 5 own (Native), with one "
    "operator, one API server and a broker of each line, by turns. On each side a producer sends "
    f"{PER_SECOND:.0f} messages a second of {SIZE_BYTES} bytes over {KEYS} keys, one after the other and unbatched: "
    "this library on Classic, Pulsar's V5 client for Java on Native. A stall is the longest that a message under way "
    "during a change took to be stored. A topic is made until its object is Ready; a segment is split and its halves "
    "merged again until the SegmentOperation has succeeded. The brokers' calls alone are made on a topic without "
    "clients: on Pulsar 5 the call itself, on Classic the topics made and those terminated, without cursors, records "
    "and announcement. p50 is that of each round, p99 that of all rounds together.",
    _measure,
    Servers.BOTH,
    _REASONS,
)


def _groups(sides: Sequence[Side], rounds: int) -> Iterator[Group]:
    for kind in (SPLIT, MERGE):
        targets = (_SPLIT_P50, _SPLIT_P99) if kind == SPLIT else (None, None)
        yield from _pair(f"Stall of a {kind}", sides, [side.stalls_ms(kind) for side in sides], rounds, targets)
    for kind in (CREATE, SPLIT, MERGE):
        what = f"{SEGMENTS} segments made" if kind == CREATE else f"A {kind}"
        yield from _pair(f"{what}, by an object", sides, [side.objects_ms[kind] for side in sides], rounds)
        bare_ms = [side.bare_ms[kind] for side in sides]
        # Of what they do these calls are no equals.
        yield from _pair(f"{what}, the brokers' calls alone", sides, bare_ms, rounds, is_peer=False)


def _pair(
    title: str,
    sides: Sequence[Side],
    found: Sequence[Sequence[float]],
    rounds: int,
    targets: tuple[Target | None, Target | None] = (None, None),
    *,
    is_peer: bool = True,
) -> Iterator[Group]:
    """The median of each round, and the 99th of 100 of all; Native is the peer."""
    halves, most = [], []
    for side, ms in zip(sides, found, strict=True):
        of_p50, of_p99 = targets if side.backend == "Classic" else (None, None)
        each = len(ms) // rounds
        medians = tuple(percentile(sorted(ms[number * each : (number + 1) * each]), 0.5) for number in range(rounds))
        halves.append(Measurement(side.name, "ms", medians, Better.LOWER, of_p50))
        most.append(Measurement(side.name, "ms", (percentile(sorted(ms), 0.99),), Better.LOWER, of_p99))
    yield Group(f"{title}: p50", tuple(halves), reference=halves[-1].name, is_peer=is_peer)
    yield Group(f"{title}: p99", tuple(most), reference=most[-1].name, is_peer=is_peer)


def _notes(sides: Sequence[Side]) -> Iterator[str]:
    for side in sides:
        ms = sorted(1000 * took for _, took in side.sends)
        yield (
            f"{side.name}: {len(ms):,} messages stored, none lost, {side.repeated} came again; all took "
            f"{percentile(ms, 0.5):.0f} ms at p50, {percentile(ms, 0.99):.0f} ms at p99 and {ms[-1]:.0f} ms at most."
        )
