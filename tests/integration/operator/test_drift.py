"""What somebody does to segments behind the operator's back is mended, or said (R14, R19, R27)."""

from __future__ import annotations

import asyncio
from typing import Any

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import TOPICS
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.pulsar_client import PulsarClient, close
from tests.support.running_operator import FAST_FLAGS
from tests.support.waiting import eventually
from tests.support.world import World, phase

_PROTECTION = "inactiveTopicPolicies"


def _reports(body: Body) -> list[tuple[str, str]]:
    return [(report["reason"], report["message"]) for report in body["status"].get("reports", ())]


async def test_a_deleted_active_segment_is_made_again_with_its_cursors_and_reported_as_lost(
    world: World, pulsar_client: PulsarClient
) -> None:
    """R14, hazards A1-25719b, B2, C3 and C40: also the cursors nobody declared, the policies and the grants."""
    name = "mended"
    await world.apply(
        manifests.topic(
            name,
            str(world.topic_name(name)),
            initial=3,
            subscriptions=["declared"],
            permissions=[{"role": "billing", "actions": ["consume"]}],
            policies={"perSegment": {"messageTTLSeconds": 60}},
        )
    )
    await world.until_ready(name)
    segments = await world.segment_names(name, name)
    for segment in segments.values():
        await close(await pulsar_client.consumer(segment, "found"))
    await world.pulsar.delete_topic(segments[1], force=True)
    message = "active segment 1 [5555, aaa9] had no topic and was made again empty; messages it held are lost"
    assert await world.until_event(name, "SegmentLost") == message
    await eventually(
        lambda: world.pulsar.subscriptions(segments[1]),
        lambda cursors: cursors == ["declared", "found"],
        what="the segment has its cursors again",
    )
    assert await world.pulsar.policy(segments[1], "messageTTL") == 60
    assert (await world.pulsar.policy(segments[1], _PROTECTION))["deleteWhileInactive"] is False
    assert await world.pulsar.grants(segments[1]) == {"billing": ["consume"]}
    await world.until(
        TOPICS, name, lambda body: ("SegmentLost", message) not in _reports(body), what="is quiet once it is mended"
    )
    assert phase(await world.operate(name, "Split", segment=1)) == "Succeeded", "it is a segment like any other"


async def test_an_active_segment_sealed_by_somebody_is_rolled_over(world: World, pulsar_client: PulsarClient) -> None:
    """R14, hazard B1: producers must not be refused for ever; what was written before stays readable."""
    name = "rolled"
    await world.apply(
        manifests.topic(name, str(world.topic_name(name)), initial=2, subscriptions=["reader"], bucketBudget=8)
    )
    await world.until_ready(name)
    segments = await world.segment_names(name, name)
    await pulsar_client.send(segments[0], "kept")
    await world.pulsar.terminate(segments[0])
    body = await world.until(TOPICS, name, lambda body: body["status"]["layout"]["epoch"] == 1, what="is rolled over")
    layout = await world.layout(name)
    assert [(s.segment_id, str(s.hash_range), s.buckets) for s in layout.active] == [
        (2, "[0000, 7fff]", 4),
        (1, "[8000, ffff]", 4),
    ]
    await world.until_event(name, "SegmentReplaced")
    assert body["status"]["actions"][-1]["request"]["kind"] == "DriftRepair"
    await world.assert_brokers_agree(name, name, {"reader"})
    await pulsar_client.send((await world.segment_names(name, name))[2], "new")
    assert await pulsar_client.receive(segments[0], "reader", 1) == ["kept"]


async def _pruned_parent(world: World, name: str) -> str:
    """A topic whose segment 0 was split and pruned; answers that segment's name."""
    await world.apply(manifests.topic(name, str(world.topic_name(name)), subscriptions=["reader"]))
    await world.until_ready(name)
    parent = (await world.segment_names(name, name))[0]
    assert phase(await world.operate(name, "Split", segment=0)) == "Succeeded"

    async def gone() -> bool:
        return not await world.pulsar.exists(parent)

    await eventually(gone, what="the sealed parent is pruned and deleted")
    return parent


async def test_a_resurrected_segment_is_swept(world: World, pulsar_client: PulsarClient) -> None:
    """R19, hazards A1-25719a and C65: a client that still uses the old name auto-creates it, again and again."""
    parent = await _pruned_parent(world, "haunted")
    consumer = await pulsar_client.consumer(parent, "reader")
    assert await world.pulsar.exists(parent), "auto-creation is on: the client has brought it back"
    await world.until_event("haunted", "StraySegmentSwept")
    await close(consumer)

    async def gone() -> bool:
        try:
            await world.assert_brokers_agree("haunted", "haunted", {"reader"})
        except AssertionError:
            return False
        return True

    # A reconnection that was on its way when the consumer was closed may bring it back once more.
    await eventually(gone, what="the ghost is gone for good")
    body = await world.until_ready("haunted")
    assert _reports(body) == []


