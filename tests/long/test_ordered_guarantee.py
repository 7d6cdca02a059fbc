"""Stream, queue and checkpoint consumers that come, go and die under layout changes, dead leaders and brokers: `make
show-ordered`.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from random import Random

import pulsar
import pytest

from dev.access import KubernetesAccess, PulsarAccess
from dev.instance import LocalCluster, Shape
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS
from scalable_topics_operator.cluster.shards import shard_of
from tests.support import manifests
from tests.support.callers import make_caller, renew_token
from tests.support.consumer_crowd import Crowd
from tests.support.consumption import Kind
from tests.support.consumption_judge import Forgotten, Judgement, judge_ordered, judge_shared
from tests.support.evidence import Evidence, table
from tests.support.guarantee_checker import Numbered
from tests.support.numbered_sender import NumberedSender, repeat
from tests.support.own_bench import OwnBench
from tests.support.pulsar_view import PulsarView
from tests.support.random_changes import next_change
from tests.support.replicas import SHARDS, Replicas, replicas
from tests.support.service_address import ServiceAddress
from tests.support.world import World, phase

_SECONDS = float(os.environ.get("ORDERED_SECONDS", "1200"))
_SEED = int(os.environ.get("ORDERED_SEED", "9"))
_PRODUCERS, _PER_SECOND, _KEYS = 8, 25.0, 20
_KEY_NAMES = [f"key-{number}" for number in range(_KEYS)]
_MOST = {Kind.STREAM: 6, Kind.QUEUE: 4, Kind.CHECKPOINT: 2}
# How often something happens to one of a kind.
_CROWD_SECONDS = {Kind.STREAM: 6.0, Kind.QUEUE: 12.0, Kind.CHECKPOINT: 15.0}
_CHANGE_SECONDS, _LEADER_SECONDS, _BROKER_SECONDS, _BROKER_DEAD_SECONDS = 5.0, 60.0, 180.0, 10.0
_TOKEN_SECONDS, _RENEW_SECONDS = 600, 300.0
_DRAIN_SECONDS = 180.0
# Brokers keep positions of cursors at last after so long (managedLedgerCursorPositionFlushSeconds), and a client may
# take so long to find the broker that serves a segment after a death.
_POSITIONS_SECONDS, _AGAIN_SERVED_SECONDS = 60, 30
_PART = "What was seen"
_NS = 1_000_000_000
_FLAGS = (
    "--drift-seconds=20",
    "--prune-seconds=10",
    "--settle-window-seconds=20",
    "--force-delete-after-seconds=30",
    "--consumer-session-grace-seconds=10",
    "--handover-seconds=10",
)


@dataclass(slots=True)
class _Story:
    """What has happened, for people, and what acknowledgements dead brokers may have forgotten."""

    happened: Counter[str] = field(default_factory=Counter)
    change_seconds: list[float] = field(default_factory=list)
    forgotten: list[Forgotten] = field(default_factory=list)


@pytest.mark.timeout(3000)
async def test_consumers_that_come_and_go_and_die(
    local_cluster: Callable[[Shape], LocalCluster],
    kube: KubeClient,
    kube_environment: KubernetesAccess,
    tmp_path: Path,
) -> None:
    page = Evidence("ordered-consumers.md", "Ordered consumers that come, go and die", "make show-ordered", (_PART,))
    cluster = await asyncio.to_thread(local_cluster, Shape(kubernetes=False, brokers=2))
    brokers = cluster.pulsar.access
    async with (
        PulsarView(brokers.admin_url, brokers.superuser_token) as view,
        replicas(3, kube, view, brokers, kube_environment.kubeconfig, tmp_path, _FLAGS) as found,
    ):
        lines = await _run(cluster, found, brokers, tmp_path)
    page.show(_PART, *lines)
    page.write()


async def _run(cluster: LocalCluster, found: Replicas, brokers: PulsarAccess, folder: Path) -> list[str]:
    world, random, story = found.world, Random(_SEED), _Story()
    topic = world.topic_name("orders")
    await world.apply(manifests.topic("orders", str(topic), initial=4, bucketBudget=8, deduplication=True))
    token_file, gateway_token_file = folder / "token", folder / "gateway-token"
    token_file.write_text(brokers.superuser_token)
    gateway_token_file.write_text(await make_caller(world.kube, world.namespace, "consumer", ["consume"]))
    await world.until_ready("orders")
    await found.until_shared()
    bench = OwnBench(cluster, found.operators[0], world)

    def gateways() -> Sequence[str]:
        return [address for one in found.operators if one.running and (address := one.gateway_address)]

    async with ServiceAddress(gateways) as service:
        crowds = {
            kind: Crowd(
                kind, most, _command(brokers, token_file, service, gateway_token_file, str(topic), kind), folder, random
            )
            for kind, most in _MOST.items()
        }
        try:
            for crowd in crowds.values():
                for _ in range(crowd.most):
                    crowd.join()
            await world.until_subscribed("orders", "orders", {f"all-{kind}" for kind in Kind}, within_seconds=120)
            stored = await _traffic(
                brokers,
                str(topic),
                (_CHANGE_SECONDS, lambda: _change_layout(world, random, story)),
                *((_CROWD_SECONDS[kind], crowd.change) for kind, crowd in crowds.items()),
                (_LEADER_SECONDS, lambda: _kill_leader(found, str(topic), story)),
                (_BROKER_SECONDS, _broker_disturbances(bench, random, story)),
                (
                    _RENEW_SECONDS,
                    lambda: renew_token(world.kube, world.namespace, "consumer", gateway_token_file, _TOKEN_SECONDS),
                ),
            )
            await _until_done_with(crowds.values(), stored)
            for crowd in crowds.values():
                await crowd.end()
        finally:
            for crowd in crowds.values():
                crowd.kill()
    judgements = {kind: _judge(crowd, stored, story) for kind, crowd in crowds.items()}
    lines = _told(stored, judgements, crowds, story)
    print(*(f"{kind}: {judgement}" for kind, judgement in judgements.items()), *lines, sep="\n")
    assert not any(judgements.values()), judgements
    return lines


def _judge(crowd: Crowd, stored: Sequence[Numbered], story: _Story) -> Judgement:
    if crowd.kind is Kind.QUEUE:
        return judge_shared(stored, crowd.receipts())
    return judge_ordered(stored, crowd.receipts(), [*crowd.forgotten, *story.forgotten])


def _command(
    brokers: PulsarAccess, token_file: Path, service: ServiceAddress, gateway_token_file: Path, topic: str, kind: Kind
) -> Callable[[], list[str]]:
    gateway = f"http://{service.address}"
    return lambda: [brokers.service_url, str(token_file), gateway, str(gateway_token_file), topic, f"all-{kind}"]


async def _traffic(
    brokers: PulsarAccess, topic: str, *disturbances: tuple[float, Callable[[], Awaitable[None]]]
) -> list[Numbered]:
    """Send for the time of the run while all this happens, each so often; answers what is stored."""
    stopping = asyncio.Event()
    async with Client(brokers.service_url, pulsar.AuthenticationToken(brokers.superuser_token)) as client:
        senders = [NumberedSender(await client.producer(topic), _KEY_NAMES, _PER_SECOND) for _ in range(_PRODUCERS)]
        tasks = [asyncio.create_task(sender.run(stopping)) for sender in senders]
        tasks += [asyncio.create_task(repeat(seconds, act, stopping)) for seconds, act in disturbances]
        await asyncio.wait(tasks, timeout=_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
        stopping.set()
        # What has begun comes to its end: nothing is left dead.
        await asyncio.wait(tasks)
        for task in tasks:
            task.result()
    return [message for sender in senders for message in sender.acknowledged()]


async def _change_layout(world: World, random: Random, story: _Story) -> None:
    wanted = next_change(await world.layout("orders"), random)
    began = time.monotonic()
    body = await world.operate("orders", wanted.kind, within_seconds=180, **wanted.block)
    story.change_seconds.append(time.monotonic() - began)
    story.happened[f"{wanted.kind} {phase(body)}"] += 1
    await world.delete(SEGMENT_OPERATIONS, body["metadata"]["name"])


async def _kill_leader(found: Replicas, topic: str, story: _Story) -> None:
    leader = await found.leader_of(shard_of(topic, SHARDS))
    leader.kill()
    story.happened["leader killed, and started again"] += 1
    await asyncio.sleep(2.0)
    await asyncio.to_thread(leader.start)


def _broker_disturbances(bench: OwnBench, random: Random, story: _Story) -> Callable[[], Awaitable[None]]:
    """An unload and a broker's death by turns."""
    turns = cycle(random.sample([_unload, _kill_broker], 2))
    return lambda: next(turns)(bench, story)


