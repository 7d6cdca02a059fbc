"""How soon a consumer has its first message, and what moves for it: `make show-first-message`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pulsar
import pytest

from bench import rebalancing
from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics.sdk import Client, GatewayOptions
from scalable_topics_operator.cluster.kube_client import KubeClient
from tests.support import manifests
from tests.support.callers import make_caller
from tests.support.evidence import Evidence, table
from tests.support.keyed_traffic import KeyedTraffic
from tests.support.operator_guarantee import percentile
from tests.support.ordered_reading import OrderedReading
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import Replicas, replicas

_TRIES = 20
_SEGMENTS = (1, 8, 32)
_SHARED = 8
_PLAIN, _NEW, _JOINING, _MOVING = (
    "pulsar-client alone, on one segment",
    "New subscriptions",
    "A second consumer of a subscription",
    "Segments that change hands",
)
_SECONDS = 60.0
_EARLIEST = pulsar.InitialPosition.Earliest


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    page = Evidence(
        "first-message.md",
        "How soon a stream consumer has its first message, and what moves for it",
        "make show-first-message",
        (_PLAIN, _NEW, _JOINING, _MOVING),
    )
    yield page
    page.write()


@pytest.mark.timeout(1200)
async def test_the_first_message(
    kube: KubeClient,
    view: PulsarView,
    pulsar: PulsarAccess,
    kube_environment: KubernetesAccess,
    tmp_path: Path,
    evidence: Evidence,
) -> None:
    # As people run it, but for the log.
    async with replicas(2, kube, view, pulsar, kube_environment.kubeconfig, tmp_path, ("--log-level=INFO",)) as two:
        token = await make_caller(kube, two.world.namespace, "consumer", ["consume"])
        await two.until_shared()
        async with _client(pulsar, GatewayOptions(two.operators[0].gateway_url, token=token)) as client:
            rows = []
            for segments in _SEGMENTS:
                topic, names = await _topic(two, client, segments)
                if segments == 1:
                    plain = await _plain(pulsar, names[0])
                rows.append((f"{segments}", *_spread([await _new(client, topic, number) for number in range(_TRIES)])))
            evidence.show(_PLAIN, *table(("", "median", "p90", "longest"), [("", *_spread(plain))]))
            evidence.show(
                _NEW,
                f"From `Client.stream_consumer` to the first message, which waits already; {_TRIES} subscriptions, "
                "whose object, cursors and assignment are made meanwhile. Two replicas lead, and the gateway asked is "
                "one of them.",
                "",
                *table(("segments", "median", "p90", "longest"), rows),
            )
            topic, _ = await _topic(two, client, _SHARED)
            joined = await _joining(client, topic)
            evidence.show(
                _JOINING,
                f"A subscription of {_SHARED} segments has a consumer that acknowledges what it gets, of 200 messages "
                "a second. From `Client.stream_consumer` of the second one to its first message: half of the segments "
                "are taken, let go of, and given to it.",
                "",
                *table(("", "median", "p90", "longest"), [("", *_spread(joined))]),
            )
            assert max(joined) < _SECONDS
    _, _, *lines = rebalancing.report().splitlines()
    evidence.show(_MOVING, "By `python -m bench --only rebalancing`, with the operator's own code:", "", *lines)


def _client(access: PulsarAccess, gateway: GatewayOptions) -> Client:
    return Client(access.service_url, pulsar.AuthenticationToken(access.superuser_token), gateway=gateway)


async def _topic(two: Replicas, client: Client, segments: int) -> tuple[str, dict[int, str]]:
    """A topic with messages on all of its segments."""
    name = f"of-{segments}-{time.monotonic_ns()}"
    topic = two.world.topic_name(name)
    await two.world.apply(manifests.topic(name, str(topic), initial=segments))
    await two.world.until_ready(name, within_seconds=120)
    async with await client.producer(str(topic)) as producer:
        await asyncio.gather(*(producer.send(b"there", key=f"key-{number}") for number in range(20 * segments)))
    return str(topic), await two.world.segment_names(name, name)


async def _plain(access: PulsarAccess, segment: str) -> list[float]:
    plain = pulsar.Client(access.service_url, authentication=pulsar.AuthenticationToken(access.superuser_token))

    def once(number: int) -> float:
        started = time.monotonic()
        consumer = plain.subscribe(segment, f"plain-{number}", initial_position=_EARLIEST)
        consumer.receive(timeout_millis=30_000)
        took = time.monotonic() - started
        consumer.close()
        return took

    try:
        return [await asyncio.to_thread(once, number) for number in range(_TRIES)]
    finally:
        plain.close()


async def _new(client: Client, topic: str, number: int) -> float:
    started = time.monotonic()
    async with await client.stream_consumer(topic, f"new-{number}", initial_position=_EARLIEST) as consumer:
        await consumer.receive(_SECONDS)
        return time.monotonic() - started


async def _joining(client: Client, topic: str) -> list[float]:
    found = []
    async with await client.producer(topic) as producer, KeyedTraffic(producer, keys=200, burst=4, pause_seconds=0.02):
        first = await client.stream_consumer(topic, "shared", consumer_name="first")
        async with first, OrderedReading(first) as reading:
            await reading.until(1)
            for number in range(_TRIES):
                started = time.monotonic()
                async with await client.stream_consumer(topic, "shared", consumer_name=f"n{number}") as second:
                    await second.receive(_SECONDS)
                    found.append(time.monotonic() - started)
                while len(first.segment_ids) < _SHARED:
                    await asyncio.sleep(0.05)
    return found


def _spread(seconds: Sequence[float]) -> tuple[str, str, str]:
    ordered = sorted(seconds)
    return tuple(f"{percentile(ordered, share):.2f} s" for share in (0.5, 0.9, 1))  # type: ignore[return-value]
