"""The load pipeline over a fleet of brokers, on one core and on two: its speed, what it writes, what it needs."""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.measuring import Rate, table
from bench.process_tree import Usage, usage
from dev.access import PulsarAccess

BROKERS = 50
_CORES = (1, 2)
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


async def report(segments: int) -> str:
    """Measure one driver after the other over the same fleet; records go to the real broker of the environment.

    Args:
        segments: of all brokers together.
    """
    access = PulsarAccess.from_environment()
    command = [sys.executable, "-m", "bench.segment_load_fleet", "--real-admin-url", access.admin_url]
    command += ["--brokers", str(BROKERS), "--segments", str(segments // BROKERS), "--raised", *map(str, _RAISED)]
    fleet = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert fleet.stdout is not None
    try:
        ready = json.loads(await fleet.stdout.readline())
        runs = [await _run(cores, ready["admin_url"], access, fleet.pid) for cores in _CORES]
        for run in runs:
            # A batch that takes longer than a period has all segments begin anew, and then they tell of nothing.
            if run.median(100, "records") < segments:
                raise RuntimeError(f"on {run.cores} cores batches took too long for segments to count; is it quiet?")
    finally:
        fleet.terminate()
        await fleet.wait()
    intro = (
        f"{BROKERS} brokers, {segments:,} segments with a producer, a subscription and a consumer each; the answers of "
        f"all brokers are {ready['answer_bytes'] / _MEGABYTE:.0f} MB. Java has a heap of {_HEAP}. A driver on one core "
        "has that core for Java and Python together.\n"
    )
    return "\n".join(
        [
            intro,
            *_speeds(runs, segments),
            _times(runs),
            _written(runs[-1]),
            _needs(runs),
            _planned(runs[-1], segments, ready["answer_bytes"]),
        ]
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


def _speeds(runs: Sequence[_Run], segments: int) -> Iterable[str]:
    for share in _RAISED:
        rates = [
            Rate(
                f"{run.cores} {'core' if run.cores == 1 else 'cores'}",
                tuple(segments / one["whole_seconds"] for one in run.batches[share]),
            )
            for run in runs
        ]
        yield table(f"{share} % of the segments change materially", "segments/s", rates)


def _times(runs: Sequence[_Run]) -> str:
    lines = [
        f"## A batch, beside the interval of {_INTERVAL_SECONDS:g} s\n",
        "| cores | of segments change | reading | state | records, pulse | whole batch | of the interval | records "
        "| records/s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        for share in _RAISED:
            parts = ("read_seconds", "state_seconds", "records_seconds", "whole_seconds")
            cells = [f"{run.median(share, name):.2f} s" for name in parts]
            whole, records = run.median(share, "whole_seconds"), run.median(share, "records")
            cells += [f"{whole / _INTERVAL_SECONDS:.0%}", f"{records:,.0f}", f"{records / whole:,.0f}"]
            lines.append(f"| {run.cores} | {share} % | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _written(run: _Run) -> str:
    naive = run.median(100, "record_bytes")
    lines = [
        "## Bytes written in a batch, beside writing all records anew\n",
        "| of segments change | records | to the topic | of writing all anew | state kept |",
        "|---|---|---|---|---|",
    ]
    for share in _RAISED:
        stored = run.median(share, "record_bytes")
        lines.append(
            f"| {share} % | {run.median(share, 'records'):,.0f} | {stored / 1000:,.1f} kB | {stored / naive:.2%} "
            f"| {run.median(share, 'state_bytes') / _MEGABYTE:.1f} MB |"
        )
    return "\n".join(lines) + "\n"


def _needs(runs: Sequence[_Run]) -> str:
    lines = [
        "## What it needs\n",
        "| cores | Java, most resident | Python, most resident | processor time a batch: 1 % change | all change "
        "| the rest of the machine: 1 % | all | the fleet, of its whole run |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        cells = [f"{most / _MEGABYTE:,.0f} MB" for most in (run.most.java_bytes, run.most.python_bytes)]
        cells += [
            f"{run.median(share, name):.1f} s" for name in ("cpu_seconds", "other_cpu_seconds") for share in (1, 100)
        ]
        lines.append(f"| {run.cores} | {' | '.join(cells)} | {run.fleet_cpu_seconds:.1f} s |")
    return "\n".join(lines) + "\n"


def _planned(run: _Run, segments: int, answer_bytes: int) -> str:
    """A fleet that was not measured: everything as many times as there are more segments, 1 % of which change."""
    times = _PLANNED_SEGMENTS / segments
    cpu_seconds = run.median(1, "cpu_seconds") * times
    others = run.median(1, "other_cpu_seconds") * times / _INTERVAL_SECONDS
    record_bytes = run.median(100, "record_bytes") / run.median(100, "records")
    records = _PLANNED_SEGMENTS / 100 / _INTERVAL_SECONDS
    rows = (
        ("processor time of a batch", f"{cpu_seconds:.0f} s"),
        (
            f"cores for a batch every {_INTERVAL_SECONDS:g} s, busy for {_PLANNED_LOAD:.0%} of it",
            f"{cpu_seconds / (_INTERVAL_SECONDS * _PLANNED_LOAD):.0f}",
        ),
        ("interval that the cores of this run would keep", f"{run.median(1, 'whole_seconds') * times:.0f} s"),
        ("resident memory of Java and Python, at most", f"{_resident(run) * times / 1e9:.0f} GB"),
        ("state written in every batch", f"{run.median(1, 'state_bytes') * times / _MEGABYTE:.0f} MB"),
        ("records a second", f"{records:,.0f}"),
        ("written to the topic, by the second", f"{records * record_bytes / 1000:,.0f} kB"),
        ("the topic after compaction", f"{_PLANNED_SEGMENTS * record_bytes / _MEGABYTE:.0f} MB"),
        (f"sent by each of {BROKERS} brokers in a batch", f"{answer_bytes * times / BROKERS / _MEGABYTE:.0f} MB"),
        ("cores for the broker that keeps the records and for the fleet, at most", f"{others:.1f}"),
    )
    return "\n".join(
        [
            f"## {_PLANNED_SEGMENTS:,} segments, on paper\n",
            f"Not measured: {times:g} times what {run.cores} cores did with 1 % of {segments:,} segments changing.\n",
            "| | |",
            "|---|---|",
            *(f"| {what} | {much} |" for what, much in rows),
            "",
        ]
    )


def _resident(run: _Run) -> int:
    return run.most.java_bytes + run.most.python_bytes
