"""More consumers than segments may be: every one of them is busy, and every key in order: `make show-bucket-fleet`."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pulsar as pulsar_client
import pytest

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics.layout import SegmentLayout
from scalable_topics.sdk import Client, GatewayOptions
from scalable_topics_operator.cluster.kube_client import KubeClient
from tests.support import manifests
from tests.support.callers import make_caller
from tests.support.consumption_judge import judge_ordered
from tests.support.entry_buckets import is_shared_out, keys_in_every_bucket, readers, subscription_status
from tests.support.evidence import Evidence, table
from tests.support.numbered_sender import NumberedSender
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import Replicas, replicas
from tests.support.stream_fleet import StreamFleet
from tests.support.waiting import eventually

_SEGMENTS = int(os.environ.get("FLEET_SEGMENTS", "64"))
_CONSUMERS = int(os.environ.get("FLEET_CONSUMERS", "200"))
_SECONDS = float(os.environ.get("FLEET_SECONDS", "120"))
_PER_SECOND = float(os.environ.get("FLEET_PER_SECOND", "500"))
_BUCKETS, _KEYS_OF_A_BUCKET = 4, 4
_PART = "What was seen"
_SUBSCRIPTION = "fleet"
_SETTLE_SECONDS, _DRAIN_SECONDS = 420.0, 180.0


@pytest.mark.timeout(2400)
async def test_every_one_of_very_many_consumers_is_busy(
    kube: KubeClient,
    view: PulsarView,
    pulsar: PulsarAccess,
    kube_environment: KubernetesAccess,
    tmp_path: Path,
) -> None:
    title = f"{_CONSUMERS} stream consumers on {_SEGMENTS} segments"
    page = Evidence("bucket-fleet.md", title, "make show-bucket-fleet", (_PART,))
    async with replicas(2, kube, view, pulsar, kube_environment.kubeconfig, tmp_path, ("--log-level=INFO",)) as two:
        lines = await _run(two, pulsar)
    page.show(_PART, *lines)
    page.write()


async def _run(two: Replicas, access: PulsarAccess) -> list[str]:
    world = two.world
    topic = world.topic_name("orders")
    await world.apply(
        manifests.topic(
            "orders",
            str(topic),
            initial=_SEGMENTS,
            bucketBudget=_SEGMENTS * _BUCKETS,
            deduplication=True,
            subscriptions=[_SUBSCRIPTION],
        )
    )
    token = await make_caller(world.kube, world.namespace, "consumer", ["consume"])
    await world.until_ready("orders", within_seconds=180)
    await two.until_shared()
    layout = await world.layout("orders")
    names = [f"consumer-{number:03d}" for number in range(_CONSUMERS)]
    stopping = asyncio.Event()

    async def status() -> dict[str, Any]:
        fleet.check()
        return await subscription_status(world, "orders", _SUBSCRIPTION)

    def is_settled(found: dict[str, Any]) -> bool:
        busy = {name for owners in readers(found, layout).values() for name in owners}
        return busy == set(names) and is_shared_out(found, layout, layout.active)

    authentication = pulsar_client.AuthenticationToken(access.superuser_token)
    gateway = GatewayOptions(two.operators[0].gateway_url, token=token, register_timeout_seconds=120)
    async with (
        Client(access.service_url, authentication) as producing,
        Client(access.service_url, authentication, gateway=gateway) as consuming,
        await producing.producer(str(topic)) as producer,
        StreamFleet(consuming, str(topic), _SUBSCRIPTION) as fleet,
    ):
        sender = NumberedSender(producer, keys_in_every_bucket(layout, _KEYS_OF_A_BUCKET), _PER_SECOND)
        sending = asyncio.create_task(sender.run(stopping))
        began = time.monotonic()
        await fleet.join(names)
        joined_seconds = time.monotonic() - began
        found = await eventually(
            status, is_settled, what="every consumer has a part", within_seconds=_SETTLE_SECONDS, every_seconds=1.0
        )
        settled_seconds = time.monotonic() - began
        # What waited for those who joined is delivered by then, or soon after.
        await fleet.until(len(sender.sent), within_seconds=_SETTLE_SECONDS)
        before = Counter(fleet.counts)
        await asyncio.wait({sending}, timeout=_SECONDS)
        quiet = fleet.counts - before
        assert readers(await status(), layout) == readers(found, layout), "nothing moves while nobody comes or goes"
        stopping.set()
        await sending
        stored = sender.acknowledged()
        # What they still lack afterwards is judged.
        with suppress(AssertionError):
            await fleet.until(len(stored), within_seconds=_DRAIN_SECONDS)
        judgement = judge_ordered(stored, list(fleet.receipts))
    counts = [quiet[name] for name in names]
    lines = [
        f"One subscription, {_SEGMENTS} segments of {_BUCKETS} entry buckets, one producer of {_PER_SECOND:.0f} "
        f"messages a second over {_KEYS_OF_A_BUCKET} keys of every bucket, from before the first consumer joined. All "
        "consumers are in one process, two replicas of the operator and one broker beside it.",
        "",
        f"- all had joined after {joined_seconds:.0f} s, and every one had a part of its own after "
        f"{settled_seconds:.0f} s",
        *_told_shares(found, layout, names),
        f"- in {_SECONDS:.0f} s after that every consumer received {min(counts)} messages or more: median "
        f"{statistics.median(counts):.0f}, at most {max(counts)}; nothing changed hands",
        f"- {len(stored)} messages stored; no send failed",
        "",
        *table(
            ("received", "lost", "disorder", "came again", "of these repeated though acknowledged"),
            [
                (
                    judgement.receipts,
                    len(judgement.lost),
                    len(judgement.disordered),
                    judgement.again,
                    len(judgement.repeated),
                )
            ],
        ),
    ]
    print(judgement, *lines, sep="\n")
    assert not judgement.lost
    assert not judgement.disordered
    assert min(counts) > 0, [name for name in names if not quiet[name]]
    return lines


def _told_shares(status: dict[str, Any], layout: SegmentLayout, names: Sequence[str]) -> list[str]:
    owners = readers(status, layout)
    shares = Counter(Counter(name for (name,) in owners.values()).values())
    of_segment = Counter(len({owners[bucket][0] for bucket in owners if bucket[0] == one}) for one in layout.segments)
    return [
        "- entry buckets of a consumer: "
        + ", ".join(f"{many} of {count} consumers" for many, count in sorted(shares.items())),
        "- consumers of a segment: "
        + ", ".join(f"{many} on {count} segments" for many, count in sorted(of_segment.items())),
    ]
