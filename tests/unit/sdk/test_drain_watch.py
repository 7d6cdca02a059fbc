"""When a consumer says that it is through with a sealed segment (R17)."""

from __future__ import annotations

from scalable_topics.layout import Part
from scalable_topics.sdk.drain_watch import DrainWatch, Finding


def look(
    watch: DrainWatch, now: float, arrived: int = 5, *, is_settled: bool = True, is_at_end: bool = False
) -> Finding:
    """Look at segment 0."""
    return watch.look(Part(0), arrived=arrived, is_settled=is_settled, is_at_end=is_at_end, now=now)


def test_the_last_entry_is_the_end() -> None:
    watch = DrainWatch()
    assert look(watch, 0.0, is_at_end=True, is_settled=False) is Finding.NOTHING
    assert look(watch, 0.0, is_at_end=True) is Finding.DRAINED
    assert look(watch, 0.1, is_at_end=True) is Finding.NOTHING, "it is said once"
    assert look(watch, 0.2, arrived=6, is_at_end=True) is Finding.DRAINED, "the last entry is a batch"


def test_a_second_of_silence_will_do() -> None:
    """The last position of a sealed segment may be none of a message."""
    watch = DrainWatch()
    assert look(watch, 0.0, arrived=0) is Finding.NOTHING
    assert look(watch, 0.9, arrived=0) is Finding.NOTHING
    assert look(watch, 1.0, arrived=0) is Finding.DRAINED
    assert look(watch, 1.1, arrived=1) is Finding.NOTHING
    assert look(watch, 2.0, arrived=1) is Finding.NOTHING
    assert look(watch, 2.1, arrived=1, is_settled=False) is Finding.NOTHING
    assert look(watch, 2.2, arrived=1) is Finding.DRAINED


def test_R17_a_leader_that_does_not_see_it_raises_doubts_ever_more_seldom() -> None:
    """An acknowledgement that was lost holds up every descendant of the segment."""
    watch = DrainWatch()
    assert look(watch, 0.0, is_at_end=True) is Finding.DRAINED
    doubts = [now for now in range(1, 200) if look(watch, float(now), is_at_end=True) is Finding.DOUBTFUL]
    assert doubts == [5, 15, 35, 75, 135, 195]


def test_doubts_stay_seldom_when_the_broker_delivers_again_what_it_lost() -> None:
    watch = DrainWatch()
    look(watch, 0.0, is_at_end=True)
    assert look(watch, 5.0, is_at_end=True) is Finding.DOUBTFUL
    assert look(watch, 6.0, arrived=7, is_at_end=True) is Finding.DRAINED
    assert look(watch, 15.0, arrived=7, is_at_end=True) is Finding.NOTHING
    assert look(watch, 16.0, arrived=7, is_at_end=True) is Finding.DOUBTFUL


def test_a_segment_that_comes_back_begins_anew() -> None:
    watch = DrainWatch()
    look(watch, 0.0, is_at_end=True)
    watch.forget(Part(0))
    assert look(watch, 0.1, is_at_end=True) is Finding.DRAINED
