"""Checkpoints are stored, read and put together without losing a position (R22)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.sdk import Checkpoint, ClientError, SegmentPosition

_NUMBERS = st.integers(-1, 2**62)
_POSITIONS = st.dictionaries(st.integers(0, 2**53), st.builds(SegmentPosition, _NUMBERS, _NUMBERS, _NUMBERS))


def _checkpoint(**positions: SegmentPosition) -> Checkpoint:
    return Checkpoint("topic://t/n/x", "g", {int(name[1:]): position for name, position in positions.items()})


@given(_POSITIONS)
def test_what_is_serialized_is_read(positions: dict[int, SegmentPosition]) -> None:
    checkpoint = Checkpoint("topic://t/n/x", "g", positions)
    assert Checkpoint.deserialize(checkpoint.serialize()) == checkpoint


def test_those_of_several_consumers_are_put_together() -> None:
    one = _checkpoint(s1=SegmentPosition(1, 5), s2=SegmentPosition(2, 0, 3))
    another = _checkpoint(s2=SegmentPosition(2, 0, 7), s3=SegmentPosition(3, 1))
    wanted = _checkpoint(s1=SegmentPosition(1, 5), s2=SegmentPosition(2, 0, 7), s3=SegmentPosition(3, 1))
    assert one.merged(another) == another.merged(one) == wanted
    assert one.merged() == one


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
        b"\xff",
    ],
)
def test_what_is_no_checkpoint_is_refused(data: bytes) -> None:
    with pytest.raises(ClientError, match="not a checkpoint"):
        Checkpoint.deserialize(data)


def test_one_of_a_later_release_says_so() -> None:
    data = json.loads(_checkpoint().serialize()) | {"version": 2}
    with pytest.raises(ClientError, match="later release"):
        Checkpoint.deserialize(json.dumps(data).encode())
