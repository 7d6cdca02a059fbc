"""What clients follow is published: the layout after every commit, a seal before it happens (R13, R15, R20)."""

from __future__ import annotations

import asyncio
import json
import time
from itertools import pairwise
from typing import Any

import pulsar
import pytest

from scalable_topics.layout import SegmentLayout, from_record, layout_topic_name
from scalable_topics_operator.cluster.resources import TOPICS
from tests.support import manifests
from tests.support.pulsar_client import PulsarClient
from tests.support.replicas import shard_leases
from tests.support.waiting import eventually
from tests.support.world import World, phase, segment_topic

Message = dict[str, Any]


async def _create(world: World, name: str, **spec: Any) -> None:
    await world.apply(manifests.topic(name, str(world.topic_name(name)), subscriptions=["reader"], **spec))
    await world.until_ready(name)


async def _published(world: World, pulsar_client: PulsarClient, name: str) -> list[Message]:
    """All messages of the layout topic, oldest first."""
    topic = layout_topic_name(world.topic_name(name))
    reader = await pulsar_client.reader(topic)
    messages = []
    while await asyncio.to_thread(reader.has_message_available):
        messages.append(json.loads((await asyncio.to_thread(reader.read_next, 10_000)).data()))
    await asyncio.to_thread(reader.close)
    return messages


async def _until_told(world: World, pulsar_client: PulsarClient, name: str) -> list[Message]:
    """Wait until the latest message tells the recorded layout; answers all messages."""

    async def told() -> list[Message]:
        if not await world.pulsar.exists(layout_topic_name(world.topic_name(name))):
            return []
        return await _published(world, pulsar_client, name)

    async def both() -> tuple[list[Message], dict[str, Any]]:
        messages = await told()
        return messages, (await world.get(TOPICS, name))["status"]

    messages, status = await eventually(
        both, lambda seen: bool(seen[0]) and _tells(seen[0][-1], seen[1]), what=f"clients are told of {name}'s layout"
    )
    _check(world, name, messages[-1], from_record(status["layout"]))
    # On a machine that is too busy, even the only replica may lose its Lease and win it again with a higher term.
    leases = await shard_leases(world)
    assert 1 <= messages[-1]["term"] <= max(lease.term for lease in leases.values())
    return messages


def _tells(message: Message, status: dict[str, Any]) -> bool:
    layout = status["layout"]
    return bool(
        message["epoch"] == layout["epoch"]
        and message["incarnation"] == status["incarnation"]
        and "announcement" not in message
        and {one["id"] for one in message["segments"]} == {one["id"] for one in layout["segments"]}
    )


def _check(world: World, name: str, message: Message, layout: SegmentLayout) -> None:
    topic = world.topic_name(name)
    assert (message["version"], message["topic"]) == (1, str(topic))
    assert message["segments"] == [
        {
            "id": segment_id,
            "range": segment.hash_range.descriptor,
            "state": segment.state.value,
            "buckets": segment.buckets,
            "parents": list(segment.parent_ids),
            "topic": segment_topic(topic, segment),
        }
        for segment_id, segment in sorted(layout.segments.items())
    ]


def _rises(messages: list[Message]) -> bool:
    orders = [(int(one["incarnation"].rsplit(".", 1)[1]), one["epoch"], one["step"], one["term"]) for one in messages]
    return all(before < after for before, after in pairwise(orders))


