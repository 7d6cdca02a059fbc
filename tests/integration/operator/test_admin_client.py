"""The admin client, both faces, with real replicas, brokers, rights and tokens (R32, R33)."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics.admin import (
    AdminClient,
    AutoScalePolicy,
    ConflictError,
    GatewayOptions,
    InitialPosition,
    NotAllowedError,
    NotFoundError,
    OutcomeState,
    SubscriptionType,
    sync,
)
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import CONNECTIONS
from tests.support.admin_caller import make_admin
from tests.support.callers import make_caller
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import Replicas, replicas
from tests.support.running_operator import FAST_FLAGS
from tests.support.waiting import eventually
from tests.support.world import SHARED_CONNECTION

EXAMPLE = Path(__file__).parents[3] / "examples" / "admin_client.py"


@dataclass(frozen=True, slots=True)
class Shop:
    """Two replicas, a Pulsar namespace that is mapped, and somebody who may do everything in it."""

    two: Replicas
    token: str
    stranger: str
    folder: Path

    @property
    def namespace(self) -> str:
        return self.two.world.pulsar_namespace

    def topic(self, name: str) -> str:
        return f"topic://{self.namespace}/{name}"

    def gateway(self, replica: int = 0, token: str = "") -> GatewayOptions:
        """By a token file, as applications in pods have one."""
        file = self.folder / f"token-{replica}-{'other' if token else 'own'}"
        file.write_text(token or self.token)
        return GatewayOptions(self.two.operators[replica].gateway_url, token_file=file)


@pytest.fixture
async def shop(
    kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, kube_environment: KubernetesAccess, tmp_path: Path
) -> AsyncIterator[Shop]:
    flags = (
        *FAST_FLAGS,
        "--lease-seconds=10",
        "--settle-window-seconds=600",
        "--auto-scale-enabled=true",
        "--auto-scale-interval-seconds=5",
    )
    load = {"intervalSeconds": 2}
    async with replicas(2, kube, view, pulsar, kube_environment.kubeconfig, tmp_path, flags, load=load) as two:
        world = two.world
        mapping = {"pulsarNamespace": world.pulsar_namespace, "namespace": world.namespace}
        await world.change(CONNECTIONS, SHARED_CONNECTION, {"pulsarNamespaceMappings": [mapping]})
        token = await make_admin(kube, world.namespace, "admin")
        stranger = await make_caller(kube, world.namespace, "stranger")
        await two.until_shared()
        yield Shop(two, token, stranger, tmp_path)


async def test_a_topic_from_its_creation_to_its_deletion(shop: Shop) -> None:
    topic = shop.topic("orders")
    async with AdminClient(shop.gateway(0)) as client, AdminClient(shop.gateway(1)) as other:
        made = await client.wait(await client.create_topic(topic, segments=2, properties={"team": "shop"}))
        assert made.state is OutcomeState.DONE
        with pytest.raises(ConflictError, match="is there already"):
            await other.create_topic(topic)
        assert [str(one) for one in await other.list_topics(shop.namespace, properties={"team": "shop"})] == [topic]

        record = await other.get_topic(topic)
        assert record.properties == {"team": "shop"}
        assert [segment.segment_id for segment in record.layout.active] == [0, 1]
        assert await other.get_segments(topic) == tuple(record.layout.segments.values())
        assert await other.get_segment(topic, record.layout.segments[1]) == record.layout.segments[1]

        planned = await client.split_segment(topic, 0, dry_run=True)
        assert planned.plan is not None
        assert (await client.get_topic(topic)).layout == record.layout
        split = await client.wait(await client.split_segment(topic, 0))
        assert split.operation is not None
        name = split.operation

        async def known(by: AdminClient) -> set[int]:
            return {one.segment_id for one in (await by.get_topic(topic)).layout.active}

        assert (await client.get_operation(topic, name)).phase == "Succeeded"
        await eventually(partial(known, other), lambda ids: ids == {1, 2, 3}, what="the other replica knows the split")
        merged = await other.wait(await other.merge_segments(topic, 2, 3))
        assert merged.done
        await eventually(partial(known, client), lambda ids: ids == {1, 4}, what="this one knows the merge")
        assert (await client.wait(await client.rebucket_segment(topic, 4, 8))).done
        layout = (await client.get_topic(topic)).layout
        assert {one.segment_id for one in layout.active} == {1, 5}
        assert layout.segments[5].buckets == 8
        with pytest.raises(ConflictError):
            await client.split_segment(topic, 0)
        with pytest.raises(NotAllowedError, match="operator alone"):
            await client.terminate_segment(topic, record.layout.segments[1])

        assert (await client.wait(await client.delete_topic(topic))).done

        async def is_gone() -> bool:
            try:
                await other.get_topic(topic)
            except NotFoundError:
                return True
            return False

        # The other replica hears of it over its own watch.
        await eventually(is_gone, what="the topic is gone for the other replica, too")


async def test_subscriptions_are_made_moved_and_deleted(shop: Shop) -> None:
    topic = shop.topic("orders")
    async with AdminClient(shop.gateway(0)) as client, AdminClient(shop.gateway(1)) as other:
        await client.wait(await client.create_topic(topic, segments=2))
        await other.wait(await other.create_subscription(topic, "audit", type=SubscriptionType.QUEUE))
        latest = InitialPosition.LATEST
        await client.wait(await client.create_subscription(topic, "billing", initial_position=latest))
        found = {one.name: one for one in await other.get_subscriptions(topic)}
        assert (found["audit"].type, found["billing"].type) == (SubscriptionType.QUEUE, SubscriptionType.STREAM)
        billing = await client.get_subscription(topic, "billing")
        assert billing.initial_position is latest
        assert billing.assignment is not None
        assert billing.assignment.consumers == ()

        segment = (await client.get_segments(topic))[0]
        assert (await other.get_segment_subscriptions(topic, segment)).keys() >= {"audit", "billing"}
        assert await other.get_segment_backlog(topic, segment, "audit") == 0
        assert (await client.wait(await client.skip_all(topic, "audit"))).done
        assert (await other.wait(await other.seek(topic, "audit", 0))).done
        for name in ("audit", "billing"):
            assert (await other.wait(await other.delete_subscription(topic, name))).done
        await eventually(
            lambda: client.get_subscriptions(topic), lambda found: found == (), what="this replica knows it, too"
        )


async def test_policies_and_what_leaders_tell(shop: Shop) -> None:
    topic = shop.topic("orders")
    async with AdminClient(shop.gateway(0)) as client, AdminClient(shop.gateway(1)) as other:
        await client.wait(await client.create_topic(topic, segments=2))
        assert await client.get_auto_scale_policy(topic) is None
        await client.set_auto_scale_policy(topic, AutoScalePolicy(max_segments=4))
        await client.set_namespace_auto_scale_policy(shop.namespace, AutoScalePolicy(split_cooldown_seconds=0.5))
        assert (await client.get_auto_scale_policy(topic)) == AutoScalePolicy(max_segments=4)
        assert (await client.get_topic(topic)).auto_scale_policy == AutoScalePolicy(max_segments=4)
        assert await client.get_namespace_auto_scale_policy(shop.namespace) == AutoScalePolicy(
            split_cooldown_seconds=0.5
        )

        async def applied() -> tuple[object, object]:
            policy = await other.get_effective_policy(topic)
            return policy.value("maxSegments"), policy.value("split.cooldown")

        await eventually(applied, lambda found: found == (4, 0.5), within_seconds=60, what="the policies apply")
        stats = await other.get_stats(topic)
        assert [segment.segment_id for segment in stats.segments] == [0, 1]
        assert (await other.explain(topic)).findings
        await client.remove_auto_scale_policy(topic)
        await client.remove_namespace_auto_scale_policy(shop.namespace)
        assert await client.get_auto_scale_policy(topic) is None
        assert await client.get_namespace_auto_scale_policy(shop.namespace) is None


async def test_the_blocking_client_and_somebody_without_rights(shop: Shop) -> None:
    topic = shop.topic("orders")

    def use() -> None:
        with sync.AdminClient(shop.gateway(0)) as client:
            assert client.wait(client.create_topic(topic)).done
            assert client.wait(client.split_segment(topic, 0, into=4)).done
            assert len(client.get_topic(topic).layout.active) == 4
        with sync.AdminClient(shop.gateway(1, shop.stranger)) as client:
            with pytest.raises(NotAllowedError, match="lacks the right to get scalabletopics"):
                client.get_topic(topic)
            with pytest.raises(NotAllowedError, match="lacks the right to create segmentoperations"):
                client.skip_all(topic, "billing")

    await asyncio.to_thread(use)


async def test_the_example_does_what_it_says(shop: Shop) -> None:
    gateway = shop.gateway()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLE),
        gateway.url,
        shop.topic("orders"),
        env={**os.environ, "GATEWAY_TOKEN_FILE": str(gateway.token_file)},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 120)
    lines = output.decode().splitlines()
    assert process.returncode == 0
    assert any(line.startswith(f"done by {shop.two.world.namespace}/orders-split-") for line in lines)
    assert [line.split()[-1] for line in lines if line.startswith("segment ")] == [
        "Sealed",
        "Active",
        "Active",
        "Active",
    ]
    assert "max_segments=16" in lines[-1]
