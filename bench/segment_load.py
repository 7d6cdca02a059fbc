"""The load pipeline over a fleet of brokers, on one core and on two: its speed, what it writes, what it needs."""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.measurement import Better, Group, Measured, Measurement, Of, Target
from bench.process_tree import Usage, usage
from bench.section import Run, Section, Servers
from dev.access import PulsarAccess

BROKERS = 50
_SEGMENTS = 100_000
_CORES = (1, 2)
_TARGET = Target("the pipeline does at least 1.7 times as much on two cores as on one", 1.7, Of.RATIO)
_PARTS = {
    "read_seconds": "reading",
    "state_seconds": "state",
    "records_seconds": "records and pulse",
    "whole_seconds": "the whole batch",
}
_RAISED = (0, 1, 10, 100)
_HEAP = "2g"
_INTERVAL_SECONDS = 10.0
_SAMPLE_SECONDS = 0.3
_PLANNED_SEGMENTS = 1_000_000
# What is left of the cores for batches that last longer than the median.
_PLANNED_LOAD = 0.7
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class _Run:
    """A driver's run: batches by the share of segments that changed, and the most it had resident."""

    cores: int
    batches: dict[int, list[dict[str, Any]]]
    most: Usage
    fleet_cpu_seconds: float

    def median(self, share: int, name: str) -> float:
        return float(statistics.median(one[name] for one in self.batches[share]))


