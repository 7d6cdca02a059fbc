"""Records that are lost, old, or in another Kubernetes cluster, while applications go on (R11, R12)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from dev.access import PulsarAccess
from dev.instance import LocalCluster, Shape
from scalable_topics.layout import Segment
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_login import load_endpoint
from scalable_topics_operator.cluster.resources import CONNECTIONS, TOPICS
from tests.integration.operator.conftest import MakeOperator
from tests.support import manifests
from tests.support.application import Application
from tests.support.crds import install_crds
from tests.support.metrics import until_metric
from tests.support.pulsar_client import PulsarClient
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import RunningOperator
from tests.support.stored_messages import judge, stored_on
from tests.support.world import World, phase
from tests.support.world_making import create_namespace, make_world, random_name

_WORK = "work"
_OFTEN = ("--drift-seconds=2", "--prune-seconds=3600")
_ORPHANS = 'scalable_topics_orphans{name="pulsar"'


def _application(brokers: PulsarAccess, world: World, name: str) -> Application:
    return Application(brokers, f"{world.pulsar_namespace}/{name}", _WORK, producers=2, consumers=1)


async def _require_all_there(application: Application, brokers: PulsarAccess, world: World, name: str) -> None:
    """Every message is stored once, in order, and was delivered."""
    assert application.journal.failed == []
    assert application.journal.not_received == []
    names = await world.segment_names(name, name)
    stored = await stored_on(
        brokers.service_url, brokers.superuser_token, [topic for _, topic in sorted(names.items())]
    )
    findings = judge(application.journal.acknowledged, stored)
    assert not findings, str(findings)


async def _split_and_follow(world: World, application: Application, name: str) -> None:
    """A change of the layout that the application takes part in."""
    widest = max((await world.layout(name)).active, key=lambda segment: segment.hash_range.size)
    assert phase(await world.operate(name, "Split", segment=widest.segment_id)) == "Succeeded"
    await application.until_sent(100)


async def test_R11_R12_clients_follow_through_a_wiped_and_a_restored_status(
    own_operator: MakeOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess
) -> None:
    # Nothing is pruned, so that all that was sent can be read in the end.
    operator = await own_operator(("--drift-seconds=3600", "--prune-seconds=3600"))
    world = await make_world(kube, view, pulsar, operator.namespace)
    await asyncio.to_thread(operator.start)
    await world.apply(manifests.topic("kept", f"{world.pulsar_namespace}/kept", initial=2, subscriptions=[_WORK]))
    old = (await world.until_ready("kept"))["status"]
    async with _application(pulsar, world, "kept") as application:
        await application.until_sent(100)
        await _split_and_follow(world, application, "kept")
        incarnations = [old["incarnation"]]
        for status, event in (({}, "LayoutRebuilt"), (old, "RecordOutdated")):
            now = (await world.get(TOPICS, "kept"))["status"]
            await world.set_status("kept", dict.fromkeys(now) | status)
            await world.until_event("kept", event)
            rebuilt = await world.until(
                TOPICS,
                "kept",
                lambda body: body["status"].get("incarnation", incarnations[-1]) not in incarnations,
                what="has a new incarnation",
            )
            incarnations.append(rebuilt["status"]["incarnation"])
            await world.until_ready("kept")
            await _split_and_follow(world, application, "kept")
    await world.assert_brokers_agree("kept", "kept", {_WORK})
    await _require_all_there(application, pulsar, world, "kept")


async def test_R11_clients_follow_through_an_object_that_goes_and_comes_again(
    own_operator: MakeOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess
) -> None:
    operator = await own_operator(("--prune-seconds=3600",))
    world = await make_world(kube, view, pulsar, operator.namespace)
    await asyncio.to_thread(operator.start)
    manifest = manifests.topic("again", f"{world.pulsar_namespace}/again", initial=2, subscriptions=[_WORK])
    await world.apply(manifest)
    await world.until_ready("again")
    async with _application(pulsar, world, "again") as application:
        await _split_and_follow(world, application, "again")
        await world.delete(TOPICS, "again")
        await world.until_gone(TOPICS, "again")
        await application.until_sent(100)
        await world.apply(manifest)
        await world.until_ready("again")
        await _split_and_follow(world, application, "again")
    await world.assert_brokers_agree("again", "again", {_WORK})
    await _require_all_there(application, pulsar, world, "again")


@pytest.mark.timeout(240)
async def test_R1_R11_an_object_moves_to_another_kubernetes_cluster_under_traffic(
    local_cluster: Callable[[Shape], LocalCluster],
    monkeypatch: pytest.MonkeyPatch,
    own_operator: MakeOperator,
    kube: KubeClient,
    view: PulsarView,
    pulsar: PulsarAccess,
    tmp_path: Path,
) -> None:
    """The new cluster takes over only when it is told to, and the old one then lets go by itself."""
    old_operator = await own_operator(_OFTEN)
    old = await make_world(kube, view, pulsar, old_operator.namespace)
    cluster = await asyncio.to_thread(local_cluster, Shape(brokers=0))
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubernetes.access.kubeconfig))
    await asyncio.to_thread(install_crds)
    async with KubeClient(load_endpoint(), field_validation="Strict", manager="a-user") as new_kube:
        new = await _same_topics_elsewhere(old, new_kube, pulsar)
        new_operator = RunningOperator(
            cluster.kubernetes.access.kubeconfig, new.namespace, tmp_path / "moved.log", _OFTEN
        )
        await asyncio.gather(*(asyncio.to_thread(one.start) for one in (old_operator, new_operator)))
        try:
            manifest = manifests.topic("moves", f"{old.pulsar_namespace}/moves", initial=2, subscriptions=[_WORK])
            await old.apply(manifest)
            await old.until_ready("moves")
            async with _application(pulsar, old, "moves") as application:
                await _split_and_follow(old, application, "moves")
                before = await old.layout("moves")
                old_operator.kill()

                await new.apply(manifest)
                await new.until_reason("moves", "ClaimedElsewhere")
                await application.until_sent(100)
                await new.change(TOPICS, "moves", {"adopt": True})
                await new.until_event("moves", "LayoutRebuilt")
                await new.until_ready("moves")
                after = await new.layout("moves")
                assert [_place(one) for one in after.active] == [_place(one) for one in before.active]
                await _split_and_follow(new, application, "moves")

                # The old cluster comes back and finds that the topic is not its any more.
                await asyncio.to_thread(old_operator.start)
                await old.until_reason("moves", "ClaimLost")
                await _split_and_follow(new, application, "moves")
            await new.until_ready("moves")
            await new.assert_brokers_agree("moves", "moves", {_WORK})
            await _require_all_there(application, pulsar, new, "moves")
        finally:
            new_operator.kill()


def _place(segment: Segment) -> tuple[int, str]:
    return segment.segment_id, str(segment.hash_range)


async def _same_topics_elsewhere(world: World, kube: KubeClient, brokers: PulsarAccess) -> World:
    """A namespace in another Kubernetes cluster, with a connection to the same brokers."""
    namespace = random_name("moved")
    await create_namespace(kube, namespace)
    made = World(kube, namespace, world.pulsar, world.pulsar_namespace, world.admin_url)
    await made.apply(manifests.secret("pulsar-token", token=brokers.superuser_token))
    await made.apply(manifests.connection("pulsar", brokers.admin_url))
    return made


async def test_A1_26048_a_topic_whose_object_was_taken_away_is_told_of_until_it_is_declared_again(
    own_operator: MakeOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, pulsar_client: PulsarClient
) -> None:
    operator = await own_operator()
    world = await make_world(kube, view, pulsar, operator.namespace)
    await asyncio.to_thread(operator.start)
    left = manifests.topic("left", f"{world.pulsar_namespace}/left", initial=2, subscriptions=["s"])
    for manifest in (
        left,
        manifests.topic("stays", f"{world.pulsar_namespace}/stays"),
        manifests.topic("retained", f"{world.pulsar_namespace}/retained"),
    ):
        await world.apply(manifest)
    for name in ("left", "stays", "retained"):
        await world.until_ready(name)
    await world.delete(TOPICS, "retained")
    await world.until_gone(TOPICS, "retained")
    segments = await world.segment_names("left", "left")
    await pulsar_client.send(segments[1], "kept")

    # As a restore of etcd from before the object was made, or somebody in a hurry, leaves it.
    operator.kill()
    await world.delete(TOPICS, "left")
    await kube.merge_patch(TOPICS, world.namespace, "left", {"metadata": {"finalizers": None}})
    await world.until_gone(TOPICS, "left")
    await asyncio.to_thread(operator.start)

    def tells(body: Body) -> bool:
        return bool((body.get("status") or {}).get("orphans"))

    connection = await world.until(CONNECTIONS, "pulsar", tells, what="tells of an orphan")
    name = f"topic://{world.pulsar_namespace}/left"
    assert connection["status"]["orphans"] == [{"topic": name, "segments": 2, "owner": f"{world.namespace}/left"}], (
        "the retained one was let go of, and the other one is looked after"
    )
    assert name in await world.until_event("pulsar", "OrphanedTopic", resource=CONNECTIONS)
    await until_metric(operator, _ORPHANS, lambda found: found == 1)
    assert set(await world.segment_topics("left")) == set(segments.values()), "nothing is deleted"

    await world.apply(left)
    await world.until_ready("left")
    await world.until(CONNECTIONS, "pulsar", lambda body: not tells(body), what="tells of no orphan")
    await until_metric(operator, _ORPHANS, lambda found: found == 0)
    assert await pulsar_client.receive(segments[1], "s", 1) == ["kept"]
