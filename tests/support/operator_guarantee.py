"""Traffic through layout changes, and what became of it: nothing lost, nothing double, every key in order."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import aiohttp
import pulsar

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS
from tests.support import manifests
from tests.support.application import Application, Journal
from tests.support.random_changes import next_change
from tests.support.stored_messages import Findings, StoredMessage, judge, stored_on
from tests.support.world import World, phase

WORK, RECORDER = "work", "recorder"
_CHANGE_SECONDS = 180.0
_RECORD_EVERY_SECONDS = 3.0
_READ_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Something that happens to the servers meanwhile.

    Args:
        name: for people.
        at_seconds: when it happens first, from the beginning.
        act: does it, and undoes it if it is to be undone.
        every_seconds: when it happens again; None for never.
    """

    name: str
    at_seconds: float
    act: Callable[[], Awaitable[Any]]
    every_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the layout.

    Args:
        kind: Split, Merge or Rebucket.
        succeeded: whether it was carried out; one that was not must have changed nothing.
        seconds: from its manifest to its end.
        stall_ms: the longest that a message under way meanwhile took to be stored.
    """

    kind: str
    succeeded: bool
    seconds: float
    stall_ms: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to happen. A run is replayed by its seed, as far as servers and networks let it.

    Args:
        seed: decides the changes.
        seconds: how long traffic runs.
        every_seconds: from the beginning of one change to that of the next.
        application: settings of `Application`.
        disturbances: what happens to the servers.
    """

    seed: int
    seconds: float
    every_seconds: float = 3.0
    application: dict[str, Any] = field(default_factory=dict)
    disturbances: Sequence[Disturbance] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has shown."""

    journal: Journal
    changes: Sequence[Change]
    findings: Findings
    disturbed: Sequence[str]
    segments: int

    @property
    def sent(self) -> int:
        """Messages reported as stored."""
        return len(self.journal.sends)

    def stalls_ms(self, kind: str) -> list[float]:
        """Of the changes of a kind that succeeded, sorted."""
        return sorted(change.stall_ms for change in self.changes if change.kind == kind and change.succeeded)

    def require(self) -> None:
        """Raise AssertionError unless the guarantee was kept."""
        assert not self.journal.failed, f"{len(self.journal.failed)} sends failed: {self.journal.failed[:3]}"
        delivered = sum(bool(self.journal.received[lost]) for lost in self.findings.lost)
        assert not self.findings, f"{self.findings}; of those lost {delivered} were delivered"
        missing = self.journal.not_received
        assert not missing, f"{len(missing)} stored messages were never delivered: {missing[:5]}"


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which a share of sorted values lies; nan of none."""
    return values[min(len(values) - 1, math.ceil(share * len(values)) - 1)] if values else math.nan


class _CutOffError(Exception):
    """Not all of a segment was read."""


class Recorder:
    """Reads what each segment stored before the segment is pruned.

    It has a subscription of its own, which holds a segment back until it was read.
    """

    def __init__(self, world: World, brokers: PulsarAccess, name: str, local: str) -> None:
        self._world = world
        self._brokers = brokers
        self._name = name
        self._local = local
        self._stored: dict[int, list[StoredMessage]] = {}

    async def record_sealed(self) -> None:
        """Read the sealed segments that were not read yet."""
        layout = await self._world.layout(self._name)
        names = await self._world.segment_names(self._name, self._local)
        for segment in layout.sealed:
            if segment.segment_id not in self._stored and segment.segment_id in names:
                await self._read(segment.segment_id, names[segment.segment_id])
                await self._world.pulsar.skip_all(names[segment.segment_id], RECORDER)

    async def record_rest(self) -> list[StoredMessage]:
        """Read what is left; answers everything, parents before children."""
        await self.record_sealed()
        names = await self._world.segment_names(self._name, self._local)
        for segment_id, topic in names.items():
            if segment_id not in self._stored:
                await self._read(segment_id, topic)
        return [message for _, messages in sorted(self._stored.items()) for message in messages]

    @property
    def segments(self) -> int:
        """How many were read."""
        return len(self._stored)

    async def _read(self, segment_id: int, topic: str) -> None:
        for attempt in range(_READ_ATTEMPTS):
            try:
                messages = await stored_on(self._brokers.service_url, self._brokers.superuser_token, [topic])
                entries = (await self._world.pulsar.internal(topic))["numberOfEntries"]
                read = len({message.entry for message in messages})
                # A reader that is cut off by an unload may believe that it has read everything.
                if read != entries:
                    raise _CutOffError(f"{topic}: {read} of {entries} entries were read")
            except (pulsar.PulsarException, aiohttp.ClientError, TimeoutError, _CutOffError) as error:
                # The segment is being unloaded, or its broker has just died.
                print(f"segment {segment_id} is read again: {error!r}")
                if attempt == _READ_ATTEMPTS - 1:
                    raise
                await asyncio.sleep(_RECORD_EVERY_SECONDS)
            else:
                self._stored[segment_id] = [replace(message, segment=segment_id) for message in messages]
                return


