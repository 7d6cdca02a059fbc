"""Split, merge, rebucket and moves of cursors that brokers of Pulsar 5 make for objects (R10)."""

from __future__ import annotations

from typing import Any

import pytest

from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from tests.support import manifests
from tests.support.native_world import NativeWorld
from tests.support.world import condition, phase

pytestmark = pytest.mark.native


async def test_split_merge_and_rebucket_are_made_by_the_brokers(native: NativeWorld) -> None:
    await native.make("flow", initial=2, subscriptions=["reader"])
    world = native.world
    split = await world.operate("flow", "Split", segment=0)
    assert (phase(split), split["status"]["children"]) == ("Succeeded", [2, 3])
    merged = await world.operate("flow", "Merge", segments=[3, 2])
    assert (phase(merged), merged["status"]["children"]) == ("Succeeded", [4])
    rebucketed = await world.operate("flow", "Rebucket", segment=1, buckets=8)
    assert (phase(rebucketed), rebucketed["status"]["children"]) == ("Succeeded", [5])
    layout = await native.until_same("flow")
    assert {one.segment_id: (str(one.hash_range), one.buckets) for one in layout.active} == {
        4: ("[0000, 7fff]", 2),
        5: ("[8000, ffff]", 8),
    }
    body = await world.until_ready("flow")
    actions = [(one["kind"], one["result"], one["request"]["kind"]) for one in body["status"]["actions"]]
    assert actions == [
        ("Create", "Succeeded", "ScalableTopic"),
        ("Split", "Succeeded", "SegmentOperation"),
        ("Merge", "Succeeded", "SegmentOperation"),
        ("Rebucket", "Succeeded", "SegmentOperation"),
    ]
    stats = await native.stats("flow")
    assert not stats["subscriptions"]["reader"]["uncoveredSegmentIds"]


_IMPOSSIBLE: tuple[tuple[str, dict[str, Any], str, str], ...] = (
    ("Split", {"segment": 9}, "SegmentMissing", "9"),
    ("Split", {"segment": 0}, "NotPossible", "sealed"),
    ("Split", {"segment": 1, "into": 4}, "Unsupported", "two halves"),
    ("Split", {"segment": 1, "at": 0x2000}, "Unsupported", "two halves"),
    ("Merge", {"segments": [1, 4]}, "InvalidRequest", "touch"),
    ("Merge", {"segments": [1, 3, 4]}, "Unsupported", "two segments at a time"),
    ("Rebucket", {"segment": 1, "buckets": 2}, "InvalidRequest", "bucket"),
    ("Prune", {}, "Unsupported", "prune drained segments themselves"),
    ("Seek", {"subscription": "nobody", "timestamp": "2026-01-01T00:00:00Z"}, "SubscriptionMissing", "nobody"),
    ("SkipAll", {"subscription": "nobody"}, "SubscriptionMissing", "nobody"),
)


async def test_what_cannot_be_done_is_refused_with_its_reason_and_nothing_changes(native: NativeWorld) -> None:
    """The brokers answer 500 with a stack trace for these, or success though nothing is done (measured)."""
    await native.make("still", initial=1)
    # 0 -> 1, 2; 2 -> 3, 4
    for segment in (0, 2):
        assert phase(await native.world.operate("still", "Split", segment=segment)) == "Succeeded"
    before = await native.until_same("still")
    for kind, block, reason, words in _IMPOSSIBLE:
        ended = await native.world.operate("still", kind, **block)
        what = f"{kind} {block}: {ended['status']}"
        assert (phase(ended), ended["status"].get("reason")) == ("Failed", reason), what
        assert words in ended["status"]["message"], what
        assert "Exception" not in ended["status"]["message"], what
    assert (await native.layout("still")).active == before.active


async def test_a_dry_run_tells_what_would_be_done(native: NativeWorld) -> None:
    await native.make("dry", initial=2, subscriptions=["s"])
    await native.world.apply(manifests.operation("dry-split", "dry", "Split", dry_run=True, segment=1))
    ended = await native.world.until_ended("dry-split")
    assert ended["status"]["plan"] == {
        "parents": [{"id": 1, "range": "8000-ffff"}],
        "children": [
            {"id": 2, "range": "8000-bfff", "buckets": 1},
            {"id": 3, "range": "c000-ffff", "buckets": 1},
        ],
        "subscriptions": ["s"],
    }
    assert (await native.layout("dry")).epoch == 0


async def test_a_desired_number_of_segments_is_reached_and_the_brokers_keep_out(native: NativeWorld) -> None:
    """R30: while `segments.desired` is set, nobody splits or merges by himself."""
    await native.make("scaled", initial=1)
    await native.world.scale("scaled", 3)
    await native.world.until(
        TOPICS, "scaled", lambda body: body["status"]["segments"]["active"] == 3, what="has 3 active segments"
    )
    layout = await native.until_same("scaled")
    assert len(layout.active) == 3
    assert await native.call("GET", "scaled", "/autoScalePolicy") == {"enabled": False}
    await native.world.scale("scaled", 1)
    await native.world.until(
        TOPICS, "scaled", lambda body: body["status"]["segments"]["active"] == 1, what="has 1 active segment"
    )
    # It is told when the reconcile that did it ends.
    await native.world.until(
        TOPICS, "scaled", lambda body: condition(body, "AutoScale").get("reason") == "DesiredSet", what="says why"
    )


async def test_declared_subscriptions_are_made_moved_and_deleted(native: NativeWorld) -> None:
    declared = [{"name": "keep"}, {"name": "drop", "deletionPolicy": "Delete"}]
    await native.make("subs", initial=2, subscriptions=declared)
    world = native.world
    await native.call("POST", "subs", "/split/0")
    await native.until_same("subs")
    skipped = await world.operate("subs", "SkipAll", subscription="keep")
    sought = await world.operate("subs", "Seek", subscription="keep", timestamp="2026-01-01T00:00:00Z")
    assert (phase(skipped), phase(sought)) == ("Succeeded", "Succeeded"), (skipped["status"], sought["status"])
    await world.change(TOPICS, "subs", {"subscriptions": [{"name": "new", "initialPosition": "Latest"}]})
    await world.until_ready("subs")
    body = await world.until(
        TOPICS,
        "subs",
        lambda body: [one["name"] for one in body["status"].get("subscriptions", ())] == ["new"],
        what="has the declared subscription only",
    )
    assert body["status"]["subscriptions"][0]["phase"] == "Active"
    # One that is only forgotten stays at the brokers, who may have consumers of it.
    assert set((await native.stats("subs"))["subscriptions"]) == {"keep", "new"}


async def test_an_operation_waits_while_the_topic_is_paused(native: NativeWorld) -> None:
    await native.make("paused", initial=1)
    await native.world.change(TOPICS, "paused", {"paused": True})
    await native.world.apply(manifests.operation("paused-split", "paused", "Split", segment=0))
    await native.world.until(
        SEGMENT_OPERATIONS,
        "paused-split",
        lambda body: "spec.paused" in (body.get("status") or {}).get("message", ""),
        what="tells why it waits",
    )
    assert (await native.layout("paused")).epoch == 0
    await native.world.change(TOPICS, "paused", {"paused": False})
    assert phase(await native.world.until_ended("paused-split")) == "Succeeded"
