"""The record of pip-468 and of Pulsar 5."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given

from scalable_topics.layout import (
    CreatedBy,
    LayoutArgumentError,
    SegmentLayout,
    TopicName,
    from_pip468,
    from_record,
    migrated_layout,
    to_pip468,
    to_record,
)
from tests.unit.layout.strategies import layouts, unhurried

PUBLISHED_EXAMPLE: dict[str, Any] = json.loads("""
{
  "epoch": 3,
  "nextSegmentId": 5,
  "segments": {
    "0": { "segmentId": 0, "hashRange": {"start": 0, "end": 65535}, "state": "SEALED",
           "parentIds": [], "childIds": [1, 2], "createdAtEpoch": 0, "sealedAtEpoch": 1 },
    "1": { "segmentId": 1, "hashRange": {"start": 0, "end": 32767}, "state": "SEALED",
           "parentIds": [0], "childIds": [3, 4], "createdAtEpoch": 1, "sealedAtEpoch": 3 },
    "2": { "segmentId": 2, "hashRange": {"start": 32768, "end": 65535}, "state": "ACTIVE",
           "parentIds": [0], "childIds": [], "createdAtEpoch": 1, "sealedAtEpoch": 0 },
    "3": { "segmentId": 3, "hashRange": {"start": 0, "end": 16383}, "state": "ACTIVE",
           "parentIds": [1], "childIds": [], "createdAtEpoch": 3, "sealedAtEpoch": 0 },
    "4": { "segmentId": 4, "hashRange": {"start": 16384, "end": 32767}, "state": "ACTIVE",
           "parentIds": [1], "childIds": [], "createdAtEpoch": 3, "sealedAtEpoch": 0 }
  },
  "properties": {}
}
""")


@unhurried
@given(layouts())
def test_reads_back_what_it_wrote_through_json_unknown_fields_included(layout: SegmentLayout) -> None:
    text = json.dumps(to_pip468(layout))
    assert from_pip468(json.loads(text)) == layout
    assert to_pip468(from_pip468(json.loads(text))) == json.loads(text)


@unhurried
@given(layouts())
def test_both_stored_forms_hold_the_same(layout: SegmentLayout) -> None:
    assert from_record(to_record(from_pip468(to_pip468(layout)))) == layout


def test_the_published_example_is_read_and_written_field_by_field() -> None:
    layout = from_pip468(PUBLISHED_EXAMPLE)
    assert [one.segment_id for one in layout.active] == [3, 4, 2]
    assert {one.created_by for one in layout.active} == {CreatedBy.SPLIT}
    written = to_pip468(layout)
    assert {key: written[key] for key in ("epoch", "nextSegmentId", "properties")} == {
        key: PUBLISHED_EXAMPLE[key] for key in ("epoch", "nextSegmentId", "properties")
    }
    for segment_id, published in PUBLISHED_EXAMPLE["segments"].items():
        ours = written["segments"][segment_id]
        assert {key: ours[key] for key in published} == published


def pulsar_5_record() -> dict[str, Any]:
    """The published example as Pulsar 5 stores it: -1 where nothing applies, buckets, properties, a policy."""
    record = deepcopy(PUBLISHED_EXAMPLE)
    for segment in record["segments"].values():
        active = segment["state"] == "ACTIVE"
        segment |= {
            "createdAtMs": 1000,
            "sealedAtMs": -1 if active else 2000,
            "sealedAtEpoch": -1 if active else segment["sealedAtEpoch"],
            "legacyTopicName": None,
            "entryBucketSplits": [32768],
        }
    record |= {"properties": {"owner": "team-a"}, "autoScalePolicy": {"maxSegments": 8}}
    return record


def test_pulsars_sentinels_mean_zero() -> None:
    layout = from_pip468(pulsar_5_record())
    assert {(one.sealed_at_epoch, one.sealed_at_ms, one.created_at_ms) for one in layout.active} == {(0, 0, 1000)}
    assert {one.sealed_at_ms for one in layout.sealed} == {2000}
    assert {one.buckets for one in layout.segments.values()} == {2}
    assert not any(one.is_legacy for one in layout.segments.values())


def test_properties_and_overrides_survive_a_change_hazard_c64() -> None:
    after = to_pip468(from_pip468(pulsar_5_record()).split(2, now_ms=3000))
    assert after["properties"] == {"owner": "team-a"}
    assert after["autoScalePolicy"] == {"maxSegments": 8}


def test_given_properties_replace_those_read() -> None:
    layout = from_pip468(pulsar_5_record())
    assert to_pip468(layout, {"owner": "team-b"})["properties"] == {"owner": "team-b"}
    assert to_pip468(layout, {})["properties"] == {}


def test_what_pulsar_does_not_say_is_told_from_the_parents() -> None:
    layout = (
        migrated_layout(TopicName("t", "n", "old"), 2, now_ms=1)
        .merge([2, 3], now_ms=2)
        .split(4, now_ms=3)
        .rebucket(5, 9, now_ms=4)
        .merge([7, 6], now_ms=5)
    )
    record = to_pip468(layout)
    for segment in record["segments"].values():
        del segment["createdBy"], segment["mergeDepth"]
    read = from_pip468(record)
    assert {one: segment.created_by for one, segment in read.segments.items() if segment.parent_ids} == {
        one: segment.created_by for one, segment in layout.segments.items() if segment.parent_ids
    }
    depths = {one: segment.merge_depth for one, segment in layout.segments.items()}
    assert {one: segment.merge_depth for one, segment in read.segments.items()} == depths
    assert depths[8] == 2


def test_unequal_bucket_boundaries_are_kept() -> None:
    record = pulsar_5_record()
    record["segments"]["2"]["entryBucketSplits"] = [4096, 61440]
    layout = from_pip468(record)
    assert layout.segment(2).buckets == 3
    assert to_pip468(layout)["segments"]["2"]["entryBucketSplits"] == [4096, 61440]
    assert to_pip468(from_record(to_record(layout)))["segments"]["2"]["entryBucketSplits"] == [4096, 61440]


def test_wrapped_topics_carry_their_name() -> None:
    record = to_pip468(migrated_layout(TopicName("t", "n", "old"), 0, now_ms=1))
    assert record["segments"]["0"]["legacyTopicName"] == "persistent://t/n/old"
    assert "legacyTopicName" not in record["segments"]["1"]


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (["epoch"], None, "epoch is not a whole number: None"),
        (["segments"], [], "segments is not a JSON object"),
        (["segments", "0"], 7, "segment 0 is not a JSON object: 7"),
        (["segments", "0", "segmentId"], 1, "segment 1 is filed under the id 0"),
        (
            ["segments", "0", "state"],
            "Sealed",
            "segment 0 state is 'Sealed'; it must be one of ACTIVE, SEALED",
        ),
        (["segments", "0", "hashRange"], None, "segment 0 hashRange is not a JSON object"),
        (["segments", "0", "hashRange"], {"start": 0}, "segment 0 hashRange lacks 'end'"),
        (["segments", "0", "hashRange", "end"], "ffff", "segment 0 end is not a whole number"),
        (["segments", "0", "childIds"], [1], "segment 2 names 0 as parent, but is not among its children"),
        (["segments", "0", "childIds"], ["1"], "segment 0 childIds is not a whole number"),
        (["segments", "2", "parentIds"], [], "segment 0 names 2 as child, but is not among its parents"),
        (["segments", "2", "sealedAtMs"], -2, "sealed_at_ms is -2, below 0"),
        (["segments", "2", "sealedAtMs"], 5, "segment 2 is active but says when or where it was sealed"),
        (["segments", "2", "entryBucketSplits"], [5, 5], "ends before it starts"),
        (["segments", "2", "entryBucketSplits"], list(range(1, 1025)), "segment 2 has 1025 entry buckets"),
        (["segments", "2", "createdBy"], "Magic", "segment 2 createdBy is 'Magic'"),
        (["segments", "2", "mergeDepth"], "1", "segment 2 mergeDepth is not a whole number"),
        (["segments", "2", "legacyTopicName"], "", "segment 2 wraps a topic without a name"),
    ],
)
def test_a_damaged_record_is_refused_with_the_reason(path: list[str], value: object, reason: str) -> None:
    record = pulsar_5_record()
    target: Any = record
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    with pytest.raises(LayoutArgumentError, match=reason):
        from_pip468(record)


@pytest.mark.parametrize("key", ["segmentId", "hashRange", "state"])
def test_a_missing_field_is_named(key: str) -> None:
    record = pulsar_5_record()
    del record["segments"]["1"][key]
    with pytest.raises(LayoutArgumentError, match=f"segment 1 lacks '{key}'"):
        from_pip468(record)


def test_unknown_fields_never_stand_in_for_known_ones_of_the_other_form() -> None:
    record = pulsar_5_record()
    record["version"] = 9
    record["segments"]["0"]["parents"] = ["1"]
    compact = to_record(from_pip468(record))
    assert compact["version"] == 1
    assert "parents" not in compact["segments"][0]


def test_reading_leaves_its_input_alone() -> None:
    record = pulsar_5_record()
    before = deepcopy(record)
    written = to_pip468(from_pip468(record))
    written["properties"]["owner"] = "other"
    written["autoScalePolicy"].clear()
    assert record == before
