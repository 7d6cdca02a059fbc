"""R35: the change filter, which judges whole batches in the JVM, says what direct sampling says of each segment."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.load.sampling import Sampling
from scalable_topics_operator.load.statistics import Reading, StatisticsTimes
from scalable_topics_operator.load.topic_load import SampledSegment, TopicLoad
from segment_load.broker_source import SCHEMA
from segment_load.change_filter import STATE_SCHEMA, THRESHOLDS_SCHEMA, Look, advance, segments_of
from segment_load.frames import local_frame
from segment_load.thresholds import Thresholds, ThresholdsUnreadable

pytestmark = pytest.mark.spark
TIMES = StatisticsTimes(period_seconds=20.0, first_after_seconds=20.0)
INTERVAL_SECONDS = 10.0
START_MS = 1_700_000_000_000
LOW = AutoScaleConfig(split=Rates(100, 1e9, 1e9, 1e9), merge=Rates(10, 1e8, 1e8, 1e8))


def classic(number: int, topic: str = "a") -> str:
    return f"persistent://t/n/{topic}-segment-{number:04x}-{number:04x}-{number}"


@dataclass
class Brokers:
    """What brokers say, batch after batch; both ways of judging it keep what they know here."""

    spark: SparkSession
    thresholds: list[tuple[str, list[float], list[float]]] = field(default_factory=list)
    at_ms: int = START_MS
    state: list[Row] = field(default_factory=list)

    def batch(
        self, answers: dict[str, dict[str, Reading] | None], *, blind: bool = False, seconds: float = INTERVAL_SECONDS
    ) -> dict[str, Row]:
        """One batch; None is a broker that gives no answer. Answers what is known by segment."""
        self.at_ms += int(seconds * 1000)
        at = datetime.fromtimestamp(self.at_ms / 1000, UTC)
        rows: list[tuple[Any, ...]] = []
        for broker, topics in answers.items():
            rows.append((at, broker, "away" if topics is None else None, *[None] * 7))
            for name, one in (topics or {}).items():
                rows.append((at, broker, None, name, *one.rates.values, one.messages_in, dict(one.backlog)))
        silent = [broker for broker, topics in answers.items() if topics is None] + [""] * blind
        look = Look(self.at_ms, silent, TIMES, INTERVAL_SECONDS)
        known = local_frame(self.spark, self.state, STATE_SCHEMA)
        thresholds = local_frame(self.spark, self.thresholds, THRESHOLDS_SCHEMA)
        segments = segments_of(local_frame(self.spark, rows, SCHEMA))
        self.state = advance(segments, known, thresholds, look).collect()
        return {row["segment"]: row for row in self.state}


def reading(rate: float, messages: int = 100, **backlog: int) -> Reading:
    return Reading(Rates(float(rate)), messages, backlog)


def test_a_segment_counts_after_a_whole_period_and_is_told_then(spark: SparkSession) -> None:
    brokers, name = Brokers(spark), classic(1)
    first = brokers.batch({"one": {name: reading(5000)}})[name]
    assert (first["rates"], first["news"]) == (None, True), "that it does not count is told once"
    assert not brokers.batch({"one": {name: reading(5000)}})[name]["news"]
    third = brokers.batch({"one": {name: reading(5000)}})[name]
    assert (third["rates"], third["news"], third["hot"]) == ([5000, 0, 0, 0], True, True)
    assert third["changed_ms"] == third["last_hot_ms"] == brokers.at_ms
    assert not brokers.batch({"one": {name: reading(5000)}})[name]["news"]


def test_only_what_is_material_is_told(spark: SparkSession) -> None:
    brokers = Brokers(spark)
    cases = {
        classic(1): (reading(5000 * 1.25), False),
        classic(2): (reading(5000 * 1.26), True),
        classic(3): (reading(5000 * 0.74), True),
        classic(4): (reading(0), True),
        classic(5): (reading(5000, s=1), True),
        classic(6): (reading(5000 * 1.1), False),
    }
    for _ in range(3):
        brokers.batch({"one": {name: reading(5000) for name in cases}})
    rows = brokers.batch({"one": {name: now for name, (now, _) in cases.items()}})
    assert {name: row["news"] for name, row in rows.items()} == {name: news for name, (_, news) in cases.items()}
    for name, (now, news) in cases.items():
        assert rows[name]["rates"][0] == (now.rates.msg_rate_in if news else 5000)


def test_crossing_a_threshold_is_material_and_so_are_new_thresholds(spark: SparkSession) -> None:
    """Hazard B9."""
    brokers, name = Brokers(spark), "segment://t/n/a/0000-ffff-1"
    brokers.thresholds = [("topic://t/n/a", [100.0, 1e9, 1e9, 1e9], [10.0, 1e8, 1e8, 1e8])]
    for _ in range(3):
        brokers.batch({"one": {name: reading(99)}})
    row = brokers.batch({"one": {name: reading(101)}})[name]
    assert (row["news"], row["rates"][0]) == (True, 101)
    for rate in (9.5, 9.4):
        row = brokers.batch({"one": {name: reading(rate)}})[name]
    assert (row["hot"], row["last_hot_ms"]) == (False, brokers.at_ms - 20_000)
    brokers.thresholds = [("topic://t/n/a", [100.0, 1e9, 1e9, 1e9], [10.1, 1e8, 1e8, 1e8])]
    row = brokers.batch({"one": {name: reading(9.4)}})[name]
    assert (row["news"], row["last_hot_ms"]) == (True, brokers.at_ms), "hot times begin anew"


def test_what_is_on_a_silent_broker_is_neither_idle_nor_gone(spark: SparkSession) -> None:
    brokers, name, other = Brokers(spark), classic(1), classic(2)
    for _ in range(3):
        brokers.batch({"one": {name: reading(5)}, "two": {other: reading(7)}})
    row = brokers.batch({"one": None, "two": {other: reading(7)}})[name]
    assert (row["rates"], row["news"], row["gone"], row["absent_ms"]) == (None, True, False, None)
    for _ in range(3):
        found = brokers.batch({"one": None, "two": {other: reading(7)}})
        assert (found[name]["news"], found[name]["gone"]) == (False, False)
        assert found[other]["rates"] == [7, 0, 0, 0]
    found = brokers.batch({}, blind=True)
    assert {row["rates"] is None for row in found.values()} == {True}
    assert not any(row["gone"] for row in found.values())


def test_what_no_broker_tells_of_any_more_is_gone_after_a_while(spark: SparkSession) -> None:
    """Hazard A2-25980g."""
    brokers, name = Brokers(spark), classic(1)
    for _ in range(3):
        brokers.batch({"one": {name: reading(5)}})
    gone = [brokers.batch({"one": {}})[name]["gone"] for _ in range(5)]
    assert gone == [False] * 4 + [True], "absent for 40 s, the first batch without it being when that begins"
    assert brokers.batch({"one": {}}) == {}


def test_what_is_no_segment_or_has_no_usable_numbers_is_left_out(spark: SparkSession) -> None:
    found = Brokers(spark).batch(
        {"one": {"persistent://t/n/plain": reading(1), classic(1): reading(float("nan")), classic(2): reading(-1)}}
    )
    assert found == {}


@pytest.mark.parametrize("seed", range(2))
def test_it_says_what_direct_sampling_says(spark: SparkSession, seed: int) -> None:
    """Random brokers that fall silent, lose and swap segments and start anew; both see the same at every batch."""
    draw = random.Random(seed)
    print("seed", seed)
    split, merge = ([float(rate) for rate in rates.values] for rates in (LOW.split, LOW.merge))
    brokers = Brokers(spark, [("topic://t/n/a", split, merge)])
    direct, load = Sampling(), TopicLoad()
    names = {number: classic(number) for number in range(200)}
    place = {number: draw.choice("xyz") for number in names}
    counts = dict.fromkeys(names, 1000)
    for _ in range(20):
        silent = {broker for broker in "xyz" if draw.random() < 0.15}
        for number in names:
            if draw.random() < 0.04:
                place[number] = draw.choice("xyz-")
            if draw.random() < 0.03:
                counts[number] = 0
            counts[number] += 10
        answers: dict[str, dict[str, Reading] | None] = {}
        for broker in "xyz":
            mine = [number for number in names if place[number] == broker]
            answers[broker] = (
                None
                if broker in silent
                else {names[one]: reading(draw.choice([0, 5, 9, 11, 90, 120]), counts[one]) for one in mine}
            )
        seconds = draw.choice([INTERVAL_SECONDS] * 18 + [500.0, -300.0])
        seen = brokers.batch(answers, seconds=seconds)
        sample = direct.take(
            {broker: list(topics.items()) for broker, topics in answers.items() if topics is not None},
            dict.fromkeys(silent, "away"),
            at_ms=brokers.at_ms,
            times=TIMES,
            interval_seconds=INTERVAL_SECONDS,
        )
        assert {name for name, row in seen.items() if row["rates"] is not None} == set(sample.segments)
        segments = {number: SampledSegment(name, 0) for number, name in names.items()}
        load.take(sample, segments, LOW, 30.0)
        for number, record in load.records.items():
            row = seen.get(names[number])
            if row is None or row["rates"] is None:
                assert (record.rates, sample.settled) == (Rates(), True), "where nobody has loaded it"
            else:
                assert (row["rates"], row["last_hot_ms"]) == (list(record.rates.values), record.last_hot_at_ms), number


def test_the_clock_of_the_driver_may_go_back(spark: SparkSession) -> None:
    brokers, name, other = Brokers(spark), classic(1), classic(2)
    for _ in range(4):
        brokers.batch({"one": {name: reading(5)}})
    brokers.batch({"one": {name: reading(5), other: reading(5)}})
    row = brokers.batch({"one": {name: reading(5)}}, seconds=-3600)[name]
    assert (row["rates"], row["since_ms"]) == (None, brokers.at_ms), "it begins anew"
    for _ in range(4):
        found = brokers.batch({"one": {name: reading(5)}})
    assert found[name]["rates"] == [5, 0, 0, 0]
    assert found[other]["gone"]


def test_what_has_moved_to_a_silent_broker_is_not_gone(spark: SparkSession) -> None:
    brokers, name = Brokers(spark), classic(1)
    for _ in range(3):
        brokers.batch({"one": {name: reading(5)}, "two": {}})
    for _ in range(6):
        found = brokers.batch({"one": {}, "two": None})
    assert (found[name]["gone"], found[name]["absent_ms"]) == (False, None)
    assert not brokers.batch({"one": {}, "two": {}})[name]["gone"]


def test_a_segment_that_two_brokers_tell_of_does_not_count(spark: SparkSession) -> None:
    brokers, name = Brokers(spark), classic(1)
    for _ in range(4):
        row = brokers.batch({"one": {name: reading(5)}, "two": {name: reading(7)}})[name]
    assert row["rates"] is None


def test_thresholds_are_read_again_and_bad_ones_leave_the_last_in_force(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "thresholds.json"
    thresholds = Thresholds(str(file))
    with pytest.raises(ThresholdsUnreadable, match="No such file"):
        thresholds.read(spark)
    file.write_text('{"topic://t/n/a": {"split": [1, 2, 3, 4], "merge": [0, 1, 2, 3]}}')
    assert thresholds.read(spark).count() == 1
    file.write_text('{"topic://t/n/a"')
    assert thresholds.read(spark).count() == 1
    assert "it is no JSON" in thresholds.problem
    file.write_text("{}")
    assert thresholds.read(spark).count() == 0
    assert thresholds.problem == ""