async def _measure(run: Run) -> Measured:
    """One driver after the other over the same fleet; records go to the real broker of the environment."""
    access = PulsarAccess.from_environment()
    segments, brokers = run.size(_SEGMENTS, 200), run.size(BROKERS, 2)
    command = [sys.executable, "-m", "bench.segment_load_fleet", "--real-admin-url", access.admin_url]
    command += ["--brokers", str(brokers), "--segments", str(segments // brokers), "--raised", *map(str, _RAISED)]
    fleet = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert fleet.stdout is not None
    try:
        ready = json.loads(await fleet.stdout.readline())
        runs = [await _run(cores, ready["admin_url"], access, fleet.pid) for cores in _CORES]
        for one in runs:
            # A batch that takes longer than a period has all segments begin anew, and then they tell of nothing.
            if one.median(100, "records") < segments:
                raise RuntimeError(f"on {one.cores} cores batches took too long for segments to count; is it quiet?")
    finally:
        fleet.terminate()
        await fleet.wait()
    groups = (*_speeds(runs, segments), *_records(runs), *_times(runs), _written(runs[-1]), _needs(runs))
    size = f"{segments:,} segments; the answers of all brokers are {ready['answer_bytes'] / _MEGABYTE:.0f} MB."
    return Measured((*groups, _planned(runs[-1], segments, ready["answer_bytes"])), (size,))


SECTION = Section(
    "pipeline",
    "The load pipeline on Spark",
    f"A driver over {BROKERS} brokers whose statistics are rendered beforehand, on one core and on two, batch after "
    f"batch; a segment has a producer, a subscription and a consumer. Java has a heap of {_HEAP}. A driver on one core "
    "has that core for Java and Python together, and where it has two it shares them with the fleet and with the "
    f"broker that keeps the records. The default interval is {_INTERVAL_SECONDS:g} s. Rounds are batches.",
    _measure,
    Servers.CLASSIC,
)


async def _run(cores: int, admin_url: str, access: PulsarAccess, fleet: int) -> _Run:
    topic = f"persistent://public/default/bench-load-{uuid.uuid4().hex[:10]}"
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.segment_load_driver", "--cores", str(cores), "--heap", _HEAP),
            *("--admin-url", admin_url, "--service-url", access.service_url, "--records-topic", topic),
            *("--token-file", str(access.superuser_token_file), "--results-file", str(results)),
        )
        fleet_before = usage(fleet).cpu_seconds
        seen: list[Usage] = []
        ended = asyncio.create_task(process.wait())
        try:
            while not ended.done():
                seen.append(usage(process.pid))
                await asyncio.wait([ended], timeout=_SAMPLE_SECONDS)
        finally:
            if not ended.done():
                process.kill()
                await ended
        if process.returncode != 0:
            raise RuntimeError(f"the driver on {cores} cores has failed")
        measured = json.loads(results.read_text(encoding="utf-8"))
    batches: dict[int, list[dict[str, Any]]] = {share: [] for share in _RAISED}
    for one in measured:
        batches[one["share"]].append(one)
    most = Usage(
        max(one.cpu_seconds for one in seen),
        max(one.java_bytes for one in seen),
        max(one.python_bytes for one in seen),
    )
    return _Run(cores, batches, most, usage(fleet).cpu_seconds - fleet_before)


def _name(run: _Run) -> str:
    return f"{run.cores} {'core' if run.cores == 1 else 'cores'}"


def _speeds(runs: Sequence[_Run], segments: int) -> Iterator[Group]:
    for share in _RAISED:
        rows = [
            Measurement(
                _name(run),
                "segments/s",
                tuple(segments / one["whole_seconds"] for one in run.batches[share]),
                Better.HIGHER,
                _TARGET if run.cores == 2 and share == 1 else None,
            )
            for run in runs
        ]
        yield Group(f"{share} % of the segments change materially", tuple(rows), reference=_name(runs[0]))


def _records(runs: Sequence[_Run]) -> Iterator[Group]:
    for share in _RAISED[1:]:
        rows = [
            Measurement(
                _name(run),
                "records/s",
                tuple(one["records"] / one["whole_seconds"] for one in run.batches[share]),
                Better.HIGHER,
            )
            for run in runs
        ]
        yield Group(f"Records written a second, when {share} % change", tuple(rows), reference=_name(runs[0]))


def _times(runs: Sequence[_Run]) -> Iterator[Group]:
    for run in runs:
        rows = [
            Measurement(f"{share} % change: {part}", "s", _all(run, share, key), Better.LOWER)
            for share in (1, 100)
            for key, part in _PARTS.items()
        ]
        yield Group(f"Where the time of a batch goes, on {_name(run)}", tuple(rows))


def _written(run: _Run) -> Group:
    rows = [
        Measurement(
            f"{share} % change", "kB", tuple(one / 1000 for one in _all(run, share, "record_bytes")), Better.LOWER
        )
        for share in _RAISED
    ]
    state = tuple(one / _MEGABYTE for one in _all(run, 1, "state_bytes"))
    rows.append(Measurement("state kept, 1 % change", "MB", state, Better.LOWER))
    return Group("Written to the topic in a batch, beside writing all anew", tuple(rows), reference="100 % change")


def _needs(runs: Sequence[_Run]) -> Group:
    rows: list[Measurement] = []
    for run in runs:
        name = _name(run)
        for what, most in (("Java", run.most.java_bytes), ("Python", run.most.python_bytes)):
            rows.append(Measurement(f"{name}: {what}, most resident", "MB", (most / _MEGABYTE,), Better.LOWER))
        for share in (1, 100):
            rows += [
                Measurement(f"{name}: {what}, {share} % change", "CPU s a batch", _all(run, share, key), Better.LOWER)
                for key, what in (("cpu_seconds", "the driver"), ("other_cpu_seconds", "the rest of the machine"))
            ]
        fleet = (run.fleet_cpu_seconds,)
        rows.append(Measurement(f"{name}: the fleet, of its whole run", "CPU s", fleet, Better.LOWER))
    return Group("What it needs", tuple(rows))


def _planned(run: _Run, segments: int, answer_bytes: int) -> Group:
    """A fleet that was not measured: everything as many times as there are more segments, 1 % of which change."""
    times = _PLANNED_SEGMENTS / segments
    cpu_seconds = run.median(1, "cpu_seconds") * times
    others = run.median(1, "other_cpu_seconds") * times / _INTERVAL_SECONDS
    record_bytes = run.median(100, "record_bytes") / run.median(100, "records")
    records = _PLANNED_SEGMENTS / 100 / _INTERVAL_SECONDS
    resident = run.most.java_bytes + run.most.python_bytes
    busy = f"busy for {_PLANNED_LOAD:.0%} of it"
    rows = (
        ("processor time of a batch", "CPU s", cpu_seconds),
        (
            f"for a batch every {_INTERVAL_SECONDS:g} s, {busy}",
            "cores",
            cpu_seconds / _INTERVAL_SECONDS / _PLANNED_LOAD,
        ),
        ("interval that the cores of this run would keep", "s", run.median(1, "whole_seconds") * times),
        ("resident memory of Java and Python, at most", "GB", resident * times / 1e9),
        ("state written in every batch", "MB", run.median(1, "state_bytes") * times / _MEGABYTE),
        ("records to the topic", "records/s", records),
        ("written to the topic", "kB/s", records * record_bytes / 1000),
        ("the topic after compaction", "MB", _PLANNED_SEGMENTS * record_bytes / _MEGABYTE),
        (f"sent by each of {BROKERS} brokers in a batch", "MB", answer_bytes * times / BROKERS / _MEGABYTE),
        ("for the broker that keeps the records and for the fleet, at most", "cores", others),
    )
    title = f"{_PLANNED_SEGMENTS:,} segments on paper, {times:g} times what {_name(run)} did with 1 % changing"
    return Group(title, tuple(Measurement(what, unit, (much,), Better.NEITHER) for what, unit, much in rows))


def _all(run: _Run, share: int, name: str) -> tuple[float, ...]:
    return tuple(one[name] for one in run.batches[share])
