"""Coordinated consumers on real replicas, brokers and a real API server (docs/sessions.md, R7, R17, R18, R21)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient, Resource
from scalable_topics_operator.cluster.resources import GROUP, SUBSCRIPTIONS, TOPICS
from scalable_topics_operator.cluster.reviews import SERVICE_ACCOUNTS, request_token
from scalable_topics_operator.cluster.shards import shard_of
from scalable_topics_operator.controllers.ordered_subscriptions import subscription_object_name
from tests.support import manifests
from tests.support.pulsar_client import PulsarClient
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import SHARDS, Replicas, replicas
from tests.support.running_operator import FAST_FLAGS, RunningOperator
from tests.support.session_client import SessionClient, open_session
from tests.support.waiting import eventually

_RBAC = "rbac.authorization.k8s.io"
_ROLES = Resource(_RBAC, "v1", "roles", "Role")
_BINDINGS = Resource(_RBAC, "v1", "rolebindings", "RoleBinding")
_GRACE_SECONDS, _HANDOVER_SECONDS = 3.0, 10.0
SUBSCRIPTION = "billing"
OBJECT = subscription_object_name("orders", SUBSCRIPTION)


@dataclass(frozen=True, slots=True)
class Shop:
    """A topic, two replicas, and a token that lets consumers in."""

    two: Replicas
    leader: RunningOperator
    other: RunningOperator
    token: str
    pulsar: PulsarAccess

    def session(self, name: str, *, of: str = "orders", through: RunningOperator | None = None, **fields: Any) -> Any:
        gateway = (through or self.leader).gateway_url
        return open_session(gateway, self.path(of), SUBSCRIPTION, self.token, name, **fields)

    def path(self, of: str = "orders") -> str:
        return f"/admin/v2/scalable/{self.two.world.pulsar_namespace}/{of}"

    def application(self) -> PulsarClient:
        return PulsarClient(self.pulsar.service_url, self.pulsar.superuser_token)

    async def status(self) -> dict[str, Any]:
        body = await self.two.world.get(SUBSCRIPTIONS, OBJECT)
        status: dict[str, Any] = body.get("status") or {}
        return status


@pytest.fixture
async def shop(
    kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, kube_environment: KubernetesAccess, tmp_path: Path
) -> AsyncIterator[Shop]:
    flags = (
        *FAST_FLAGS,
        # Sealed segments are to be seen.
        "--settle-window-seconds=600",
        # A lapse on a busy machine would send consumers away and roll changes back, as a leader's death does.
        "--lease-seconds=10",
        f"--consumer-session-grace-seconds={_GRACE_SECONDS}",
        f"--handover-seconds={_HANDOVER_SECONDS}",
    )
    async with replicas(2, kube, view, pulsar, kube_environment.kubeconfig, tmp_path, flags) as two:
        world = two.world
        topic = world.topic_name("orders")
        await world.apply(manifests.topic("orders", str(topic), segments={"initial": 4}))
        token = await _consumer_token(kube, world.namespace)
        await world.until_ready("orders")
        await two.until_shared()
        leader = await two.leader_of(shard_of(str(topic), SHARDS))
        (other,) = (operator for operator in two.operators if operator is not leader)
        yield Shop(two, leader, other, token, pulsar)


async def _consumer_token(kube: KubeClient, namespace: str) -> str:
    """Of an account that may consume, and nothing else."""

    def named(resource: Resource) -> dict[str, Any]:
        return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "consumer"}}

    await kube.create(SERVICE_ACCOUNTS, namespace, named(SERVICE_ACCOUNTS))
    rule = {"apiGroups": [GROUP], "resources": ["scalabletopics"], "verbs": ["consume"]}
    await kube.create(_ROLES, namespace, {**named(_ROLES), "rules": [rule]})
    binding = {
        **named(_BINDINGS),
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": "consumer"},
        "subjects": [{"kind": "ServiceAccount", "name": "consumer", "namespace": namespace}],
    }
    await kube.create(_BINDINGS, namespace, binding)
    return await request_token(kube, namespace, "consumer", 3600)


async def test_r21_the_first_consumer_gets_everything_and_the_record_says_so(shop: Shop) -> None:
    async with shop.session("a") as a:
        registered = await a.next("registered")
        assert registered["graceMs"] == _GRACE_SECONDS * 1000
        frame = await a.until_assigned({0, 1, 2, 3})
        body = await shop.two.world.get(SUBSCRIPTIONS, OBJECT)
        assert body["metadata"]["uid"] == registered["record"]
        topic = await shop.two.world.get(TOPICS, "orders")
        (owner,) = body["metadata"]["ownerReferences"]
        assert owner["uid"] == topic["metadata"]["uid"]
        status = body["status"]
        assert status["phase"] == "Active"
        assert status["version"] == frame["version"]
        assert [one["segment"] for one in status["consumers"][0]["assignments"]] == [0, 1, 2, 3]
        for segment in frame["segments"]:
            stats = await shop.two.world.pulsar.stats(segment["topic"])
            assert SUBSCRIPTION in stats["subscriptions"]


async def test_a_second_consumer_gets_its_share_once_the_first_has_let_go_through_any_replica(shop: Shop) -> None:
    async with shop.session("a") as a:
        await a.until_assigned({0, 1, 2, 3})
        async with shop.session("b", through=shop.other) as b:
            await _hand_over(shop, a, b)


async def test_more_consumers_than_segments_share_them_by_buckets_and_one_that_is_left_reads_them_whole(
    shop: Shop,
) -> None:
    """pip-486. A consumer of a release that knows nothing of buckets waits."""
    world = shop.two.world
    await world.apply(manifests.topic("shared", str(world.topic_name("shared")), segments={"initial": 1}))
    await world.until_ready("shared")
    async with shop.session("a", of="shared", sharesSegments=True) as a:
        assert await _buckets(a) == []
        async with shop.session("b", of="shared", sharesSegments=True) as b, shop.session("c", of="shared") as c:
            assert await a.assigned() == []
            await b.next("registered")
            await a.say("released", segments=[0])
            assert [await _buckets(a), await _buckets(b)] == [[0, 1], [2, 3]]
            assert await c.assigned() == []
            consumers = (await world.get(SUBSCRIPTIONS, subscription_object_name("shared", SUBSCRIPTION)))["status"]
            assert [one.get("assignments") for one in consumers["consumers"]] == [
                [{"segment": 0, "buckets": [0, 1]}],
                [{"segment": 0, "buckets": [2, 3]}],
                None,
            ]
            await b.say("leave")
            await b.next("left")
            assert await a.assigned() == []
            await a.say("released", buckets=[{"segment": 0, "buckets": [0]}])
            await a.say("released", segments=[], buckets=[{"segment": 0, "buckets": [1]}])
            assert await _buckets(a) == []


async def test_whether_consumers_share_a_sealed_segment_is_for_the_policy_to_say(shop: Shop) -> None:
    """pip-486: `rebucket.drainFanOut`, which may change at any time."""
    world = shop.two.world
    knobs = {"rebucket": {"drainFanOut": False}}
    await world.apply(manifests.topic("shared", str(world.topic_name("shared")), autoScale=knobs))
    await world.until_ready("shared")
    async with shop.session("a", of="shared", sharesSegments=True) as a:
        assert await _buckets(a) == []
        with shop.application() as application:
            await application.send((await world.segment_names("shared", "shared"))[0], "unread")
        await world.operate("shared", "Split", segment=0)
        async with shop.session("b", of="shared", sharesSegments=True) as b:
            await b.next("registered")
            assert await b.assigned() == []
            assert await _says_nothing(a), "it goes on reading what is sealed alone"
            await world.change(TOPICS, "shared", {"autoScale": {"rebucket": {"drainFanOut": True}}})
            assert await a.assigned() == []
            await a.say("released", segments=[0])
            assert [await _buckets(a), await _buckets(b)] == [[0, 1], [2, 3]]


async def _buckets(client: SessionClient) -> list[int]:
    """Those of segment 0 that it is told to read; empty for the whole segment."""
    (segment,) = (await client.until_assigned({0}))["segments"]
    assert segment["bucketCount"] == 4
    buckets: list[int] = segment["buckets"]
    return buckets


async def _hand_over(shop: Shop, a: SessionClient, b: SessionClient) -> None:
    await a.until_assigned({0, 1})
    await b.next("registered")
    assert await b.assigned() == []
    assert (await shop.status())["consumers"][0]["releasing"] == [2, 3]
    await a.say("released", segments=[2])
    await b.until_assigned({2})
    await a.say("released", segments=[3])
    await b.until_assigned({2, 3})
    await b.say("leave")
    await b.next("left")
    assert await b.is_ended() == 1000
    await a.until_assigned({0, 1, 2, 3})


async def test_R17_children_are_assigned_once_their_parent_is_read_to_its_end(shop: Shop) -> None:
    """Hazard A3-25642c."""
    world = shop.two.world
    async with _both(shop) as (a, _):
        topics = await world.segment_names("orders", "orders")
        with shop.application() as application:
            reader = await application.consumer(topics[0], SUBSCRIPTION, consumer_name="a")
            await application.send(topics[0], *map(str, range(20)))
            await world.operate("orders", "Split", segment=0)
            assert await _says_nothing(a)
            for _ in range(20):
                reader.acknowledge_cumulative(await asyncio.to_thread(reader.receive, 10_000))
            await a.say("drained", segments=[0])
            frame = await a.next("assignment")
        assert {one["id"] for one in frame["segments"]} == {1, 4, 5}
        assert (await shop.status())["drained"] == [0]


async def test_r7_a_consumer_that_comes_back_in_time_finds_what_it_had(shop: Shop) -> None:
    async with _both(shop) as (a, b):
        before = await shop.status()
        await a.socket.close()
        async with shop.session("a", incarnation=a.incarnation, resume=True, holds=[0, 1]) as again:
            await again.until_assigned({0, 1})
            assert await _says_nothing(b)
        assert (await shop.status())["version"] == before["version"]


async def test_a_consumer_that_stays_away_is_removed_after_its_grace(shop: Shop) -> None:
    """Hazard A3-26433a."""
    async with _both(shop) as (a, b):
        closing = time.monotonic()
        await a.socket.close()
        await b.until_assigned({0, 1, 2, 3})
        assert time.monotonic() - closing >= _GRACE_SECONDS
        assert [one["name"] for one in (await shop.status())["consumers"]] == ["b"]


async def test_R21_nobody_gets_what_a_broker_still_serves_to_one_that_is_away(shop: Shop) -> None:
    topics = await shop.two.world.segment_names("orders", "orders")
    async with _both(shop) as (a, b):
        with shop.application() as application:
            await application.consumer(topics[0], SUBSCRIPTION, consumer_name="a")
            await a.socket.close()
            await asyncio.sleep(_GRACE_SECONDS + 2.0)
            assert {one["name"] for one in (await shop.status())["consumers"]} == {"a", "b"}
        await b.until_assigned({0, 1, 2, 3}, within_seconds=40)


async def test_a_consumer_that_does_not_let_go_is_sent_away(shop: Shop) -> None:
    async with shop.session("a") as a:
        await a.until_assigned({0, 1, 2, 3})
        async with shop.session("b") as b:
            await a.until_assigned({0, 1})
            refused = await a.next("refused", within_seconds=_HANDOVER_SECONDS + 10)
            assert (refused["status"], refused["final"]) == (408, False)
            # Nothing shows that it still reads, so its grace is all it has.
            await b.until_assigned({0, 1, 2, 3}, within_seconds=_GRACE_SECONDS + 15)
    assert await shop.two.world.until_event(OBJECT, "HandoverOverdue", resource=SUBSCRIPTIONS)


async def test_another_consumer_of_the_name_takes_over_and_the_former_is_told(shop: Shop) -> None:
    """Hazard A3-26433b."""
    async with shop.session("a") as first:
        await first.until_assigned({0, 1, 2, 3})
        async with shop.session("a") as second:
            refused = await first.next("refused")
            assert (refused["status"], refused["final"]) == (409, True)
            await second.until_assigned({0, 1, 2, 3})
            async with shop.session("a", incarnation=first.incarnation, resume=True) as late:
                assert (await late.next("refused"))["final"] is True


async def test_r21_after_a_failover_everybody_has_what_they_had(shop: Shop) -> None:
    async with _both(shop, through=shop.other) as (a, b):
        before = await shop.status()
        shop.leader.kill()
        for client in (a, b):
            await client.is_ended()

    async def back(client: SessionClient, holds: list[int]) -> None:
        async def try_again() -> bool:
            try:
                async with shop.session(
                    client.name, through=shop.other, incarnation=client.incarnation, resume=True, holds=holds
                ) as again:
                    await again.until_assigned(set(holds))
                    return True
            except (aiohttp.WSServerHandshakeError, AssertionError):
                return False

        await eventually(try_again, what=f"{client.name} is registered with the new leader")

    await asyncio.gather(back(a, [0, 1]), back(b, [2, 3]))
    after = await shop.status()
    assert after["version"] == before["version"]
    assert {one["name"] for one in after["consumers"]} == {"a", "b"}


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"kind": "Checkpoint"}, 409),
        ({"kind": "Shared"}, 400),
        ({"holds": [-1]}, 400),
    ],
)
async def test_bad_registrations_are_refused_with_the_reason(shop: Shop, fields: dict[str, Any], status: int) -> None:
    async with shop.session("a") as a:
        await a.until_assigned({0, 1, 2, 3})
        async with shop.session("b", **fields) as bad:
            refused = await bad.next("refused")
            assert (refused["status"], refused["final"], bool(refused["reason"])) == (status, True, True)


async def test_R18_a_late_subscription_never_reads_what_was_sealed_before_it(shop: Shop) -> None:
    world = shop.two.world
    topics = await world.segment_names("orders", "orders")
    with shop.application() as application:
        # Without any cursor brokers would not keep it.
        await application.consumer(topics[0], "keeper")
        await application.send(topics[0], "early")
    await world.operate("orders", "Split", segment=0)
    async with shop.session("a", initialPosition="Latest") as a:
        await a.until_assigned({1, 2, 3, 4, 5})
    async with open_session(shop.leader.gateway_url, shop.path(), "from-the-start", shop.token, "c") as c:
        await c.until_assigned({0, 1, 2, 3})


@asynccontextmanager
async def _both(
    shop: Shop, through: RunningOperator | None = None
) -> AsyncIterator[tuple[SessionClient, SessionClient]]:
    """Consumer `a` with segments 0 and 1, and `b` with 2 and 3."""
    async with shop.session("a", through=through) as a:
        await a.until_assigned({0, 1, 2, 3})
        async with shop.session("b", through=through) as b:
            await a.until_assigned({0, 1})
            await a.say("released", segments=[2, 3])
            await b.until_assigned({2, 3})
            yield a, b


async def _says_nothing(client: SessionClient, seconds: float = 3.0) -> bool:
    try:
        await client.next("assignment", seconds)
    except TimeoutError:
        return True
    return False