async def test_a_resurrected_segment_with_data_is_reported_and_kept(world: World, pulsar_client: PulsarClient) -> None:
    """R19: somebody's messages are not ours to delete."""
    parent = await _pruned_parent(world, "reused")
    await pulsar_client.send(parent, "misdirected")
    await world.pulsar.create_subscription(parent, "keeps it from being idle")
    told = f"{parent} is not part of the layout but has 1 entries and 0 producers; somebody uses it directly"
    # What is found while the producer is still there says so, and is found again.
    await world.until(
        TOPICS, "reused", lambda body: _reports(body) == [("StraySegment", told)], what="reports the stray"
    )
    assert (await world.pulsar.internal(parent))["numberOfEntries"] == 1
    assert (await world.layout("reused")).segments.keys() == {1, 2}
    await world.pulsar.delete_topic(parent)
    await world.until(TOPICS, "reused", lambda body: not _reports(body), what="is quiet again")


async def test_topics_that_only_look_like_segments_are_none_of_ours(world: World) -> None:
    """R19 sweeps ids below nextSegmentId of a claimed topic; a longer name or a future id is somebody else's."""
    name = "modest"
    await _pruned_parent(world, name)
    plain_name = world.topic_name(name).persistent
    others = [
        f"{plain_name}-segment-0000-ffff-77",
        f"{plain_name}-segment-0000-ffff",
        f"{plain_name}-er-segment-0000-ffff-0",
    ]
    for other in others:
        await world.pulsar.create_topic(other)
        await world.pulsar.create_subscription(other, "keeps it from being idle")
    ghost = f"{plain_name}-segment-0000-ffff-0"
    await world.pulsar.create_topic(ghost)
    await world.pulsar.create_subscription(ghost, "keeps it from being idle")
    await world.until_event(name, "StraySegmentSwept")
    for other in others:
        assert await world.pulsar.exists(other), other


async def test_a_sealed_segment_that_vanished_is_reported_and_leaves_the_layout(world: World) -> None:
    name = "vanished"
    await world.apply(
        manifests.topic(name, str(world.topic_name(name)), policies={"perSegment": {"retentionTimeMinutes": 60}})
    )
    await world.until_ready(name)
    parent = (await world.segment_names(name, name))[0]
    assert phase(await world.operate(name, "Split", segment=0)) == "Succeeded"
    await world.pulsar.delete_topic(parent)
    await world.until(
        TOPICS, name, lambda body: body["status"]["segments"] == {"active": 2, "sealed": 0}, what="forgets it"
    )
    await world.assert_brokers_agree(name, name, set())


async def test_a_removed_protection_is_put_back(world: World) -> None:
    """R27: without it an idle segment would be gone ten seconds later."""
    name = "exposed"
    await world.apply(manifests.topic(name, str(world.topic_name(name))))
    await world.until_ready(name)
    segment = (await world.segment_names(name, name))[0]
    await world.pulsar.remove_policy(segment, _PROTECTION)
    await _until_protected(world, segment)


async def _until_protected(world: World, topic: str) -> None:
    def protects(policy: Any) -> bool:
        return isinstance(policy, dict) and policy["deleteWhileInactive"] is False

    await eventually(lambda: world.pulsar.policy(topic, _PROTECTION), protects, what=f"{topic} is protected")


async def test_idle_segments_and_their_claim_outlive_what_nobody_protects(proxied: MakeProxied) -> None:
    """R27: no clients, no subscriptions, no drift repair to cover a loss up; the long form is `show-idle-survival`."""
    bench = await proxied(flags=(*FAST_FLAGS, "--drift-seconds=600"))
    await bench.start()
    world, name = bench.world, "idle"
    await world.apply(manifests.topic(name, str(world.topic_name(name)), initial=2))
    await world.until_ready(name)
    assert phase(await world.operate(name, "Split", segment=0)) == "Succeeded"
    kept = [*(await world.segment_topics(name))[-2:], world.topic_name(name).persistent]
    before = {topic: await _first_ledger(world, topic) for topic in kept}
    # Each canary is made when the one before it is gone, so that two whole idle times pass.
    for canary in ("canary-1", "canary-2"):
        full_name = f"persistent://{world.pulsar_namespace}/{canary}"
        await world.pulsar.create_topic(full_name)
        await _until_deleted(world, full_name)
    assert {topic: await _first_ledger(world, topic) for topic in kept} == before
    assert not {"SegmentLost", "ClaimRestored"} & {reason for reason, _ in await world.events(name)}

    # What is lost while no operator runs is found when one comes (hazard C38).
    await asyncio.to_thread(bench.operator.stop)
    await world.pulsar.delete_topic(kept[0])
    await bench.start()
    await world.until_event(name, "SegmentLost")
    assert kept[0] in await world.segment_topics(name)


async def _first_ledger(world: World, topic: str) -> int:
    """Tells a topic from a later one of the same name."""
    return int((await world.pulsar.internal(topic))["ledgers"][0]["ledgerId"])


async def _until_deleted(world: World, topic: str) -> None:
    async def gone() -> bool:
        return not await world.pulsar.exists(topic)

    await eventually(gone, what=f"the brokers delete {topic}", within_seconds=60, every_seconds=0.5)
