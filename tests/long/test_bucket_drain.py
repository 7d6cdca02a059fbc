"""A sealed backlog drained by one consumer, by four and by sixteen: `make show-bucket-drain`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pulsar as pulsar_client
import pytest

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.reviews import request_token
from tests.support import manifests
from tests.support.callers import make_caller
from tests.support.consumer_crowd import Crowd
from tests.support.consumption import Kind
from tests.support.drain_record import DrainRecord, read_drain
from tests.support.entry_buckets import subscription_status
from tests.support.evidence import Evidence, table
from tests.support.numbered_sender import NumberedSender
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import Replicas, replicas
from tests.support.waiting import eventually
from tests.support.world import World

_MESSAGES = int(os.environ.get("BACKLOG_MESSAGES", "1000000"))
_AFTER = _MESSAGES // 100
_BUCKETS, _KEYS = 16, 4096
_CONSUMERS = (1, 4, 16)
# What handling a message takes; 0 for an application that only counts it.
_HANDLING_MS = (1.0, 0.0)
_PART = "What was seen"
_TOKEN_SECONDS = 3600
_SEALED = 0


@dataclass(frozen=True, slots=True)
class _Drain:
    """Who drains the backlog how; each has a subscription of its own."""

    consumers: int
    handling_ms: float

    @property
    def subscription(self) -> str:
        return f"by-{self.consumers}-{self.handling_ms:.0f}-ms"

    @property
    def most_seconds(self) -> float:
        """When to give up."""
        return 240 + 3 * _MESSAGES * (self.handling_ms / 1000 / self.consumers + 0.0003)


_DRAINS = [_Drain(consumers, handling_ms) for handling_ms in _HANDLING_MS for consumers in _CONSUMERS]


@pytest.mark.timeout(7200)
async def test_a_sealed_backlog_is_drained_by_several(
    kube: KubeClient,
    view: PulsarView,
    pulsar: PulsarAccess,
    kube_environment: KubernetesAccess,
    tmp_path: Path,
) -> None:
    title = f"A sealed backlog of {_MESSAGES:,} messages drained by 1, 4 and 16 consumers"
    page = Evidence("bucket-drain.md", title, "make show-bucket-drain", (_PART,))
    async with replicas(1, kube, view, pulsar, kube_environment.kubeconfig, tmp_path, ("--log-level=INFO",)) as one:
        lines = await _run(one, pulsar, tmp_path)
    page.show(_PART, *lines)
    page.write()


async def _run(one: Replicas, access: PulsarAccess, folder: Path) -> list[str]:
    world = one.world
    topic = world.topic_name("orders")
    subscriptions = [drain.subscription for drain in _DRAINS]
    await world.apply(manifests.topic("orders", str(topic), bucketBudget=_BUCKETS, subscriptions=subscriptions))
    await make_caller(world.kube, world.namespace, "consumer", ["consume"])
    await world.until_ready("orders")
    authentication = pulsar_client.AuthenticationToken(access.superuser_token)
    async with Client(access.service_url, authentication) as client, await client.producer(str(topic)) as producer:
        sender = NumberedSender(producer, [f"key-{number}" for number in range(_KEYS)])
        await sender.send(_MESSAGES)
        body = await world.operate("orders", "Split", segment=_SEALED)
        assert body["status"]["phase"] == "Succeeded", body["status"]
        await sender.send(_AFTER)
    records = {}
    for drain in _DRAINS:
        logs = await _drained(one, access, str(topic), folder, drain)
        records[drain] = await asyncio.to_thread(read_drain, logs, sender.counts(), _SEALED)
        print(drain, records[drain])
    lines = _told(records)
    print(*lines, sep="\n")
    for drain, record in records.items():
        assert (record.lost, record.disordered, record.unacknowledged, record.early) == (0, 0, 0, 0), drain
        assert len(record.shares) == drain.consumers
        assert min(record.shares) > 0, f"{drain}: somebody got nothing of the backlog"
    return lines


async def _drained(one: Replicas, access: PulsarAccess, topic: str, folder: Path, drain: _Drain) -> Sequence[Path]:
    """Have a backlog drained, and what came after it; answers the logs of those who did."""
    world = one.world
    own = folder / drain.subscription
    own.mkdir()
    token_file, gateway_token_file = own / "token", own / "gateway-token"
    token_file.write_text(access.superuser_token)
    gateway_token_file.write_text(await request_token(world.kube, world.namespace, "consumer", _TOKEN_SECONDS))
    gateway_url = one.operators[0].gateway_url

    def command() -> list[str]:
        files = (str(token_file), gateway_url, str(gateway_token_file))
        return [access.service_url, *files, topic, drain.subscription]

    crowd = Crowd(Kind.STREAM, drain.consumers, command, own, Random(0), handling_ms=drain.handling_ms)
    try:
        for _ in range(drain.consumers):
            crowd.join()
        await eventually(
            lambda: _left(world, crowd, drain.subscription),
            lambda left: left == 0,
            what=f"{drain} has drained everything",
            within_seconds=drain.most_seconds,
            every_seconds=1.0,
        )
        await crowd.end()
    finally:
        crowd.kill()
    return crowd.logs


async def _left(world: World, crowd: Crowd, subscription: str) -> int:
    """Messages that a subscription has not acknowledged; those of a segment that it is not known to have drained, too.

    Raises AssertionError if a consumer has ended by itself.
    """
    crowd.check()
    layout = await world.layout("orders")
    names = await world.segment_names("orders", "orders")
    status = await subscription_status(world, "orders", subscription)
    if _SEALED in layout.segments and _SEALED not in status.get("drained", ()):
        return _MESSAGES
    statistics = [await world.pulsar.stats(names[segment.segment_id]) for segment in layout.active]
    return sum(int(found["subscriptions"][subscription]["msgBacklog"]) for found in statistics)


def _told(records: dict[_Drain, DrainRecord]) -> list[str]:
    lines = [
        f"A segment of {_BUCKETS} entry buckets with {_MESSAGES:,} messages over {_KEYS:,} keys is split, and "
        f"{_AFTER:,} more messages of these keys go to its children. Each row is a subscription of its own, which has "
        "all of them to read; its consumers are processes that begin together. The time is from the first message of "
        "the backlog that any of them received to the last one, joining and dealing out the buckets included.",
    ]
    for handling_ms in _HANDLING_MS:
        rows = [
            (
                drain.consumers,
                f"{record.seconds:.1f} s",
                f"{_MESSAGES / record.seconds:,.0f}/s",
                f"{records[_Drain(_CONSUMERS[0], handling_ms)].seconds / record.seconds:.2f}",
                f"{record.busy_seconds:.1f} s",
                f"{min(record.shares):,} to {max(record.shares):,}",
                record.lost,
                record.disordered,
                record.again,
            )
            for drain, record in records.items()
            if drain.handling_ms == handling_ms
        ]
        header = ("consumers", "time", "rate", "speed-up", "all busy after", "of the backlog each had", "lost")
        what = f"Handling a message takes {handling_ms:g} ms" if handling_ms else "Messages are only counted"
        end = "." if handling_ms else ", as fast as the machine's cores allow, which run the broker, too."
        lines += ["", what + end, "", *table((*header, "disorder", "came again"), rows)]
    return lines