async def run(world: World, brokers: PulsarAccess, name: str, plan: Plan) -> Outcome:
    """Make a topic, use it while it is changed, and compare what was sent with what was stored and delivered.

    Raises AssertionError when a change does not end, or when brokers and record do not agree in the end.
    """
    print(f"guarantee run: seed {plan.seed}, {plan.seconds:.0f} s")
    await world.apply(
        manifests.topic(
            name,
            f"{world.pulsar_namespace}/{name}",
            initial=4,
            bucketBudget=8,
            subscriptions=[WORK, RECORDER],
            deduplication=True,
        )
    )
    await world.until_ready(name)
    recorder = Recorder(world, brokers, name, name)
    disturbed: list[str] = []
    async with Application(brokers, f"{world.pulsar_namespace}/{name}", WORK, **plan.application) as application:
        await application.until_sent(1000)
        background = [
            asyncio.create_task(_record(recorder)),
            *(asyncio.create_task(_disturb(one, disturbed)) for one in plan.disturbances),
        ]
        try:
            changes = await _change(world, name, plan, application.journal)
        finally:
            await end_all(background)
        await application.until_sent(1000)
    await world.until_ready(name, within_seconds=120)
    findings = judge(application.journal.acknowledged, await recorder.record_rest())
    await world.assert_brokers_agree(name, name, {WORK, RECORDER})
    return Outcome(application.journal, changes, findings, disturbed, recorder.segments)


async def _change(world: World, name: str, plan: Plan, journal: Journal) -> list[Change]:
    random = Random(plan.seed)
    began = time.monotonic()
    changes = []
    while (started := time.monotonic()) < began + plan.seconds:
        wanted = next_change(await world.layout(name), random)
        body = await world.operate(name, wanted.kind, within_seconds=_CHANGE_SECONDS, **wanted.block)
        ended = time.monotonic()
        # Messages that were held have their outcome within moments of the end; the longest of them is to be seen.
        await asyncio.sleep(min(plan.every_seconds / 2, 1.0))
        stall_ms = journal.longest_ms(started, ended)
        changes.append(Change(wanted.kind, phase(body) == "Succeeded", ended - started, stall_ms))
        await world.delete(SEGMENT_OPERATIONS, body["metadata"]["name"])
        await asyncio.sleep(max(0.0, started + plan.every_seconds - time.monotonic()))
    return changes


async def _record(recorder: Recorder) -> None:
    while True:
        await asyncio.sleep(_RECORD_EVERY_SECONDS)
        await recorder.record_sealed()


async def _disturb(disturbance: Disturbance, disturbed: list[str]) -> None:
    await asyncio.sleep(disturbance.at_seconds)
    while True:
        await disturbance.act()
        disturbed.append(disturbance.name)
        if disturbance.every_seconds is None:
            return
        await asyncio.sleep(disturbance.every_seconds)


async def end_all(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel them; one that has failed before says so."""
    for task in tasks:
        if task.done():
            task.result()
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