async def test_r20_the_layout_is_published_at_creation_and_after_every_change(
    world: World, pulsar_client: PulsarClient
) -> None:
    name = "told"
    await _create(world, name, initial=2, bucketBudget=8)
    assert len(await _until_told(world, pulsar_client, name)) == 1
    for kind, block in (
        ("Split", {"segment": 0}),
        ("Merge", {"segments": [3, 1]}),
        ("Rebucket", {"segment": 4, "buckets": 8}),
    ):
        assert phase(await world.operate(name, kind, **block)) == "Succeeded"
        await _until_told(world, pulsar_client, name)
    await world.until(TOPICS, name, lambda body: not body["status"]["segments"]["sealed"], what="is pruned")
    messages = await _until_told(world, pulsar_client, name)
    assert _rises(messages), "no client ever goes back"
    announced = [(one["announcement"]["parents"], one["epoch"]) for one in messages if "announcement" in one]
    assert [parents for parents, _ in announced] == [[0], [1, 3], [4]]
    assert layout_topic_name(world.topic_name(name)) not in await world.segment_topics(name)
    body = await world.until_ready(name)
    assert body["status"].get("reports", []) == [], "the layout topic is no stray"


async def test_r13_a_seal_is_announced_with_its_children_before_it_happens(
    world: World, pulsar_client: PulsarClient
) -> None:
    """A producer that does not listen is refused within seconds, and what it stored is told (R15)."""
    name = "announced"
    await _create(world, name, policies={"perSegment": {"retentionTimeMinutes": 60}})
    parent = (await world.segment_names(name, name))[0]
    producer = await pulsar_client.producer(parent, producer_name="deaf", batching_enabled=False, send_timeout_millis=0)
    for number in range(4):
        await asyncio.to_thread(producer.send, str(number).encode())
    began = time.monotonic()
    assert phase(await world.operate(name, "Split", segment=0)) == "Succeeded"
    with pytest.raises(pulsar.PulsarException):
        await asyncio.to_thread(producer.send, b"too late")
    assert time.monotonic() - began < 15
    messages = await _until_told(world, pulsar_client, name)
    before = next(index for index, one in enumerate(messages) if "announcement" in one)
    assert messages[before]["epoch"] == 0
    assert [one["state"] for one in messages[before]["segments"]] == ["Active"]
    assert messages[before]["announcement"]["holdMs"] == 10_000
    children = {child["topic"] for child in messages[before]["announcement"]["children"]}
    assert children == {one["topic"] for one in messages[-1]["segments"] if one["parents"]}
    assert messages[-1]["settled"] == {"0": {"deaf": 3}}
    assert await world.pulsar.terminated(parent)


async def test_r20_a_deleted_layout_topic_is_published_again(world: World, pulsar_client: PulsarClient) -> None:
    name = "forgotten"
    await _create(world, name)
    topic = layout_topic_name(world.topic_name(name))
    await _until_told(world, pulsar_client, name)
    await world.pulsar.delete_topic(topic, force=True)
    messages = await _until_told(world, pulsar_client, name)
    assert len(messages) == 1
    assert (await world.pulsar.policy(topic, "retention"))["retentionTimeInMinutes"] == -1
    assert (await world.pulsar.policy(topic, "inactiveTopicPolicies"))["deleteWhileInactive"] is False


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
async def test_r31_the_layout_topic_goes_with_the_topic_and_stays_with_it(
    world: World, pulsar_client: PulsarClient, policy: str
) -> None:
    name = f"ends-{policy.lower()}"
    await _create(world, name, deletionPolicy=policy)
    await _until_told(world, pulsar_client, name)
    await world.delete(TOPICS, name)
    await world.until_gone(TOPICS, name)
    assert await world.pulsar.exists(layout_topic_name(world.topic_name(name))) == (policy == "Retain")


async def test_r12_a_rebuilt_layout_is_published_as_a_later_incarnation(
    world: World, pulsar_client: PulsarClient
) -> None:
    name = "again"
    await _create(world, name)
    first = (await _until_told(world, pulsar_client, name))[-1]
    status = (await world.until_ready(name))["status"]
    await world.set_status(name, dict.fromkeys(status))
    await world.until_event(name, "LayoutRebuilt")
    await world.until_ready(name)
    messages = await _until_told(world, pulsar_client, name)
    assert _rises(messages)
    assert messages[-1]["incarnation"].split(".")[0] == first["incarnation"].split(".")[0]
