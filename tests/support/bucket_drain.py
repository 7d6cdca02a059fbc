"""A sealed backlog of a segment of many entry buckets, and consumers that drain it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pulsar

from dev.access import PulsarAccess
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.reviews import request_token
from tests.support import manifests
from tests.support.callers import make_caller
from tests.support.consumer_crowd import Crowd
from tests.support.consumption import Kind
from tests.support.drain_record import DrainRecord, read_drain
from tests.support.entry_buckets import subscription_status
from tests.support.numbered_sender import NumberedSender
from tests.support.replicas import Replicas
from tests.support.waiting import eventually
from tests.support.world import phase

BUCKETS, KEYS = 16, 4096
_TOPIC = "orders"
_TOKEN_SECONDS = 3600
_SEALED = 0


@dataclass(frozen=True, slots=True)
class Drain:
    """Who drains the backlog how; each has a subscription of its own.

    Args:
        consumers: processes.
        handling_ms: what handling a message takes; 0 for an application that only counts it.
        number: of those that are alike.
    """

    consumers: int
    handling_ms: float
    number: int = 0

    @property
    def subscription(self) -> str:
        """Name of its subscription."""
        return f"by-{self.consumers}-{self.handling_ms:.0f}-ms-{self.number}"


class Backlog:
    """Messages of a sealed segment, and a hundredth as many that came after them.

    Args:
        replicas: one replica, which deals out the buckets.
        access: the brokers.
        folder: for logs of consumers.
        messages: in the sealed segment.
    """

    def __init__(self, replicas: Replicas, access: PulsarAccess, folder: Path, messages: int) -> None:
        self._replicas = replicas
        self._world = replicas.world
        self._access = access
        self._folder = folder
        self._topic = str(self._world.topic_name(_TOPIC))
        self._sent: NumberedSender | None = None
        self.messages = messages
        self.after = messages // 100

    async def fill(self, drains: Sequence[Drain]) -> None:
        """Make the topic with the subscriptions of these, and have all that they are to drain."""
        world = self._world
        subscriptions = [drain.subscription for drain in drains]
        await world.apply(manifests.topic(_TOPIC, self._topic, bucketBudget=BUCKETS, subscriptions=subscriptions))
        await make_caller(world.kube, world.namespace, "consumer", ["consume"])
        await world.until_ready(_TOPIC)
        authentication = pulsar.AuthenticationToken(self._access.superuser_token)
        async with (
            Client(self._access.service_url, authentication) as client,
            await client.producer(self._topic) as producer,
        ):
            self._sent = NumberedSender(producer, [f"key-{number}" for number in range(KEYS)])
            await self._sent.send(self.messages)
            body = await world.operate(_TOPIC, "Split", segment=_SEALED)
            assert phase(body) == "Succeeded", body["status"]
            await self._sent.send(self.after)

    async def drained(self, drain: Drain) -> DrainRecord:
        """Have the backlog drained, and what came after it; answers what the consumers saw.

        Raises AssertionError if a message was lost or out of order.
        """
        assert self._sent is not None
        logs = await self._consumers_logs(drain)
        record = await asyncio.to_thread(read_drain, logs, self._sent.counts(), _SEALED)
        assert (record.lost, record.disordered, record.unacknowledged, record.early) == (0, 0, 0, 0), drain
        return record

    async def _consumers_logs(self, drain: Drain) -> Sequence[Path]:
        world = self._world
        own = self._folder / drain.subscription
        own.mkdir()
        token_file, gateway_token_file = own / "token", own / "gateway-token"
        token_file.write_text(self._access.superuser_token)
        gateway_token_file.write_text(await request_token(world.kube, world.namespace, "consumer", _TOKEN_SECONDS))
        gateway_url = self._replicas.operators[0].gateway_url

        def command() -> list[str]:
            files = (str(token_file), gateway_url, str(gateway_token_file))
            return [self._access.service_url, *files, self._topic, drain.subscription]

        crowd = Crowd(Kind.STREAM, drain.consumers, command, own, Random(0), handling_ms=drain.handling_ms)
        try:
            for _ in range(drain.consumers):
                crowd.join()
            await eventually(
                lambda: self._left(crowd, drain.subscription),
                lambda left: left == 0,
                what=f"{drain} has drained everything",
                within_seconds=240 + 3 * self.messages * (drain.handling_ms / 1000 / drain.consumers + 0.0003),
                every_seconds=1.0,
            )
            await crowd.end()
        finally:
            crowd.kill()
        return crowd.logs

    async def _left(self, crowd: Crowd, subscription: str) -> int:
        """Messages that a subscription has not acknowledged, and all of a segment that it is not known to have drained.

        Raises AssertionError if a consumer has ended by itself.
        """
        crowd.check()
        layout = await self._world.layout(_TOPIC)
        names = await self._world.segment_names(_TOPIC, _TOPIC)
        status = await subscription_status(self._world, _TOPIC, subscription)
        if _SEALED in layout.segments and _SEALED not in status.get("drained", ()):
            return self.messages
        statistics = [await self._world.pulsar.stats(names[segment.segment_id]) for segment in layout.active]
        return sum(int(found["subscriptions"][subscription]["msgBacklog"]) for found in statistics)
