"""`segments.desired` and the scale subresource: a number asked for becomes the number there is (R30)."""

from __future__ import annotations

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import TOPICS
from tests.support import manifests
from tests.support.pulsar_client import PulsarClient
from tests.support.world import World, condition, phase


async def _settled(world: World, name: str, active: int) -> None:
    def holds(body: Body) -> bool:
        status = body.get("status") or {}
        return status.get("segments") == {"active": active, "sealed": 0} and not status.get("deleting")

    await world.until(TOPICS, name, holds, what=f"has {active} active segments and is pruned")
    await world.until_ready(name)


async def test_desired_goes_up_and_down_and_keeps_every_cursor(world: World) -> None:
    await world.apply(
        manifests.topic("elastic", f"{world.pulsar_namespace}/elastic", subscriptions=["reader"], bucketBudget=8)
    )
    await world.until_ready("elastic")
    await world.change(TOPICS, "elastic", {"segments": {"desired": 5}})
    await _settled(world, "elastic", 5)
    layout = await world.layout("elastic")
    assert sorted(segment.hash_range.size for segment in layout.active) == [8192, 8192, 16384, 16384, 16384]
    await world.assert_brokers_agree("elastic", "elastic", {"reader"})
    await world.change(TOPICS, "elastic", {"segments": {"desired": 2}})
    await _settled(world, "elastic", 2)
    await world.assert_brokers_agree("elastic", "elastic", {"reader"})
    body = await world.get(TOPICS, "elastic")
    auto_scale = condition(body, "AutoScale")
    assert (auto_scale["status"], auto_scale["reason"]) == ("False", "DesiredSet")
    await world.change(TOPICS, "elastic", {"segments": {"desired": None}})
    body = await world.until_ready("elastic")
    assert condition(body, "AutoScale")["reason"] == "Disabled", "by a flag of this operator"
    assert body["status"]["segments"]["active"] == 2, "no number asked for is no wish for another number"


async def test_the_scale_subresource_scales(world: World) -> None:
    await world.apply(manifests.topic("scaled", f"{world.pulsar_namespace}/scaled"))
    await world.until_ready("scaled")
    await world.scale("scaled", 3)
    await _settled(world, "scaled", 3)
    scale = await world.scale("scaled", 3)
    assert scale["spec"]["replicas"] == scale["status"]["replicas"] == 3
    uid = (await world.get(TOPICS, "scaled"))["metadata"]["uid"]
    assert scale["status"]["selector"] == f"scalabletopics.io/segment-of={uid}"
    await world.scale("scaled", 1)
    await _settled(world, "scaled", 1)
    await world.assert_brokers_agree("scaled", "scaled", set())


async def test_messages_written_before_scaling_are_still_there_to_read(
    world: World, pulsar_client: PulsarClient
) -> None:
    """hazard A3-25642a at our end: the sealed parent stays until its subscription has drained it."""
    await world.apply(manifests.topic("kept", f"{world.pulsar_namespace}/kept", subscriptions=["reader"]))
    await world.until_ready("kept")
    parent = (await world.segment_names("kept", "kept"))[0]
    await pulsar_client.send(parent, "one", "two")
    await world.change(TOPICS, "kept", {"segments": {"desired": 2}})
    body = await world.until_ready("kept")
    assert body["status"]["segments"] == {"active": 2, "sealed": 1}
    assert await pulsar_client.receive(parent, "reader", 2) == ["one", "two"]
    await _settled(world, "kept", 2)
    assert not await world.pulsar.exists(parent)


async def test_a_topic_may_be_made_with_another_number_than_it_starts_with(world: World) -> None:
    await world.apply(manifests.topic("grown", f"{world.pulsar_namespace}/grown", initial=2, segments={"desired": 4}))
    await _settled(world, "grown", 4)
    await world.assert_brokers_agree("grown", "grown", set())


async def test_R30_what_is_asked_for_on_a_long_way_does_not_wait_for_its_end(world: World) -> None:
    most = 48

    def some(body: Body) -> bool:
        return 1 < int(body["status"]["segments"]["active"]) < most

    await world.apply(manifests.topic("long", f"{world.pulsar_namespace}/long"))
    await world.until_ready("long")
    await world.change(TOPICS, "long", {"segments": {"desired": most}})
    await world.until(TOPICS, "long", some, what="is on its way")
    assert phase(await world.operate("long", "Prune")) == "Succeeded"
    assert some(await world.get(TOPICS, "long")), "an operation comes between"
    await world.change(TOPICS, "long", {"paused": True})
    paused = await world.until(
        TOPICS, "long", lambda body: condition(body, "Paused").get("status") == "True", what="is paused"
    )
    assert some(paused), "a pause ends it"
    await world.change(
        TOPICS, "long", {"paused": False, "segments": {"desired": paused["status"]["segments"]["active"]}}
    )
    await world.until_ready("long")
