"""How frames of a consumer session are read (docs/sessions.md)."""

from __future__ import annotations

import json

import pytest

from scalable_topics.layout import WHOLE, Part
from scalable_topics.sdk.errors import ClientError
from scalable_topics.sdk.session_frames import WHOLE_ENTRY, Assignment, Floor, drained_frame, parse_frame


def assignment(**fields: object) -> str:
    """An assignment of one segment."""
    segment = {"id": 7, "range": "0000-ffff", "topic": "persistent://t/n/x", "state": "Active", "bucketCount": 4}
    version = {"term": 1, "epoch": 2, "counter": 3}
    return json.dumps({"type": "assignment", "version": version, "segments": [segment | fields]})


def test_a_shared_segment_is_read_as_its_buckets() -> None:
    floors = [
        {"bucket": 3, "position": "5:6"},
        {"bucket": 1, "position": "5:9:2"},
        {"bucket": 0, "position": "5:7"},
    ]
    frame = parse_frame(assignment(buckets=[1, 3], start="5:4", floors=floors))
    assert isinstance(frame, Assignment)
    assert [each.part for each in frame.segments] == [Part(7, 1), Part(7, 3)]
    assert [each.floors for each in frame.segments] == [(Floor(1, 5, 9, 2),), (Floor(3, 5, 6, WHOLE_ENTRY),)]
    assert {(each.bucket_count, each.start, each.is_shared) for each in frame.segments} == {(4, (5, 4), True)}


def test_a_whole_segment_has_the_floors_of_all_its_buckets() -> None:
    frame = parse_frame(assignment(buckets=[], floors=[{"bucket": 3, "position": "5:6"}]))
    assert isinstance(frame, Assignment)
    (whole,) = frame.segments
    assert (whole.part, whole.is_shared, whole.floors) == (Part(7, WHOLE), False, (Floor(3, 5, 6, WHOLE_ENTRY),))


def test_a_leader_of_an_earlier_release_says_nothing_of_buckets() -> None:
    body = json.loads(assignment())
    del body["segments"][0]["bucketCount"]
    frame = parse_frame(json.dumps(body))
    assert isinstance(frame, Assignment)
    assert (frame.segments[0].part, frame.segments[0].bucket_count) == (Part(7), 1)


@pytest.mark.parametrize("buckets", [[4], [-1], [0, 9]])
def test_a_segment_has_no_other_buckets_than_its_own(buckets: list[int]) -> None:
    with pytest.raises(ClientError, match="has 4 buckets"):
        parse_frame(assignment(buckets=buckets))


def test_whole_segments_and_buckets_are_told_beside_one_another() -> None:
    assert drained_frame([Part(9, 2), Part(3), Part(9, 0)]) == {
        "type": "drained",
        "segments": [3],
        "buckets": [{"segment": 9, "buckets": [0, 2]}],
    }
