"""Records make samples that can be relied on, or none (R34, R35)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.load.record_table import RecordTable
from scalable_topics_operator.load.records import PULSE, Pulse, SegmentRecord, encode_pulse, encode_record
from scalable_topics_operator.load.sample import LoadSample, SegmentSample

A, B = "persistent://t/n/a-segment-0000-7fff-1", "persistent://t/n/a-segment-8000-ffff-2"
MERGE = Rates(6.0, 6.0, 6.0, 6.0)
WARM = SegmentRecord("one:8080", 1_000, Rates(5.0), {"s": 3}, 900, (800, MERGE))


def taken(table: RecordTable, *messages: tuple[str, bytes]) -> LoadSample | None:
    """The sample that the last message makes."""
    is_whole = False
    for key, message in messages:
        is_whole = table.take(key, message)
    return table.sample(0) if is_whole else None


def pulse(at_ms: int, segments: int, **silent: str) -> tuple[str, bytes]:
    return PULSE, encode_pulse(Pulse(at_ms, 120.0, True, segments, silent))


def test_a_pulse_makes_a_sample_of_all_records_before_it() -> None:
    unsettled = SegmentRecord("two:8080", 1_000)
    sample = taken(RecordTable(), (A, encode_record(WARM)), (B, encode_record(unsettled)), pulse(1_000, 2, two="away"))
    assert sample == LoadSample(
        1_000, 120.0, {A: SegmentSample(Rates(5.0), {"s": 3}, (800, MERGE))}, frozenset({B}), {"two": "away"}, True
    )


def test_records_that_are_missing_make_no_sample() -> None:
    """Hazard A2-25980g."""
    table = RecordTable()
    assert taken(table, (A, encode_record(WARM)), pulse(1_000, 2)) is None
    assert table.problem == "the pipeline tells of 2 segments, and 1 have a record"
    assert taken(table, (B, encode_record(WARM)), pulse(2_000, 2)) is not None
    assert table.problem == ""
    assert taken(table, (B, b""), pulse(3_000, 1)) is not None


def test_older_never_overwrites_newer() -> None:
    table = RecordTable()
    older = replace(WARM, sampled_at_ms=500, rates=Rates(9.0))
    sample = taken(table, (A, encode_record(WARM)), (A, encode_record(older)), pulse(1_000, 1))
    assert sample is not None
    assert sample.segments[A].rates == Rates(5.0)
    assert taken(table, pulse(1_000, 1)) is None
    assert taken(table, pulse(999, 1)) is None


def test_a_clock_of_the_pipeline_that_goes_back_is_followed() -> None:
    table = RecordTable()
    assert taken(table, (A, encode_record(WARM)), pulse(300_000, 1)) is not None
    again = replace(WARM, sampled_at_ms=900, rates=Rates(9.0))
    # It takes away what is of a time to come before it tells it again.
    sample = taken(table, (A, b""), (A, encode_record(again)), pulse(1_000, 1))
    assert sample is not None
    assert (sample.at_ms, sample.segments[A].rates) == (1_000, Rates(9.0))


def test_times_are_the_readers_own() -> None:
    table = RecordTable()
    assert table.take(A, encode_record(WARM)) is False
    assert table.take(*pulse(1_000, 1)) is True
    sample = table.sample(50_000)
    assert (sample.at_ms, sample.segments[A].cold) == (51_000, (50_800, MERGE))


def test_a_pipeline_that_cannot_list_brokers_makes_no_sample() -> None:
    table = RecordTable()
    assert table.take(PULSE, encode_pulse(Pulse(1_000, 120.0, False, 0, {"": "no connection"}))) is False
    assert table.problem == "the pipeline could not list the brokers: no connection"


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(ValueError, match="no load record"):
        RecordTable().take(A, b"{}")
