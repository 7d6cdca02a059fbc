"""Pauses before something is made once more."""

from __future__ import annotations

from scalable_topics_operator.load.repeat_pauses import RepeatPauses


def test_what_does_not_last_is_made_later_and_later() -> None:
    pauses, now, waits = RepeatPauses(), 0.0, []
    for _ in range(9):
        waits.append(pauses.left_seconds(now))
        now += waits[-1]
        pauses.made(now)
    assert waits == [0, 0, 10, 20, 40, 80, 160, 300, 300]


def test_what_has_lasted_begins_anew() -> None:
    pauses = RepeatPauses()
    for _ in range(4):
        pauses.made(0.0)
    assert pauses.left_seconds(0.0) == 40
    pauses.made(601.0)
    assert pauses.left_seconds(601.0) == 0
