"""The capacity report: its numbers on a history that is known, what it advises, and a page that stands by itself."""

from __future__ import annotations

import argparse
import csv
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from scalable_topics.layout import HashRange
from segment_load.capacity_advice import FILL, advise
from segment_load.capacity_report import work_out, write_report
from segment_load.change_filter import THRESHOLDS_SCHEMA
from segment_load.frames import local_frame
from segment_load.history_reading import HistoryMissing, Period, read_minutes
from segment_load.svg_charts import Bound, Series, amount, bar_chart, line_chart, time_labels
from tests.support.load_history import Seen, segment_name, write_loose

START_MS = 1_699_999_200_000
MINUTE_MS = 60_000


class Balanced(HTMLParser):
    """Fails on a tag that is not closed, and keeps the words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def a_history(path: Path) -> None:
    """Ten minutes of one segment, ten of the two that replaced it, which still drains; another topic beside it."""
    left, right = (segment_name(number + 1, one.start, one.end) for number, one in enumerate(HashRange.full().split()))
    batches = {}
    for minute in range(20):
        other = Seen(segment_name(0, topic="t/m/<b>"), (10.0, 1.0, 0.0, 0.0), "b:2", {"s": minute})
        if minute < 10:
            seen = [Seen(segment_name(0), (30_000.0, 3.0, 0.0, 0.0), "b:1")]
        else:
            drains = Seen(segment_name(0), (0.0, 0.0, 500.0, 5.0), "b:1")
            counts = minute > 10
            seen = [
                drains,
                Seen(left, (9_000.0, 1.0, 0.0, 0.0) if counts else None, "b:1"),
                Seen(right, (3_000.0, 1.0, 0.0, 0.0) if counts else None, "b:2"),
            ]
        batches[START_MS + minute * MINUTE_MS] = [*seen, other]
    write_loose(path, batches)


@pytest.mark.spark
def test_its_numbers_are_those_of_the_history(spark: SparkSession, tmp_path: Path) -> None:
    a_history(tmp_path / "history")
    minutes = read_minutes(spark, str(tmp_path / "history"), Period())
    own = ("topic://t/m/<b>", [20.0, 1e9, 1e9, 1e9], [11.0, 1e8, 1e8, 1e8])
    results = work_out(minutes, local_frame(spark, [own], THRESHOLDS_SCHEMA), 1)
    big, small = results.topics
    assert (big["topic"], small["topic"]) == ("topic://t/n/a", "topic://t/m/<b>")
    assert (big["minutes"], big["segments_p50"], big["segments_peak"], big["segments_last"]) == (20, 1.5, 2, 2)
    assert (big["msg_rate_in_peak"], big["msg_rate_out_peak"]) == (30_000, 0), "what drains is not counted"
    assert big["hot_share"] == pytest.approx(10 / 19), "of the minutes of which the load is known"
    assert (big["skew"], big["gini"]) == (pytest.approx(1.5), pytest.approx(0.25))
    assert (big["load_peak"], big["need_p99"], big["cold_share"]) == (3.0, 3.0, 0.0)
    assert (small["load_peak"], small["cold_share"], small["backlog_peak"]) == (0.5, 1.0, 19)
    brokers = {row["name"]: row for row in results.brokers}
    assert brokers["b:1"]["msg_rate_out_peak"] == 500, "a broker bears what drains, too"
    assert brokers["b:2"]["msg_rate_in_peak"] == 3_010
    assert [row["name"] for row in results.namespaces] == ["t/m", "t/n"]
    assert results.advice["topic://t/n/a"].initial_segments == 7, (
        "3 segments' worth, 1.5 times the mean, filled to 70 %"
    )
    (shape,) = results.shapes["topic://t/n/a"]
    assert shape["hour"] == 22
    assert [point["segments"] for point in results.timelines["topic://t/n/a"]] == [1] * 10 + [2] * 10
    assert "topic://t/m/<b>" not in results.timelines

    write_report(argparse.Namespace(out=tmp_path), results)
    page = Balanced((tmp_path / "capacity.html").read_text())
    assert "topic://t/m/<b>" in page.words, "names are shown, not obeyed"
    with (tmp_path / "topics.csv").open() as file:
        assert [row["initial_segments"] for row in csv.DictReader(file)] == ["7", "1"]
    with pytest.raises(HistoryMissing):
        work_out(minutes.where("topic = 'none'"), local_frame(spark, [], THRESHOLDS_SCHEMA), 1)


def a_topic(**changed: Any) -> dict[str, Any]:
    rates = ("msg_rate_in", "bytes_rate_in", "msg_rate_out", "bytes_rate_out")
    return {
        **{f"{rate}{suffix}": 10.0 for rate in rates for suffix in ("_p99", "_busiest_p99")},
        "split": [100.0, 1e9, 1e9, 1e9],
        "need_p05": 0.6,
        "need_p99": 0.7,
        "load_peak": 0.7,
        "hot_share": 0.0,
        "skew": None,
        "gini": None,
        **changed,
    }


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({}, "The thresholds fit"),
        (
            {"hot_share": 0.2, "msg_rate_in_busiest_p99": 150.0},
            r"for 20 % of the time.*split.msgRateIn from 100 to 180",
        ),
        ({"load_peak": 0.2}, "never had more than 20 % of a split threshold"),
        ({"need_p05": 1.0, "need_p99": 6.0}, "between 1 and 6 segments' worth.*minSegments of 3"),
        ({"skew": 2.5, "gini": 0.3}, "the busiest has 2.5 times the mean, Gini coefficient 0.30"),
    ],
)
def test_advice_says_what_it_is_made_of(changed: dict[str, Any], match: str) -> None:
    advice = advise(a_topic(**changed))
    assert advice is not None
    (text,) = advice.thresholds
    assert re.search(match, text), text


def test_nothing_is_advised_where_nothing_is_known() -> None:
    assert advise(a_topic(need_p99=None)) is None


@given(st.floats(0, 1e4), st.none() | st.floats(1, 50))
def test_segments_to_begin_with_carry_the_load_with_room(need: float, skew: float | None) -> None:
    advice = advise(a_topic(need_p99=need, skew=skew, gini=None if skew is None else 0.1))
    assert advice is not None
    segments = advice.initial_segments
    assert 1 <= segments <= 256
    if segments < 256:
        assert need * (skew or 1.0) / segments <= FILL * 1.0001


values = st.lists(st.none() | st.floats(0, 1e12), min_size=1, max_size=30)


@given(values, st.booleans(), st.floats(1e-3, 1e12))
def test_charts_are_whole_whatever_they_show(drawn: list[float | None], steps: bool, bound: float) -> None:
    places = [float(index) for index in range(len(drawn))]
    series = [Series("<one>", drawn, steps), Series("two", drawn[::-1])]
    chart = line_chart("<t>", places, [(0.0, "a"), (1.0, "b")], series, text=amount, bounds=[Bound("&", bound)])
    bars = bar_chart("t", [f"<{place}>" for place in places], series, text=amount)
    for one in (chart, bars):
        Balanced(one)
        assert "nan" not in one
        assert "inf" not in one


@pytest.mark.parametrize("minutes", [1, 90, 26 * 60, 7 * 1440, 30 * 1440, 400 * 1440])
def test_an_axis_of_time_has_some_words_and_not_too_many(minutes: int) -> None:
    labels = time_labels(START_MS, START_MS + minutes * MINUTE_MS)
    assert 1 <= len(labels) <= 16
    assert all(START_MS <= place <= START_MS + minutes * MINUTE_MS for place, _ in labels)
