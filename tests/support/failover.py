"""Leaders that are killed, or stopped and woken, in the middle of operations on topics in use."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any, TypeAlias

from dev.access import PulsarAccess
from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from scalable_topics_operator.cluster.shards import shard_of
from tests.support import manifests
from tests.support.application import Application
from tests.support.operator_guarantee import RECORDER, WORK, Recorder, end_all
from tests.support.replicas import LEASE_SECONDS, SHARDS, Replicas
from tests.support.running_operator import RunningOperator
from tests.support.stored_messages import Findings, judge
from tests.support.world import World, has_ended, phase
from tests.support.world_making import random_name

RESHAPES = ("Split", "Merge", "Rebucket")
KINDS = (*RESHAPES, "Prune")
_TOPICS = len(RESHAPES)
_RECORD_EVERY_SECONDS = 2.0
_DONE_SECONDS = 120.0
_BUCKETS = (2, 4, 8, 16)
_ASKED, _COMMITTED, _DELETING = "asked", "committed", "deleting"
_RESHAPE_STEPS = (_ASKED, "Creating", "Announcing", "Sealing", "Sealing", _COMMITTED)
_PRUNE_STEPS = (_ASKED, _DELETING, _DELETING, _DELETING)
_STEP_SECONDS = 10.0
_LOOK_SECONDS = 0.004
_PAST_THE_STEP_SECONDS = 0.02


class Blow(StrEnum):
    """What happens to the leader."""

    KILL = "kill -9"
    STOP = "SIGSTOP and SIGCONT"


@dataclass(frozen=True, slots=True)
class Struck:
    """One operation that was asked for before its leader was struck.

    Args:
        kind: of the operation.
        step: what its topic's journal said when the leader could do no more: a step, `asked` before the first,
            `committed` after the last; of a prune also `deleting`, while segments that have left the layout go.
        seconds: from the blow to the operation's end; None if it was committed before.
    """

    kind: str
    step: str
    seconds: float | None


@dataclass(slots=True)
class Outcome:
    """What a run has shown.

    Args:
        struck: every operation a leader was struck over, by blow.
        sent: messages reported as stored.
        failed: errors of those that were not.
        not_received: stored and never delivered.
        findings: lost, duplicated, disordered.
        orphans: topics on the brokers that no record knows.
        segments: how many there have been.
        longest_ms: the longest that a message took to be stored.
    """

    struck: dict[Blow, list[Struck]] = field(default_factory=dict)
    sent: int = 0
    failed: list[BaseException] = field(default_factory=list)
    not_received: int = 0
    findings: list[Findings] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    segments: int = 0
    longest_ms: float = 0.0

    def require(self) -> None:
        """Raise AssertionError unless the guarantees were kept."""
        assert not self.failed, f"{len(self.failed)} sends failed: {self.failed[:3]}"
        assert not any(self.findings), self.findings
        assert not self.not_received, f"{self.not_received} stored messages were never delivered"
        assert not self.orphans, self.orphans


@dataclass(frozen=True)
class _Topic:
    name: str
    application: Application
    recorder: Recorder
    recording: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def record_sealed(self) -> None:
        """Read what was sealed. One at a time: what one has read may be pruned while another still reads it."""
        async with self.recording:
            await self.recorder.record_sealed()


_Asked: TypeAlias = tuple[_Topic, str, str]
"""An operation: its topic, its kind, and its name."""


class Failover:
    """Three topics of one shard under traffic; of the four kinds of operation each topic gets one a round.

    Args:
        replicas: who lead in turn.
        brokers: where.
        seed: decides what is asked for and when the blows fall.
    """

    def __init__(self, replicas: Replicas, brokers: PulsarAccess, seed: int) -> None:
        self._replicas = replicas
        self._world: World = replicas.world
        self._brokers = brokers
        self._random = Random(seed)
        self._topics: list[_Topic] = []
        self._shard = 0
        self._round = 0

    async def run(self, blows: Sequence[Blow], application: dict[str, Any]) -> Outcome:
        """Strike the leader so often. Raises AssertionError when an operation does not succeed."""
        outcome = Outcome(struck={blow: [] for blow in Blow})
        async with AsyncExitStack() as stack:
            await self._make_topics(stack, application)
            async with _in_background(self._record()):
                for blow in blows:
                    outcome.struck[blow] += await self._strike(blow)
                    await asyncio.gather(*(topic.application.until_sent(20) for topic in self._topics))
        for topic in self._topics:
            await self._judge(topic, outcome)
        outcome.orphans = await self._orphans()
        return outcome

    async def _make_topics(self, stack: AsyncExitStack, application: dict[str, Any]) -> None:
        names = self._names_of_one_shard()
        for name in names:
            topic = f"{self._world.pulsar_namespace}/{name}"
            await self._world.apply(
                manifests.topic(
                    name, topic, initial=2, bucketBudget=16, subscriptions=[WORK, RECORDER], deduplication=True
                )
            )
        for name in names:
            await self._world.until_ready(name, within_seconds=90)
            recorder = Recorder(self._world, self._brokers, name, name)
            running = Application(self._brokers, f"{self._world.pulsar_namespace}/{name}", WORK, **application)
            self._topics.append(_Topic(name, await stack.enter_async_context(running), recorder))
        await asyncio.gather(*(topic.application.until_sent(100) for topic in self._topics))

    def _names_of_one_shard(self) -> list[str]:
        names: list[str] = []
        while len(names) < _TOPICS:
            name = random_name("struck")
            shard = shard_of(str(self._world.topic_name(name)), SHARDS)
            if not names:
                self._shard = shard
            if shard == self._shard:
                names.append(name)
        return names

    @property
    def _is_pruning(self) -> bool:
        return self._round % len(KINDS) == len(RESHAPES)

    async def _ask(self) -> list[_Asked]:
        """Ask for the operations of the next round; answers their topics, kinds and names."""
        prunes = self._is_pruning
        if prunes:
            # What is sealed is free to go once it was read.
            await asyncio.gather(*(topic.record_sealed() for topic in self._topics))
        running = []
        for number, topic in enumerate(self._topics):
            wanted = RESHAPES[(self._round + number) % _TOPICS]
            kind, block = ("Prune", {}) if prunes else self._reshape(await self._world.layout(topic.name), wanted)
            name = f"{topic.name}-{self._round}-{uuid.uuid4().hex[:6]}"
            running.append((topic, kind, manifests.operation(name, topic.name, kind, **block)))
        for _, _, manifest in running:
            await self._world.apply(manifest)
        self._round += 1
        return [(topic, kind, manifest["metadata"]["name"]) for topic, kind, manifest in running]

    def _reshape(self, layout: SegmentLayout, kind: str) -> tuple[str, dict[str, Any]]:
        active = layout.active
        if kind == "Merge" and len(active) > 1:
            first = self._random.randrange(len(active) - 1)
            return kind, {"segments": [one.segment_id for one in active[first : first + 2]]}
        if kind == "Rebucket":
            segment = self._random.choice(active)
            buckets = self._random.choice([count for count in _BUCKETS if count != segment.buckets])
            return kind, {"segment": segment.segment_id, "buckets": buckets}
        return "Split", {"segment": max(active, key=lambda one: one.hash_range.size).segment_id}

    async def _strike(self, blow: Blow) -> list[Struck]:
        step = self._random.choice(_PRUNE_STEPS if self._is_pruning else _RESHAPE_STEPS)
        running = await self._ask()
        leader = await self._replicas.leader_of(self._shard)
        await self._until_at(self._random.choice(running), step)
        await asyncio.sleep(self._random.uniform(0.0, _PAST_THE_STEP_SECONDS))
        struck_at = time.monotonic()
        if blow is Blow.KILL:
            leader.kill()
        else:
            os.kill(leader.pid, signal.SIGSTOP)
        steps = await asyncio.gather(*(self._step(operation) for operation in running))
        if blow is Blow.KILL:
            recovering = asyncio.create_task(asyncio.to_thread(leader.start))
        else:
            seconds = self._random.uniform(0.5, 2.5) * LEASE_SECONDS
            recovering = asyncio.create_task(_wake(leader, seconds))
        ended_at = await asyncio.gather(*(self._until_ended(operation) for operation in running))
        await recovering
        return [
            Struck(kind, step, None if step in (_COMMITTED, _DELETING) else ended - struck_at)
            for (_, kind, _), step, ended in zip(running, steps, ended_at, strict=True)
        ]

    async def _until_at(self, operation: _Asked, step: str) -> None:
        """Wait until an operation has come to a step, or past it."""
        deadline = time.monotonic() + _STEP_SECONDS
        while time.monotonic() < deadline and await self._step(operation) not in (step, _COMMITTED, _DELETING):
            await asyncio.sleep(_LOOK_SECONDS)

    async def _step(self, operation: _Asked) -> str:
        """How far an operation is: a journal's step, or what comes before and after."""
        topic, kind, name = operation
        status = (await self._world.get(TOPICS, topic.name))["status"]
        if (journal := status.get("operation")) is not None:
            return str(journal["step"])
        if kind == "Prune":
            if status.get("deleting"):
                return _DELETING
            # One that finds nothing to do leaves no trace on its topic.
            ended = has_ended(await self._world.get(SEGMENT_OPERATIONS, name))
            return _COMMITTED if ended else _ASKED
        done = any(action["request"]["name"] == name for action in status.get("actions", ()))
        return _COMMITTED if done else _ASKED

    async def _until_ended(self, operation: _Asked) -> float:
        """Wait until an operation has succeeded; answers when."""
        topic, kind, name = operation
        body = await self._world.until_ended(name, within_seconds=_DONE_SECONDS)
        ended_at = time.monotonic()
        assert phase(body) == "Succeeded", f"{kind} of {topic.name}: {body['status']}"
        await self._world.delete(SEGMENT_OPERATIONS, name)
        return ended_at

    async def _record(self) -> None:
        while True:
            await asyncio.sleep(_RECORD_EVERY_SECONDS)
            for topic in self._topics:
                await topic.record_sealed()

    async def _judge(self, topic: _Topic, outcome: Outcome) -> None:
        await self._world.until_ready(topic.name, within_seconds=_DONE_SECONDS)
        journal = topic.application.journal
        outcome.sent += len(journal.sends)
        outcome.failed += journal.failed
        outcome.not_received += len(journal.not_received)
        outcome.findings.append(judge(journal.acknowledged, await topic.recorder.record_rest()))
        outcome.segments += topic.recorder.segments
        outcome.longest_ms = max(outcome.longest_ms, journal.longest_ms(0, time.monotonic()))
        # Deletes that clients were still attached for are tried again at the next look.
        await self._world.until(
            TOPICS,
            topic.name,
            lambda body: not body["status"].get("deleting"),
            what="has nothing left to delete",
            within_seconds=_DONE_SECONDS,
        )
        await self._world.assert_brokers_agree(topic.name, topic.name, {WORK, RECORDER})

    async def _orphans(self) -> list[str]:
        """Topics on the brokers that belong to none of ours."""
        found = await self._world.pulsar.topics(self._world.pulsar_namespace)
        known: set[str] = set()
        for topic in self._topics:
            claim = self._world.topic_name(topic.name).persistent
            known |= {claim, f"{claim}-layout", *(await self._world.segment_names(topic.name, topic.name)).values()}
        return sorted(set(found) - known)


async def _wake(operator: RunningOperator, seconds: float) -> None:
    await asyncio.sleep(seconds)
    os.kill(operator.pid, signal.SIGCONT)


@contextlib.asynccontextmanager
async def _in_background(work: Any) -> AsyncIterator[None]:
    """Do something meanwhile; if it fails, it says so at the end."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        await end_all([task])


def steps_of(struck: Sequence[Struck], kind: str) -> Counter[str]:
    """At which steps operations of a kind were when their leader was struck."""
    return Counter(one.step for one in struck if one.kind == kind)
