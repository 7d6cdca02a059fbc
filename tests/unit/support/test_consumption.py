"""The judge of ordered consumers finds what is wrong, and nothing else."""

from __future__ import annotations

import pytest

from tests.support.consumption import (
    Receipt,
    acknowledged_line,
    judge_ordered,
    judge_shared,
    read_log,
    received_line,
)
from tests.support.guarantee_checker import Numbered

_S = 1_000_000_000


def _message(counter: int, key: str = "k") -> Numbered:
    return Numbered("p", key, counter)


def _receipt(counter: int, at: float, acked: float | None = None, consumer: str = "a", key: str = "k") -> Receipt:
    acknowledged_at = None if acked is None else int(acked * _S)
    return Receipt(_message(counter, key), 0, consumer, int(at * _S), acknowledged_at)


ALL = [_message(0), _message(1), _message(2)]
GOOD = [_receipt(0, 1, 2), _receipt(1, 1.1, 2), _receipt(2, 3, 4, "b")]


def test_what_comes_once_and_in_order_is_right() -> None:
    assert not judge_ordered(ALL, GOOD)
    assert not judge_shared(ALL, GOOD)


def test_what_never_comes_is_lost() -> None:
    assert judge_ordered(ALL, GOOD[:2]).lost == [_message(2)]
    assert judge_shared(ALL, GOOD[1:]).lost == [_message(0)]


def test_a_gap_is_disorder_whoever_reads() -> None:
    gap = [_receipt(0, 1, 2), _receipt(2, 1.1, 2), _receipt(1, 3, 4, "b")]
    assert [one.message.counter for one in judge_ordered(ALL, gap).disordered] == [2]


def test_other_keys_do_not_matter() -> None:
    assert not judge_ordered([_message(0), _message(0, "other")], [_receipt(0, 2), _receipt(0, 1, key="other")])


def test_what_was_not_acknowledged_may_come_again() -> None:
    again = [_receipt(0, 1), _receipt(1, 1.1), _receipt(0, 5, 6, "b"), _receipt(1, 5.1, 6, "b"), _receipt(2, 5.2, 6)]
    judgement = judge_ordered(ALL, again)
    assert not judgement
    assert judgement.again == 2


def test_what_was_acknowledged_long_ago_may_not() -> None:
    again = [*GOOD, _receipt(0, 10, consumer="b")]
    assert [seconds for _, seconds in judge_ordered(ALL, again).repeated] == [8.0]
    just_before = [*GOOD, _receipt(2, 4.5, consumer="a")]
    assert not judge_ordered(ALL, just_before)


def test_a_broker_that_dies_may_forget() -> None:
    again = [*GOOD, _receipt(2, 10, consumer="a")]
    assert judge_ordered(ALL, again, [(20 * _S, 30 * _S)])
    assert not judge_ordered(ALL, again, [(3 * _S, 9 * _S)])


def test_a_log_is_read_as_it_was_written() -> None:
    lines = [received_line(_message(number).payload(), 7) for number in range(3)]
    text = lines[0] + lines[1] + acknowledged_line(2) + lines[2]
    receipts = read_log("a", text + "R 12")
    assert [one.message for one in receipts] == ALL
    assert {one.segment for one in receipts} == {7}
    assert [one.acknowledged_at_ns is not None for one in receipts] == [True, True, False]
    with pytest.raises(ValueError, match="no line"):
        read_log("a", "what is this\n")
