"""What the journal knows of the operation in progress."""

from __future__ import annotations

from scalable_topics_operator.operations.journal import (
    new_operation_id,
    operation_segments,
)
from tests.unit.operations.builders import split_operation


def test_operation_ids_are_never_alike() -> None:
    assert len({new_operation_id() for _ in range(1000)}) == 1000


def test_the_segments_an_operation_makes() -> None:
    assert operation_segments(None) == ()
    assert operation_segments(split_operation()) == (1, 2)
