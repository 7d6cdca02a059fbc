"""What a ScalableTopic goes through between its creation and its end."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.metrics import read_metric
from tests.support.pulsar_client import PulsarClient
from tests.support.running_operator import FAST_FLAGS
from tests.support.waiting import eventually
from tests.support.world import World, condition, phase

_DRY_RUNS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Split": (
        {"segment": 2, "into": 3},
        {
            "parents": [{"id": 2, "range": "0000-3fff"}],
            "children": [
                {"id": 4, "range": "0000-1554", "buckets": 1},
                {"id": 5, "range": "1555-2aa9", "buckets": 1},
                {"id": 6, "range": "2aaa-3fff", "buckets": 1},
            ],
            "subscriptions": ["found", "reader"],
        },
    ),
    "Merge": (
        {"segments": [3, 2]},
        {
            "parents": [{"id": 2, "range": "0000-3fff"}, {"id": 3, "range": "4000-7fff"}],
            "children": [{"id": 4, "range": "0000-7fff", "buckets": 2}],
            "subscriptions": ["found", "reader"],
        },
    ),
    "Rebucket": (
        {"segment": 1, "buckets": 16},
        {
            "parents": [{"id": 1, "range": "8000-ffff"}],
            "children": [{"id": 4, "range": "8000-ffff", "buckets": 16}],
            "subscriptions": ["reader"],
        },
    ),
    "Prune": (
        {},
        {"parents": [], "notes": ["segment 0: its retention of 60 min is not over"]},
    ),
}


async def test_a_dry_run_of_each_kind_tells_the_plan_and_changes_nothing(world: World) -> None:
    await world.apply(
        manifests.topic(
            "planned",
            f"{world.pulsar_namespace}/planned",
            initial=2,
            subscriptions=["reader"],
            policies={"perSegment": {"retentionTimeMinutes": 60}},
        )
    )
    await world.until_ready("planned")
    await world.pulsar.create_subscription((await world.segment_names("planned", "planned"))[0], "found")
    assert phase(await world.operate("planned", "Split", segment=0)) == "Succeeded"
    before = (await world.until_ready("planned"))["status"]
    topics_before = await world.segment_topics("planned")

    async def dry_run(kind: str, block: dict[str, Any], plan: dict[str, Any]) -> None:
        name = f"planned-{kind.lower()}"
        await world.apply(manifests.operation(name, "planned", kind, dry_run=True, **block))
        ended = await world.until_ended(name)
        assert (phase(ended), ended["status"]["message"]) == ("Succeeded", "dry run: nothing was changed")
        assert ended["status"]["plan"] == plan

    await asyncio.gather(*(dry_run(kind, *row) for kind, row in _DRY_RUNS.items()))
    after = (await world.until_ready("planned"))["status"]
    assert after["layout"] == before["layout"]
    assert after["actions"] == before["actions"]
    assert await world.segment_topics("planned") == topics_before
    await world.assert_brokers_agree("planned", "planned", {"reader"})


async def test_a_paused_topic_is_left_alone_and_what_waits_is_done_afterwards(proxied: MakeProxied) -> None:
    """Nothing is written while paused, and waiting costs no work (hazards C24, C32)."""
    bench = await proxied(flags=(*FAST_FLAGS, "--drift-seconds=1"))
    await bench.start()
    world = bench.world
    await world.apply(manifests.topic("paused", f"{world.pulsar_namespace}/paused", initial=2, subscriptions=["a"]))
    await world.until_ready("paused")
    segments = await world.segment_names("paused", "paused")
    await world.change(TOPICS, "paused", {"paused": True, "segments": {"desired": 4}, "subscriptions": []})
    body = await world.until_ready("paused")
    assert condition(body, "Paused")["status"] == "True"
    await world.pulsar.delete_topic(segments[1])
    await world.apply(manifests.operation("paused-split", "paused", "Split", segment=0))
    waiting = await world.until_reason("paused-split", "Waiting", resource=SEGMENT_OPERATIONS)
    assert (phase(waiting), waiting["status"]["message"]) == ("Pending", "ScalableTopic paused: spec.paused is true")

    reconciles = 'scalable_topics_reconciles_total{kind="scalabletopics",result="done"}'
    before, since, calls = await read_metric(bench.operator, reconciles), time.monotonic(), len(bench.admin.seen)
    # Three drift intervals without an event to wait for: it is their absence that is tested.
    await asyncio.sleep(3)
    after = await read_metric(bench.operator, reconciles)
    assert before is not None
    assert after is not None
    assert after - before <= 2 * (time.monotonic() - since), "a paused topic must not be looked at in a loop"
    assert not bench.admin.writes(calls)
    assert await world.segment_topics("paused") == [segments[0]]

    await world.change(TOPICS, "paused", {"paused": False})
    ended = await world.until_ended("paused-split")
    assert phase(ended) == "Succeeded"
    body = await world.until(
        TOPICS, "paused", lambda body: body["status"]["segments"]["active"] == 4, what="has four segments"
    )
    body = await world.until_ready("paused")
    assert condition(body, "Paused") == {}
    told = [reason for reason, _ in await world.events("paused")]
    assert {"SegmentLost", "SegmentMissing"} & set(told), "the loss is told of, whoever finds it"


async def test_a_topic_made_paused_is_not_made_until_it_is_let_go(world: World) -> None:
    await world.apply(manifests.topic("held", f"{world.pulsar_namespace}/held", paused=True))
    body = await world.until_reason("held", "Paused")
    assert condition(body, "Ready")["status"] == "False"
    assert await world.pulsar.topics(world.pulsar_namespace) == []
    await world.change(TOPICS, "held", {"paused": False})
    await world.until_ready("held")
    assert len(await world.segment_topics("held")) == 1


async def test_a_lost_status_is_rebuilt_from_the_segments(world: World, pulsar_client: PulsarClient) -> None:
    """R11, R12, hazard C4: the layout comes back as it was, in another incarnation; nothing is created or lost."""
    await world.apply(
        manifests.topic("wiped", f"{world.pulsar_namespace}/wiped", initial=2, subscriptions=["a"], bucketBudget=8)
    )
    await world.until_ready("wiped")
    segments = await world.segment_names("wiped", "wiped")
    await pulsar_client.send(segments[0], "kept")
    assert phase(await world.operate("wiped", "Split", segment=0, into=3)) == "Succeeded"
    assert phase(await world.operate("wiped", "Merge", segments=[4, 1])) == "Succeeded"
    before = await world.until_ready("wiped")
    old, topics = await world.layout("wiped"), await world.segment_topics("wiped")
    await world.set_status("wiped", dict.fromkeys(before["status"]))
    await world.until_event("wiped", "LayoutRebuilt")
    after = await world.until_ready("wiped")
    new = await world.layout("wiped")
    assert new.segments.keys() <= old.segments.keys()
    for segment_id, segment in new.segments.items():
        known = old.segments[segment_id]
        assert (segment.hash_range, segment.state, segment.buckets, segment.merge_depth) == (
            known.hash_range,
            known.state,
            known.buckets,
            known.merge_depth,
        )
    assert new.next_segment_id >= old.next_segment_id, "R9"
    assert set(await world.segment_topics("wiped")) <= set(topics)
    assert after["status"]["incarnation"] != before["status"]["incarnation"]
    assert after["status"]["incarnation"].startswith(after["metadata"]["uid"])
    assert await pulsar_client.receive(segments[0], "a", 1) == ["kept"]
    assert phase(await world.operate("wiped", "Split", segment=2)) == "Succeeded"
    await world.assert_brokers_agree("wiped", "wiped", {"a"})


@pytest.mark.parametrize("away", [False, True], ids=["under a running operator", "while it is away"])
async def test_a_status_from_a_backup_is_not_acted_on(
    proxied: MakeProxied, pulsar_client: PulsarClient, away: bool
) -> None:
    """R11 and R9: an older record would give out ids again and call sealed segments active."""
    bench = await proxied(flags=("--drift-seconds=3600", "--lease-seconds=10"))
    await bench.start()
    world = bench.world
    await world.apply(manifests.topic("backup", f"{world.pulsar_namespace}/backup", initial=2, subscriptions=["a"]))
    old = (await world.until_ready("backup"))["status"]
    assert phase(await world.operate("backup", "Split", segment=0)) == "Succeeded"
    segments = await world.segment_names("backup", "backup")
    await pulsar_client.send(segments[3], "kept")
    newer = await world.until_ready("backup")
    if away:
        bench.operator.kill()
    await world.set_status("backup", dict.fromkeys(newer["status"]) | old)
    if away:
        await bench.start()
    await world.until_event("backup", "RecordOutdated")
    await world.until_event("backup", "LayoutRebuilt")
    body = await world.until_ready("backup")
    layout = await world.layout("backup")
    assert {segment.segment_id for segment in layout.active} == {1, 2, 3}
    assert layout.next_segment_id > 3
    assert body["status"]["incarnation"] != newer["status"]["incarnation"], "R12"
    assert await pulsar_client.receive(segments[3], "a", 1) == ["kept"]
    await world.assert_brokers_agree("backup", "backup", {"a"})


async def test_the_spec_is_never_written_by_the_operator(world: World) -> None:
    """hazard C42: over a whole life the generation counts the user's changes and no other."""
    manifest = manifests.topic("quiet", f"topic://{world.pulsar_namespace}/quiet", subscriptions=["a"])
    spec = (await world.apply(manifest))["spec"]
    await world.until_ready("quiet")
    await world.operate("quiet", "Split", segment=0)
    await world.change(TOPICS, "quiet", {"segments": {"desired": 3}})
    await world.until(TOPICS, "quiet", lambda body: body["status"]["segments"]["active"] == 3, what="grows")
    body = await world.until_ready("quiet")
    assert body["spec"] == {**spec, "segments": {**spec["segments"], "desired": 3}}
    assert body["metadata"]["generation"] == 2
    assert "annotations" not in body["metadata"], "hazard C13: nothing is kept in annotations"
    by_operator = [
        entry["fieldsV1"]
        for entry in body["metadata"]["managedFields"]
        if entry["manager"] == "scalable-topics-operator"
    ]
    assert by_operator, "the operator writes under its own name"
    assert not any("f:spec" in fields for fields in by_operator)