async def _unload(bench: OwnBench, story: _Story) -> None:
    story.happened["namespace unloaded"] += 1
    await bench.unload()


async def _kill_broker(bench: OwnBench, story: _Story) -> None:
    story.happened[f"broker killed, and started {_BROKER_DEAD_SECONDS:.0f} s later"] += 1
    began_ns = time.monotonic_ns()
    await bench.broker_dies(1, _BROKER_DEAD_SECONDS)
    served_ns = time.monotonic_ns() + _AGAIN_SERVED_SECONDS * _NS
    story.forgotten.append(Forgotten(began_ns - _POSITIONS_SECONDS * _NS, served_ns, began_ns))


async def _until_done_with(crowds: Iterable[Crowd], stored: Sequence[Numbered]) -> None:
    """Wait for the consumers; what they still lack afterwards is judged."""
    wanted = set(stored)

    def is_done() -> bool:
        return all(
            wanted <= {one.message for one in crowd.receipts() if one.acknowledged_at_ns is not None}
            for crowd in crowds
        )

    deadline = time.monotonic() + _DRAIN_SECONDS
    # In a thread: consumers reach the gateway through this process.
    while not await asyncio.to_thread(is_done) and time.monotonic() < deadline:
        await asyncio.sleep(2.0)


def _told(
    stored: Sequence[Numbered], judgements: Mapping[Kind, Judgement], crowds: Mapping[Kind, Crowd], story: _Story
) -> list[str]:
    most = ", ".join(f"{count} {kind}" for kind, count in _MOST.items())
    rows = [
        (
            kind,
            one.receipts,
            len(one.lost),
            "-" if kind is Kind.QUEUE else len(one.disordered),
            "-" if kind is Kind.QUEUE else len(one.repeated),
            one.again,
            one.forgiven,
        )
        for kind, one in judgements.items()
    ]
    return [
        f"{_PRODUCERS} producers of {_PER_SECOND:.0f} messages a second over {_KEYS} keys each; {most} consumers, each "
        f"in a process; three replicas behind one address, two brokers; seed {_SEED}, {_SECONDS:.0f} s.",
        *(f"- {count} times: {what}" for what, count in sorted(story.happened.items())),
        f"- a change of the layout was asked for every {_CHANGE_SECONDS:.0f} s, or as soon as the one before had "
        f"ended; half of them took at most {statistics.median(story.change_seconds):.1f} s, all at most "
        f"{max(story.change_seconds):.1f} s",
        *(
            f"- {kind} consumers: " + ", ".join(f"{count} {what}" for what, count in sorted(crowd.happened.items()))
            for kind, crowd in crowds.items()
        ),
        f"- {len(stored)} messages stored; no send failed",
        "",
        *table(
            ("consumers", "received", "lost", "disorder", "repeated though acknowledged", "came again", "forgiven"),
            rows,
        ),
        "",
        "Lost is what was stored and not both received and acknowledged by a consumer; disorder is a gap in a key's "
        "numbers, also where they come again. Forgiven is what came again though acknowledged within 1 s before its "
        f"consumer was killed, or from {_POSITIONS_SECONDS} s before a broker was killed until it was back and "
        f"{_AGAIN_SERVED_SECONDS} s had passed: such acknowledgements may not have been sent, or not be kept.",
    ]
