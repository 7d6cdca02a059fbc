"""Create, split, merge, rebucket and prune on a real broker."""

from __future__ import annotations

import pytest

from scalable_topics_operator.cluster.resources import TOPICS
from tests.support import manifests
from tests.support.world import World, condition, phase, segment_topic


async def test_a_manifest_becomes_a_scalable_topic_with_every_cursor(world: World) -> None:
    await world.apply(
        manifests.topic("orders", f"topic://{world.pulsar_namespace}/orders", initial=4, subscriptions=["a", "b"])
    )
    body = await world.until_ready("orders")
    status = body["status"]
    assert status["segments"] == {"active": 4, "sealed": 0}
    assert status["backend"] == "Classic"
    assert status["layout"]["epoch"] == 0
    await world.assert_brokers_agree("orders", "orders", {"a", "b"})
    claim = world.topic_name("orders").persistent
    assert await world.pulsar.terminated(claim), "R1: the plain name must not be writable"
    await world.delete(TOPICS, "orders")


@pytest.mark.both_lines
async def test_split_merge_rebucket_and_prune_keep_brokers_and_record_together(world: World) -> None:
    await world.apply(
        manifests.topic("flow", f"{world.pulsar_namespace}/flow", initial=2, subscriptions=["reader"], bucketBudget=4)
    )
    await world.until_ready("flow")
    split = await world.operate("flow", "Split", segment=0, into=4)
    assert (phase(split), split["status"]["children"]) == ("Succeeded", [2, 3, 4, 5])
    merged = await world.operate("flow", "Merge", segments=[4, 3])
    assert (phase(merged), merged["status"]["children"]) == ("Succeeded", [6])
    split_at = await world.operate("flow", "Split", segment=1, at=0x9000)
    assert (phase(split_at), split_at["status"]["children"]) == ("Succeeded", [7, 8])
    rebucketed = await world.operate("flow", "Rebucket", segment=6, buckets=8)
    assert (phase(rebucketed), rebucketed["status"]["children"]) == ("Succeeded", [9])
    body = await world.until(
        TOPICS, "flow", lambda body: body["status"]["segments"]["sealed"] == 0, what="is pruned of sealed segments"
    )
    layout = await world.layout("flow")
    assert [str(segment.hash_range) for segment in layout.active] == [
        "[0000, 1fff]",
        "[2000, 5fff]",
        "[6000, 7fff]",
        "[8000, 8fff]",
        "[9000, ffff]",
    ]
    assert layout.segment(9).buckets == 8
    assert layout.segment(9).merge_depth == 1
    assert condition(body, "Stalled")["status"] == "False"
    await world.until_ready("flow")
    await world.assert_brokers_agree("flow", "flow", {"reader"})
    assert segment_topic(world.topic_name("flow"), layout.segment(9)).endswith("-segment-2000-5fff-9")