@pytest.mark.parametrize("ends", ["Succeeded", "Failed"])
async def test_a_finished_operation_goes_when_its_time_is_over(world: World, ends: str) -> None:
    """R31: and one that asks for no time stays."""
    name = f"brief-{ends}".lower()
    await world.apply(manifests.topic(name, str(world.topic_name(name))))
    await world.until_ready(name)
    operation = manifests.operation(f"{name}-ttl", name, "Split", segment=0 if ends == "Succeeded" else 9)
    operation["spec"]["ttlSecondsAfterFinished"] = 8
    await world.apply(operation)
    assert phase(await world.until_ended(f"{name}-ttl")) == ends
    kept = await world.operate(name, "Split", segment=9)
    await world.until_gone(SEGMENT_OPERATIONS, f"{name}-ttl")
    assert phase(await world.get(SEGMENT_OPERATIONS, kept["metadata"]["name"])) == "Failed"


async def test_operations_of_one_topic_are_carried_out_one_after_the_other_oldest_first(world: World) -> None:
    """R10, hazard B3: bounds are checked when its turn comes, so the second split of a segment is refused."""
    await world.apply(manifests.topic("busy", f"{world.pulsar_namespace}/busy", initial=2, paused=True))
    await world.until_reason("busy", "Paused")
    names = [f"busy-{number}" for number in range(4)]
    for name, segment in zip(names, (0, 0, 1, 2), strict=True):
        await world.apply(manifests.operation(name, "busy", "Split", segment=segment))
    await world.change(TOPICS, "busy", {"paused": False})
    ended = [await world.until_ended(name) for name in names]
    assert [phase(body) for body in ended] == ["Succeeded", "Failed", "Succeeded", "Succeeded"]
    assert [body["status"].get("children") for body in ended] == [[2, 3], None, [4, 5], [6, 7]]
    assert ended[1]["status"]["message"] in (
        "segment 0 is sealed; only active segments can be split",
        "there is no segment 0 in the layout",
    )
    await world.until_ready("busy")
    await eventually(
        lambda: world.segment_topics("busy"), lambda topics: len(topics) == 5, what="only active segments are left"
    )
