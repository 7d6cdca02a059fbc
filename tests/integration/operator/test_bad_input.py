"""What a user gets wrong is answered in words, and changes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from scalable_topics_operator.cluster.kube_errors import KubeInvalid
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from tests.support import manifests
from tests.support.pulsar_client import PulsarClient
from tests.support.pulsar_view import PulsarView
from tests.support.world import World, condition, phase

_NAMES = {
    "empty": ("", "must name a topic, for example topic://acme/shop/orders"),
    "partition": ("a/b/orders-partition-0", "ends in -partition-N, which names one partition; name the topic itself"),
    "extra-slash": ("a/b/eu/orders", "the name must not contain a slash"),
    "non-persistent": ("non-persistent://a/b/orders", "non-persistent topics cannot be scalable topics"),
    "too-long": (f"a/b/{'n' * 201}", "the name is too long: at most 200 bytes, so that the names of its segments fit"),
    "layout-suffix": ("a/b/orders-layout", "names that end in -layout are reserved for layout topics"),
    "segment-suffix": (
        "a/b/orders-segment-0000-ffff-0",
        "names that end in -segment-hhhh-hhhh-N are reserved for segments",
    ),
    "other-scheme": ("segment://a/b/orders", "the scheme must be topic:// or persistent://, or be left out"),
}


@pytest.mark.parametrize("case", sorted(_NAMES))
async def test_a_name_that_cannot_be_is_refused_at_apply(world: World, case: str) -> None:
    name, message = _NAMES[case]
    with pytest.raises(KubeInvalid) as refusal:
        await world.apply(manifests.topic(f"name-{case}", name))
    assert message in str(refusal.value)


# The topic below has segments 1 [0000, 0000], 3 [0001, 0004] and 4 [0005, ffff]; 0 and 2 are sealed.
_REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "width-1": ("Split", {"segment": 1}, "segment 1 [0000, 0000] is one hash wide and cannot be split"),
    "sealed": ("Split", {"segment": 0}, "segment 0 is sealed; only active segments can be split"),
    "unknown": ("Split", {"segment": 99}, "there is no segment 99 in the layout"),
    "at-outside": (
        "Split",
        {"segment": 3, "at": 0x9000},
        "split point 0x9000 is outside [0001, 0004]; it must lie in [0002, 0004]",
    ),
    "at-start": (
        "Split",
        {"segment": 4, "at": 5},
        "split point 0x0005 is outside [0005, ffff]; it must lie in [0006, ffff]",
    ),
    "into-too-many": (
        "Split",
        {"segment": 3, "into": 5},
        "segment 3 [0001, 0004] is 4 hashes wide and cannot be split into 5 parts",
    ),
    "not-adjacent": ("Merge", {"segments": [4, 1]}, "segments 1 [0000, 0000] and 4 [0005, ffff] do not touch"),
    "merge-sealed": ("Merge", {"segments": [0, 1]}, "segment 0 is sealed; only active segments can be merged"),
    "merge-unknown": ("Merge", {"segments": [3, 99]}, "there is no segment 99 in the layout"),
    "same-buckets": ("Rebucket", {"segment": 4, "buckets": 1}, "segment 4 already has 1 entry buckets"),
    "prune-active": ("Prune", {"segments": [3]}, "segment 3: it is active"),
    "prune-unknown": ("Prune", {"segments": [99]}, "there is no segment 99 in the layout"),
    "prune-retained": ("Prune", {"segments": [0]}, "segment 0: its retention of 60 min is not over"),
    "migrate": ("Migrate", {}, "the topic is a scalable topic already; there is nothing to migrate"),
}


async def test_an_operation_that_cannot_be_ends_as_failed_and_changes_nothing(world: World) -> None:
    await world.apply(
        manifests.topic(
            "refusals",
            f"{world.pulsar_namespace}/refusals",
            policies={"perSegment": {"retentionTimeMinutes": 60}},
        )
    )
    await world.until_ready("refusals")
    assert phase(await world.operate("refusals", "Split", segment=0, at=1)) == "Succeeded"
    assert phase(await world.operate("refusals", "Split", segment=2, at=5)) == "Succeeded"
    before, topics_before = await world.layout("refusals"), await world.segment_topics("refusals")

    async def refused(case: str, kind: str, block: dict[str, Any], message: str) -> None:
        name = f"refused-{case}"
        await world.apply(manifests.operation(name, "refusals", kind, **block))
        ended = await world.until_ended(name)
        assert (phase(ended), ended["status"]["message"]) == ("Failed", message), case
        assert condition(ended, "Stalled")["message"] == message
        assert condition(ended, "Ready")["status"] == "False"
        assert ("Failed", message) in await world.events(name, resource=SEGMENT_OPERATIONS)

    await asyncio.gather(*(refused(case, *row) for case, row in _REFUSED.items()))
    assert await world.layout("refusals") == before
    assert await world.segment_topics("refusals") == topics_before
    await world.until_ready("refusals")


@pytest.mark.parametrize("missing", ["tenant", "namespace"])
async def test_an_unknown_tenant_or_pulsar_namespace_is_named(world: World, missing: str) -> None:
    name = f"unknown-{missing}"
    pulsar_namespace = f"no-such-{missing}/apps" if missing == "tenant" else "tests/no-such-namespace"
    await world.apply(manifests.topic(name, f"{pulsar_namespace}/orders"))
    body = await world.until_reason(name, "NamespaceMissing")
    message = condition(body, "Stalled")["message"]
    assert f"persistent://{pulsar_namespace}/orders" in message
    assert "not exist" in message or "not found" in message.lower()
    assert await world.until_event(name, "NamespaceMissing") == message
    assert "layout" not in body["status"]


@pytest.mark.parametrize("adopt", [False, True])
@pytest.mark.parametrize("partitions", [0, 3])
async def test_a_name_taken_by_an_ordinary_topic_is_left_alone(
    world: World, pulsar_client: PulsarClient, partitions: int, adopt: bool
) -> None:
    """R1: an ordinary topic carries no claim, so `adopt` does not turn it into a scalable one either."""
    local = f"taken-{partitions}-{adopt}".lower()
    full_name = world.topic_name(local).persistent
    if partitions:
        await world.pulsar.create_partitioned(full_name, partitions)
        shape, first = f"a partitioned topic ({partitions} partitions)", f"{full_name}-partition-0"
    else:
        await world.pulsar.create_topic(full_name, {"owner": "somebody"})
        shape, first = "an ordinary topic", full_name
    await pulsar_client.send(first, "precious")
    await world.apply(manifests.topic(local, str(world.topic_name(local)), adopt=adopt))
    body = await world.until_reason(local, "NameTaken")
    message = (
        f"the name belongs to {shape}; to turn it into a scalable topic without losing data set "
        "spec.migrateFrom or create a SegmentOperation of type Migrate, else choose another name"
    )
    assert condition(body, "Stalled")["message"] == message
    assert await world.until_event(local, "NameTaken") == message
    assert await world.segment_topics(local) == []
    assert not await world.pulsar.terminated(first)
    await pulsar_client.send(first, "still writable")
    await world.delete(TOPICS, local)
    await world.until_gone(TOPICS, local)
    assert (await world.pulsar.internal(first))["numberOfEntries"] == 2
    if not partitions:
        assert await world.pulsar.properties(full_name) == {"owner": "somebody"}


async def test_an_operation_on_a_missing_topic_waits_and_says_for_what(world: World) -> None:
    await world.apply(manifests.operation("early-split", "comes-late", "Split", segment=0))
    waiting = await world.until_reason("early-split", "TopicMissing", resource=SEGMENT_OPERATIONS)
    message = f"there is no ScalableTopic {world.namespace}/comes-late; the operation waits for it"
    assert (phase(waiting), waiting["status"]["message"]) == ("Pending", message)
    await world.apply(manifests.topic("comes-late", f"{world.pulsar_namespace}/comes-late"))
    ended = await world.until_ended("early-split")
    assert (phase(ended), ended["status"]["children"]) == ("Succeeded", [1, 2])


async def test_an_operation_on_a_topic_that_cannot_be_made_waits_and_says_why(world: World) -> None:
    await world.apply(manifests.topic("hopeless", "tests/no-such-namespace/hopeless"))
    await world.apply(manifests.operation("hopeless-split", "hopeless", "Split", segment=0))
    waiting = await world.until_reason("hopeless-split", "Waiting", resource=SEGMENT_OPERATIONS)
    assert phase(waiting) == "Pending"
    assert waiting["status"]["message"].startswith("ScalableTopic hopeless: ")


async def test_nothing_acts_on_a_record_that_does_not_tile_the_ring(world: World) -> None:
    """DESIGN §4: a record that breaks an invariant is refused with the reason."""
    await world.apply(manifests.topic("hand-edited", f"{world.pulsar_namespace}/hand-edited", initial=2))
    good = (await world.until_ready("hand-edited"))["status"]["layout"]
    segments = await world.segment_names("hand-edited", "hand-edited")
    broken = [{**segment, "range": "9000-ffff"} if segment["id"] == 1 else segment for segment in good["segments"]]
    await world.set_status("hand-edited", {"layout": {**good, "segments": broken}})
    body = await world.until_reason("hand-edited", "InvalidRecord")
    message = condition(body, "Stalled")["message"]
    assert message.startswith("status is not a valid record and nothing acts on it: ")
    assert "8000" in message
    assert await world.until_event("hand-edited", "InvalidRecord") == message
    # Work that would be done at once on a good record: a lost segment, an operation.
    await world.pulsar.delete_topic(segments[0])
    await world.apply(manifests.operation("hand-edited-split", "hand-edited", "Split", segment=1))
    waiting = await world.until_reason("hand-edited-split", "Waiting", resource=SEGMENT_OPERATIONS)
    assert phase(waiting) == "Pending"
    assert await world.segment_topics("hand-edited") == [segments[1]]
    assert (await world.get(TOPICS, "hand-edited"))["status"]["layout"]["segments"] == broken
    await world.set_status("hand-edited", {"layout": good})
    ended = await world.until_ended("hand-edited-split")
    assert phase(ended) == "Succeeded"
    await world.until_event("hand-edited", "SegmentLost")


async def test_r24_a_namespace_that_is_full_or_compacts_takes_no_topic_and_no_split(
    world: World, view: PulsarView
) -> None:
    await world.apply(manifests.topic("orders", str(world.topic_name("orders")), initial=1))
    await world.until_ready("orders")
    # The claim, a segment and the layout topic.
    await view.call("POST", f"namespaces/{world.pulsar_namespace}/maxTopicsPerNamespace", 4)
    split = await world.operate("orders", "Split", segment=0)
    assert phase(split) == "Failed"
    assert split["status"]["reason"] == "Unsupported"
    assert "may have 4 topics (maxTopicsPerNamespace) and has 3: 2 more do not fit" in split["status"]["message"]
    await world.apply(manifests.topic("more", str(world.topic_name("more")), initial=1))
    stuck = await world.until_reason("more", "Unsupported")
    assert condition(stuck, "Stalled")["status"] == "True"
    assert "3 more do not fit; raise the limit" in condition(stuck, "Ready")["message"]
    topics = await view.topics(world.pulsar_namespace)
    assert len(topics) == 3, "nothing was made"
    await view.call("PUT", f"namespaces/{world.pulsar_namespace}/compactionThreshold", 1_000_000)
    split = await world.operate("orders", "Split", segment=0)
    assert (phase(split), split["status"]["reason"]) == ("Failed", "Unsupported")
    assert "compacts its topics" in split["status"]["message"]
    await view.call("PUT", f"namespaces/{world.pulsar_namespace}/compactionThreshold", 0)
    await view.call("POST", f"namespaces/{world.pulsar_namespace}/maxTopicsPerNamespace", 0)
    assert phase(await world.operate("orders", "Split", segment=0)) == "Succeeded"
    await world.until_ready("more")
