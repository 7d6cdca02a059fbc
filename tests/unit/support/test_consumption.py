"""Logs of consumers are read as they were written."""

from __future__ import annotations

import pytest

from scalable_topics.layout import Part
from tests.support.consumption import Place, acknowledged_line, committed_line, read_log, received_line
from tests.support.guarantee_checker import Numbered


def _received(counter: int, segment: int = 7, place: Place | None = None) -> str:
    return received_line(Numbered("p", "k", counter).payload(), Part(segment), place or (3, counter, -1))


def _acknowledged(text: str) -> list[int]:
    return [one.message.counter for one in read_log("a", text) if one.acknowledged_at_ns is not None]


def test_what_was_received_and_acknowledged_is_read() -> None:
    text = _received(0) + _received(1) + acknowledged_line(2) + _received(2)
    receipts = read_log("a", text)
    assert [one.message for one in receipts] == [Numbered("p", "k", counter) for counter in range(3)]
    assert {(one.consumer, one.part) for one in receipts} == {("a", Part(7))}
    assert [one.place for one in receipts] == [(3, 0, -1), (3, 1, -1), (3, 2, -1)]
    assert _acknowledged(text) == [0, 1]
    assert receipts[0].at_ns <= receipts[1].at_ns <= (receipts[1].acknowledged_at_ns or 0) <= receipts[2].at_ns


def test_an_acknowledgement_covers_the_last_ones_alone() -> None:
    assert _acknowledged(_received(0) + _received(1) + acknowledged_line(1)) == [1]
    assert _acknowledged(_received(0) + acknowledged_line(0)) == []


def test_a_line_that_was_cut_off_is_none() -> None:
    assert _acknowledged(_received(0) + acknowledged_line(1) + "R 12") == [0]
    assert _acknowledged(_received(0) + acknowledged_line(1).strip()) == []


def test_a_checkpoint_acknowledges_each_segment_up_to_its_place() -> None:
    text = _received(0, 1, (5, 9, 0)) + _received(1, 1, (5, 9, 1)) + _received(2, 1, (5, 10, 0)) + _received(3, 2)
    assert _acknowledged(text + committed_line({Part(1): (5, 9, 1)})) == [0, 1]
    assert _acknowledged(text + committed_line({Part(1): (6, 0, -1), Part(2): (3, 3, -1)})) == [0, 1, 2, 3]
    assert _acknowledged(text + committed_line({})) == []


def test_a_checkpoint_acknowledges_nothing_that_comes_after_it() -> None:
    text = committed_line({Part(7): (9, 0, -1)}) + _received(0)
    assert _acknowledged(text) == []
    assert _acknowledged(text + committed_line({Part(7): (3, 0, -1)}) + _received(1)) == [0]


def test_a_strange_line_is_refused() -> None:
    with pytest.raises(ValueError, match="no line"):
        read_log("a", "what is this\n")
