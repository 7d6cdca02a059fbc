"""Hours of faults under traffic, after which nothing has grown: `make soak HOURS=…`, 20 minutes if that is left out."""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from dev.instance import LocalCluster, Shape
from scalable_topics_operator.cluster.kube_client import KubeClient
from tests.support.crds import install_crds
from tests.support.embedded_pipeline import FOLLOWED
from tests.support.evidence import Evidence, table
from tests.support.soak import verdict
from tests.support.soak.faults import Faults
from tests.support.soak.leftovers import Settled, inventory, until_settled
from tests.support.soak.reading import Outages
from tests.support.soak.samples import Sampler
from tests.support.soak.schedule import Lane, Planned, plan
from tests.support.soak.sending_process import Sent
from tests.support.soak.stage import LEASE_SECONDS, REPLICAS, Stage, soak_stage
from tests.support.soak.traffic import (
    KEYS,
    MOST,
    ORDERS,
    PER_SECOND,
    PRODUCERS,
    SURGE,
    SURGE_HIGH,
    SURGE_LOW,
    SURGE_PERIOD_SECONDS,
    Traffic,
    traffic,
)

_SECONDS = 3600 * float(os.environ.get("HOURS", "0.33"))
_SEED = int(os.environ.get("SOAK_SEED", "15"))
_NS = 1_000_000_000
# Before the faults begin and after they have ended; what is under way then may take some minutes.
_START_SECONDS, _END_SECONDS = 1200.0, 1800.0
_DRAIN_SECONDS = 240.0
# So many samples that a quarter has enough of them, and not more than hours need.
_SAMPLES_EVERY_SECONDS = min(30.0, max(5.0, _SECONDS / 400))
_WARM_UP_SECONDS = min(600.0, 0.2 * _SECONDS)
# Logs of servers and consumers, ledgers: the run ends when the disk has less than that.
_LEAST_FREE_BYTES = 2 * 1024**3
_DISK_LOOK_SECONDS = 30.0
# Brokers keep positions of cursors at last after so long (managedLedgerCursorPositionFlushSeconds), and a client may
# take so long to find the broker that serves a segment after a death.
_POSITIONS_SECONDS, _AGAIN_SERVED_SECONDS = 60, 30
_FAULTS, _GUARANTEE, _CLIENTS, _LIVES, _SERVERS, _END = (
    "What happened",
    "The guarantee",
    "Processes",
    "Processes that were ended and started again",
    "Servers",
    "In the end",
)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a run has come to."""

    faults: Faults
    clients: Traffic
    sent: Mapping[str, Sent]
    lost: Mapping[str, int]
    sampler: Sampler
    settled: Settled
    used_bytes: int


@pytest.mark.timeout(_START_SECONDS + _SECONDS + _END_SECONDS)
async def test_nothing_grows_under_hours_of_faults(
    local_cluster: Callable[[Shape], LocalCluster], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parts = (_FAULTS, _GUARANTEE, _CLIENTS, _LIVES, _SERVERS, _END)
    page = Evidence("soak.md", "Hours of faults, and what grows", f"make soak HOURS={_SECONDS / 3600:.2g}", parts)
    planned = plan(_SEED, _SECONDS)
    _print_plan(planned)
    cluster = await asyncio.to_thread(local_cluster, Shape(brokers=2))
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubernetes.kubeconfig))
    await asyncio.to_thread(install_crds)
    outages = Outages(_POSITIONS_SECONDS * _NS, _AGAIN_SERVED_SECONDS * _NS)
    async with soak_stage(cluster, tmp_path) as stage, traffic(stage, outages, Random(_SEED)) as clients:
        outcome = await _run(stage, clients, outages, planned)
    series = verdict.measured(outcome.sampler.lives, _WARM_UP_SECONDS)
    servers = verdict.on_servers(outcome.sampler.on_servers, _WARM_UP_SECONDS)
    lives = verdict.compared(outcome.sampler.lives)
    page.show(_FAULTS, *_told_faults(outcome))
    page.show(_GUARANTEE, *_told_guarantee(outcome))
    page.show(_CLIENTS, *_told_processes(), *verdict.told(series))
    page.show(_LIVES, *_told_lives(), *verdict.told_lives(lives))
    page.show(_SERVERS, *_told_servers(), *verdict.told(servers))
    page.show(_END, *_told_end(outcome))
    print(*_told_faults(outcome), *_told_guarantee(outcome), sep="\n")
    print(*verdict.told(series), *verdict.told_lives(lives), *verdict.told(servers), *_told_end(outcome), sep="\n")
    assert not any(outcome.lost.values()), outcome.lost
    for name, reading in outcome.clients.readings.items():
        assert not reading.ledger.verdict, f"{name}: {reading.ledger.verdict}"
    assert not outcome.settled.problems, "\n".join(outcome.settled.problems)
    assert outcome.sampler.sources[FOLLOWED], "the load never came from the pipeline"
    rising = verdict.leaks([*series, *servers], lives)
    assert not rising, "\n".join(rising)
    page.write()


def _print_plan(planned: Sequence[Planned]) -> None:
    print(f"soak of {_SECONDS:.0f} s, seed {_SEED} (SOAK_SEED): {len(planned)} faults")
    for one in planned:
        if one.lane in (Lane.OPERATORS, Lane.SERVERS, Lane.TOPICS):
            print(f"  {one.at_seconds:6.0f} s {one.lane}: {one.fault} ({one.pick:.6f})")


async def _run(stage: Stage, clients: Traffic, outages: Outages, planned: Sequence[Planned]) -> _Outcome:
    before = await inventory(stage)
    faults, used = Faults(stage, clients, outages), _used_bytes(stage)
    async with KubeClient(tries=1) as kube:
        operators = {f"operator {number}": one for number, one in enumerate(stage.operators)}
        where = stage.brokers, stage.world.pulsar_namespace, kube, stage.world.namespace
        sampler = Sampler(operators, clients.pids, *where, _SAMPLES_EVERY_SECONDS)
        background = [asyncio.create_task(one) for one in (sampler.run(), clients.watch(), _watch_disk(stage))]
        try:
            await _strike(faults, planned, background)
            await faults.end()
        finally:
            await _cancel(background)
    sent = await clients.stop_sending()
    lost = await clients.drain(sent, _DRAIN_SECONDS)
    assert stage.operators[0].running, stage.operators[0].log_text()[-4000:]
    settled = await until_settled(stage, before)
    return _Outcome(faults, clients, sent, lost, sampler, settled, _used_bytes(stage) - used)


async def _strike(faults: Faults, planned: Sequence[Planned], background: Sequence[asyncio.Task[None]]) -> None:
    """Strike for the time of the run, lane by lane; what is under way then is waited for."""
    began = time.monotonic()
    lanes = [asyncio.create_task(_lane(faults, [one for one in planned if one.lane == lane], began)) for lane in Lane]
    try:
        pending = set(lanes)
        while pending:
            done, pending = await asyncio.wait({*pending, *background}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            pending -= set(background)
    finally:
        await _cancel(lanes)


async def _lane(faults: Faults, planned: Sequence[Planned], began: float) -> None:
    for one in planned:
        await asyncio.sleep(max(0.0, began + one.at_seconds - time.monotonic()))
        if time.monotonic() > began + _SECONDS:
            return
        await faults.strike(one)


async def _watch_disk(stage: Stage) -> None:
    """Raises AssertionError when it gets full: others need it, too."""
    while True:
        free = shutil.disk_usage(stage.folder).free
        assert free > _LEAST_FREE_BYTES, f"only {free / 1024**2:.0f} MiB are left on the disk"
        await asyncio.sleep(_DISK_LOOK_SECONDS)


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _used_bytes(stage: Stage) -> int:
    """What files of servers, operators and consumers take."""
    total = 0
    for folder in (stage.folder, stage.cluster.directory):
        for file in folder.rglob("*"):
            with suppress(OSError):
                total += file.stat().st_blocks * 512 if file.is_file() and not file.is_symlink() else 0
    return total


def _told_faults(outcome: _Outcome) -> list[str]:
    changes, clients = outcome.faults.change_seconds, outcome.clients
    lines = [
        f"{REPLICAS} replicas (lease {LEASE_SECONDS:.0f} s), each with a proxy of its own before the API server, and "
        f"one for all before two brokers; faults for {_SECONDS:.0f} s, seed {_SEED}. Replica 0 is stopped, cut off and "
        "told wrong things like the others, and never ended: its life is as long as the run.",
        "",
        *table(("times", "what"), [(count, what) for what, count in sorted(outcome.faults.happened.items())]),
        "",
        *(
            f"- {kind} consumers: " + ", ".join(f"{count} {what}" for what, count in sorted(crowd.happened.items()))
            for kind, crowd in clients.crowds.items()
        ),
    ]
    looks = ", ".join(f"{reason} at {count}" for (_, reason), count in outcome.sampler.sources.items())
    lines.append(f"- where the load came from, at so many looks: {looks}")
    if changes:
        lines.append(
            f"- half of the changes of the layout took at most {statistics.median(changes):.1f} s, all at most "
            f"{max(changes):.1f} s"
        )
    return lines


def _told_guarantee(outcome: _Outcome) -> list[str]:
    most = ", ".join(f"{count} {kind}" for kind, count in MOST.items())
    rows = []
    for name, reading in outcome.clients.readings.items():
        found = reading.ledger.verdict
        counts = found.receipts, outcome.lost[name], len(found.disordered), len(found.repeated), len(found.duplicated)
        rows.append((name, *counts, found.again, found.forgiven))
    stored = {topic: sum(one.stored.values()) for topic, one in outcome.sent.items()}
    longest = {topic: one.longest_seconds for topic, one in outcome.sent.items()}
    return [
        f"`{ORDERS}`: {PRODUCERS} producers of {PER_SECOND:.0f} messages a second over {KEYS} keys each, one consumer "
        f"of each kind that stays, and {most} that come and go. `{SURGE}`: {SURGE_LOW:.0f} messages a second and "
        f"{SURGE_HIGH:.0f} by turns, in periods of {SURGE_PERIOD_SECONDS:.0f} s, so that it is split and merged by "
        "itself.",
        "",
        *(f"- {topic}: {count} messages stored, each within {longest[topic]:.1f} s" for topic, count in stored.items()),
        "- no send failed",
        "",
        *table(
            (
                "subscription",
                "received",
                "lost",
                "disorder",
                "repeated though acknowledged",
                "stored twice",
                "came again",
                "forgiven",
            ),
            rows,
        ),
        "",
        "As in [ordered-consumers.md](ordered-consumers.md); queue subscriptions have no order and may repeat. Stored "
        "twice is what came from two places. Topics that came and went gave their visitor every message, and every one "
        "again after a seek.",
    ]


def _told_processes() -> list[str]:
    return [
        f"A look every {_SAMPLES_EVERY_SECONDS:.0f} s; of each process the longest life, without its first "
        f"{_WARM_UP_SECONDS:.0f} s (a quarter of it, if that is less), in quarters: least / median / most. A leak is "
        "a rise of the median from the second quarter to the last beyond what is allowed, in both halves of that time, "
        "that the median of all slopes (Theil-Sen) confirms to half of it; a step or a peak alone is none. Allowed:",
        *verdict.reasons(),
        "",
    ]


def _told_lives() -> list[str]:
    return [
        "At the age that half of the lives reached: the first third of the lives beside the last third. A rise would "
        "be something that outlives the process.",
        "",
    ]


def _told_servers() -> list[str]:
    return [
        "Topics of the run's namespace, and objects of its Kubernetes namespace, at the same looks. Events go an hour "
        "after they came, and are not judged.",
        "",
    ]


def _told_end(outcome: _Outcome) -> list[str]:
    found = outcome.settled.found
    return [
        f"When all clients had gone there was exactly what the layouts say: {len(found.topics)} topics with "
        f"{len(found.cursors)} cursors, {outcome.settled.sealed} of the segments sealed; {len(found.objects)} objects "
        f"(without Events), no driver of a pipeline. Files of all servers, logs included, had grown by "
        f"{outcome.used_bytes / 1024**2:.0f} MiB.",
        *(f"- {problem}" for problem in outcome.settled.problems),
    ]
