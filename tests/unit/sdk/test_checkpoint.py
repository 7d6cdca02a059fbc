"""Checkpoints are stored, read and put together without losing a position (R22)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.sdk import WHOLE, Checkpoint, ClientError, Part, SegmentPosition

_NUMBERS = st.integers(-1, 2**62)
_PARTS = st.builds(Part, st.integers(0, 2**53), st.integers(WHOLE, 1023))
_POSITIONS = st.dictionaries(_PARTS, st.builds(SegmentPosition, _NUMBERS, _NUMBERS, _NUMBERS))


def _checkpoint(**positions: SegmentPosition) -> Checkpoint:
    return Checkpoint("topic://t/n/x", "g", {_part(name): position for name, position in positions.items()})


def _part(name: str) -> Part:
    segment_id, _, bucket = name[1:].partition("b")
    return Part(int(segment_id), int(bucket or WHOLE))


@given(_POSITIONS)
def test_what_is_serialized_is_read(positions: dict[Part, SegmentPosition]) -> None:
    checkpoint = Checkpoint("topic://t/n/x", "g", positions)
    assert Checkpoint.deserialize(checkpoint.serialize()) == checkpoint


def test_those_of_several_consumers_are_put_together() -> None:
    one = _checkpoint(s1=SegmentPosition(1, 5), s2=SegmentPosition(2, 0, 3))
    another = _checkpoint(s2=SegmentPosition(2, 0, 7), s3=SegmentPosition(3, 1))
    wanted = _checkpoint(s1=SegmentPosition(1, 5), s2=SegmentPosition(2, 0, 7), s3=SegmentPosition(3, 1))
    assert one.merged(another) == another.merged(one) == wanted
    assert one.merged() == one


def test_buckets_are_put_together_each_by_itself() -> None:
    one = _checkpoint(s1b0=SegmentPosition(1, 5), s1b1=SegmentPosition(1, 3))
    another = _checkpoint(s1b1=SegmentPosition(1, 4), s1=SegmentPosition(1, 2))
    wanted = _checkpoint(s1=SegmentPosition(1, 2), s1b0=SegmentPosition(1, 5), s1b1=SegmentPosition(1, 4))
    assert one.merged(another) == another.merged(one) == wanted


def test_what_was_kept_of_a_bucket_is_not_forgotten_when_it_changes_hands() -> None:
    """Its new reader knows of the segment's cursor only, until something comes."""
    kept = _checkpoint(s1b0=SegmentPosition(1, 5), s1b1=SegmentPosition(1, 9, 2), s2=SegmentPosition(2, 4))
    taken = _checkpoint(s1b0=SegmentPosition(1, 7), s1b1=SegmentPosition(1, 3), s3=SegmentPosition(3, 1))
    assert taken.following(kept) == _checkpoint(
        s1b0=SegmentPosition(1, 7), s1b1=SegmentPosition(1, 9, 2), s3=SegmentPosition(3, 1)
    ), "segment 2 is read to its end"
    whole = _checkpoint(s1=SegmentPosition(1, 6))
    assert whole.following(kept) == _checkpoint(s1=SegmentPosition(1, 6), s1b1=SegmentPosition(1, 9, 2))
    assert kept.following(whole) == _checkpoint(
        s1=SegmentPosition(1, 6), s1b1=SegmentPosition(1, 9, 2), s2=SegmentPosition(2, 4)
    )
    with pytest.raises(ClientError, match="group h"):
        taken.following(Checkpoint("topic://t/n/x", "h", {}))


def test_all_of_an_entry_is_later_than_a_message_of_it() -> None:
    one, another = _checkpoint(s1=SegmentPosition(1, 5, 3)), _checkpoint(s1=SegmentPosition(1, 5))
    assert one.merged(another) == another.merged(one) == another


def test_one_of_an_earlier_release_is_read() -> None:
    data = b'{"version":1,"topic":"topic://t/n/x","group":"g","positions":{"1":[1,5,-1]}}'
    assert Checkpoint.deserialize(data) == _checkpoint(s1=SegmentPosition(1, 5))


def test_those_of_another_group_are_not() -> None:
    other = Checkpoint("topic://t/n/x", "h", {})
    with pytest.raises(ClientError, match="group h"):
        _checkpoint().merged(other)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b'{"version": 1}',
        b'{"version": 1, "topic": "t", "group": "g", "positions": {"a": [1, 2]}}',
        b'{"version": 1, "topic": "t", "group": "g", "positions": {"1": 7}}',
        b'{"version": 1, "topic": "t", "group": "g", "positions": {"1": [1, 2, 3, 4]}}',
        b'{"version": 2, "topic": "t", "group": "g", "positions": {"1": [1, 2]}}',
        b'{"version": 2, "topic": "t", "group": "g", "positions": {}, "buckets": {"1": [1, 2]}}',
        b"\xff",
    ],
)
def test_what_is_no_checkpoint_is_refused(data: bytes) -> None:
    with pytest.raises(ClientError, match="not a checkpoint"):
        Checkpoint.deserialize(data)


def test_one_of_a_later_release_says_so() -> None:
    data = json.loads(_checkpoint().serialize()) | {"version": 3}
    with pytest.raises(ClientError, match="later release"):
        Checkpoint.deserialize(json.dumps(data).encode())
