"""Pauses grow while nothing lasts."""

from __future__ import annotations

from scalable_topics_operator.load.back_off import BackOff


def test_pauses_double_up_to_the_longest_and_begin_anew_after_what_lasted() -> None:
    pauses = BackOff(2.0, 10.0)
    assert [pauses.after(1.0) for _ in range(5)] == [2.0, 4.0, 8.0, 10.0, 10.0]
    assert pauses.after(10.5) == 2.0
    assert pauses.after(10.0) == 4.0, "no longer than the longest pause"
