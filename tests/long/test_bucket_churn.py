"""Consumers that join, leave and are killed every second on one shared segment: `make show-bucket-churn`."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pulsar as pulsar_client
import pytest

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics.layout import Part, SegmentLayout
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.kube_client import KubeClient
from tests.support import manifests
from tests.support.callers import make_caller, renew_token
from tests.support.consumer_crowd import Crowd
from tests.support.consumption import Kind, Receipt
from tests.support.consumption_judge import Judgement, judge_ordered
from tests.support.entry_buckets import (
    bucket_of_key,
    every_bucket,
    is_shared_out,
    keys_in_every_bucket,
    subscription_status,
)
from tests.support.evidence import Evidence, table
from tests.support.guarantee_checker import Numbered
from tests.support.numbered_sender import NumberedSender, repeat
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import Replicas, replicas
from tests.support.waiting import eventually
from tests.support.world import World

_SECONDS = float(os.environ.get("CHURN_SECONDS", "600"))
_SEED = int(os.environ.get("CHURN_SEED", "13"))
_EVERY_SECONDS = 1.0
_BUCKETS, _MOST = 8, 8
_PRODUCERS, _PER_SECOND, _KEYS_OF_A_BUCKET = 4, 25.0, 4
# So that there mostly is something under way when a bucket is taken away.
_HANDLING_MS = 4.0
_GRACE_SECONDS, _HANDOVER_SECONDS = 5, 10
_LOOK_SECONDS, _RENEW_SECONDS, _TOKEN_SECONDS = 2.0, 240.0, 600
_SETTLE_SECONDS, _DRAIN_SECONDS = 60.0, 180.0
# A bucket whose readers are killed one after the other waits for the grace of each.
_MOST_SILENT_SECONDS = 60.0
_SUBSCRIPTION, _PART = "shared", "What was seen"
_NS = 1_000_000_000
_FLAGS = (
    "--log-level=INFO",
    f"--consumer-session-grace-seconds={_GRACE_SECONDS}",
    f"--handover-seconds={_HANDOVER_SECONDS}",
)


@dataclass(slots=True)
class _Seen:
    """How the segment was assigned whenever it was looked at."""

    readers: Counter[int] = field(default_factory=Counter)
    most_members: int = 0


@pytest.mark.timeout(2400)
async def test_consumers_of_a_shared_segment_that_come_and_go_and_die(
    kube: KubeClient,
    view: PulsarView,
    pulsar: PulsarAccess,
    kube_environment: KubernetesAccess,
    tmp_path: Path,
) -> None:
    """Hazards A4-26208a, A4-26208b, A4-26208c and A4-26208d."""
    title = "Consumers of a shared segment that come, go and die every second"
    page = Evidence("bucket-churn.md", title, "make show-bucket-churn", (_PART,))
    async with replicas(2, kube, view, pulsar, kube_environment.kubeconfig, tmp_path, _FLAGS) as two:
        lines = await _run(two, pulsar, tmp_path)
    page.show(_PART, *lines)
    page.write()


async def _run(two: Replicas, access: PulsarAccess, folder: Path) -> list[str]:
    world, random, seen = two.world, Random(_SEED), _Seen()
    topic = world.topic_name("orders")
    await world.apply(
        manifests.topic("orders", str(topic), bucketBudget=_BUCKETS, deduplication=True, subscriptions=[_SUBSCRIPTION])
    )
    token_file, gateway_token_file = folder / "token", folder / "gateway-token"
    token_file.write_text(access.superuser_token)
    gateway_token_file.write_text(await make_caller(world.kube, world.namespace, "consumer", ["consume"]))
    await world.until_ready("orders")
    await two.until_shared()
    layout = await world.layout("orders")
    gateway_url = two.operators[0].gateway_url

    def command() -> list[str]:
        files = (str(token_file), gateway_url, str(gateway_token_file))
        return [access.service_url, *files, str(topic), _SUBSCRIPTION]

    crowd = Crowd(Kind.STREAM, 1, command, folder, random, handling_ms=_HANDLING_MS, spares_new=True)
    try:
        crowd.join()
        stored = await _traffic(
            access,
            str(topic),
            keys_in_every_bucket(layout, _KEYS_OF_A_BUCKET),
            lambda: _change(crowd, random),
            lambda: _look(world, seen),
            lambda: renew_token(world.kube, world.namespace, "consumer", gateway_token_file, _TOKEN_SECONDS),
        )
        crowd.check()
        await eventually(
            lambda: subscription_status(world, "orders", _SUBSCRIPTION),
            lambda status: is_shared_out(status, layout, layout.active),
            what="every bucket is read and none is withheld",
            within_seconds=_SETTLE_SECONDS,
        )
        await _until_done(crowd, stored)
        await crowd.end()
    finally:
        crowd.kill()
    receipts = await asyncio.to_thread(crowd.receipts)
    judgement = judge_ordered(stored, receipts, crowd.forgotten)
    silences = _silences(receipts, layout)
    lines = _told(stored, judgement, crowd, seen, silences)
    print(judgement, *lines, sep="\n")
    assert not judgement.lost
    assert not judgement.disordered
    assert silences.keys() == set(every_bucket(layout.active))
    assert max(silences.values()) < _MOST_SILENT_SECONDS, silences
    return lines


async def _traffic(access: PulsarAccess, topic: str, keys: Sequence[str], change: Any, look: Any, renew: Any) -> Any:
    """Send for the time of the run while all this happens; answers what is stored."""
    stopping = asyncio.Event()
    async with Client(access.service_url, pulsar_client.AuthenticationToken(access.superuser_token)) as client:
        senders = [NumberedSender(await client.producer(topic), keys, _PER_SECOND) for _ in range(_PRODUCERS)]
        tasks = [asyncio.create_task(sender.run(stopping)) for sender in senders]
        changes = _Changes(change)
        tasks += [
            asyncio.create_task(repeat(_EVERY_SECONDS, changes.begin, stopping)),
            asyncio.create_task(repeat(_LOOK_SECONDS, look, stopping)),
            asyncio.create_task(repeat(_RENEW_SECONDS, renew, stopping)),
        ]
        await asyncio.wait(tasks, timeout=_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
        stopping.set()
        await asyncio.gather(*tasks)
        await changes.ended()
    return [message for sender in senders for message in sender.acknowledged()]


class _Changes:
    """Changes that begin every second, however long those before take: leaving waits for a process to end."""

    def __init__(self, change: Any) -> None:
        self._change = change
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        """Begin another one. Raises what one of those before has raised."""
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.discard(task)
            task.result()
        self._tasks.add(asyncio.create_task(self._change()))

    async def ended(self) -> None:
        """Wait for those that are under way. Raises what they raise."""
        await asyncio.gather(*self._tasks)


async def _change(crowd: Crowd, random: Random) -> None:
    """Somebody joins, leaves or is killed: there are more until there are many, then fewer until one is left."""
    if crowd.size == crowd.most:
        crowd.most = random.randint(2, _MOST) if crowd.size == 1 else 1
    await crowd.change()


async def _look(world: World, seen: _Seen) -> None:
    status = await subscription_status(world, "orders", _SUBSCRIPTION)
    consumers = status.get("consumers", ())
    seen.most_members = max(seen.most_members, len(consumers))
    seen.readers[sum(bool(consumer.get("assignments")) for consumer in consumers)] += 1


async def _until_done(crowd: Crowd, stored: Iterable[Numbered]) -> None:
    """Wait for the consumers; what they still lack afterwards is judged."""
    wanted = set(stored)

    def is_done() -> bool:
        return wanted <= {one.message for one in crowd.receipts() if one.acknowledged_at_ns is not None}

    deadline = time.monotonic() + _DRAIN_SECONDS
    while not await asyncio.to_thread(is_done) and time.monotonic() < deadline:
        await asyncio.sleep(2.0)


def _silences(receipts: Iterable[Receipt], layout: SegmentLayout) -> dict[Part, float]:
    """The longest time in seconds between two messages of each bucket."""
    times: defaultdict[Part, list[int]] = defaultdict(list)
    for receipt in receipts:
        times[bucket_of_key(layout, receipt.message.key)].append(receipt.at_ns)
    return {
        bucket: max((later - earlier) / _NS for earlier, later in pairwise(ordered))
        for bucket, at_ns in times.items()
        for ordered in [sorted(at_ns)]
        if len(ordered) > 1
    }


def _told(
    stored: Sequence[Numbered],
    judgement: Judgement,
    crowd: Crowd,
    seen: _Seen,
    silences: dict[Part, float],
) -> list[str]:
    looks = sum(seen.readers.values())
    return [
        f"One segment of {_BUCKETS} entry buckets; {_PRODUCERS} producers of {_PER_SECOND:.0f} messages a second over "
        f"{_KEYS_OF_A_BUCKET} keys of every bucket, each handled for {_HANDLING_MS:.0f} ms. Every {_EVERY_SECONDS:.0f} "
        f"s for {_SECONDS:.0f} s a consumer, each in a process, joins, leaves, is killed, or is killed and started "
        f"again under its name; how many there are goes to and fro between 1 and {_MOST}. Two replicas of the "
        f"operator, one broker; a consumer that died is missed after {_GRACE_SECONDS} s; seed {_SEED}.",
        "",
        "- " + ", ".join(f"{count} {what}" for what, count in sorted(crowd.happened.items())),
        f"- consumers that read the segment, looked at every {_LOOK_SECONDS:.0f} s: "
        + ", ".join(f"{many} in {count / looks:.0%}" for many, count in sorted(seen.readers.items()))
        + f"; at most {seen.most_members} were registered",
        f"- at the end every bucket had one reader and none was withheld; the longest time between two messages of a "
        f"bucket was {max(silences.values()):.1f} s, and {statistics.median(silences.values()):.1f} s in half of them",
        f"- {len(stored)} messages stored; no send failed",
        "",
        *table(
            ("received", "lost", "disorder", "came again", "of these though acknowledged", "and forgiven"),
            [
                (
                    judgement.receipts,
                    len(judgement.lost),
                    len(judgement.disordered),
                    judgement.again,
                    len(judgement.repeated) + judgement.forgiven,
                    judgement.forgiven,
                )
            ],
        ),
        "",
        "Lost is what was stored and not both received and acknowledged by a consumer; disorder is a gap in a key's "
        "numbers, also where they come again. Forgiven is what came again though acknowledged within 1 s before its "
        "consumer was killed: such acknowledgements may not have been sent.",
    ]
