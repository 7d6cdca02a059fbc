"""The history of real brokers' load, and the reports that are made of it, as people run them (R35)."""

from __future__ import annotations

import asyncio
import csv
import os
import statistics
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from scalable_topics.layout import HashRange
from segment_load.history_reading import Period, read_samples
from tests.support.load_pipeline import Pipeline, Segments
from tests.support.waiting import eventually

pytestmark = pytest.mark.spark


class Page(HTMLParser):
    """What a page has, and whether it asks anybody else for something."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.charts: list[str] = []
        self.asks: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if ("class", "chart") in attrs:
            self.charts.append(str(dict(attrs)["aria-label"]))
        asking = {"src", "href"} & dict(attrs).keys()
        if tag in ("script", "link", "iframe") or asking:
            self.asks.append(tag)


async def _report(*arguments: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "segment_load", *arguments, "--master", "local[1]"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ,
    )
    out, errors = await process.communicate()
    return process.returncode, out.decode(), errors.decode()


@pytest.mark.timeout(600)
async def test_the_stream_keeps_a_history_that_reports_are_made_of(
    pipeline: Pipeline, segments: Segments, spark: SparkSession, tmp_path: Path
) -> None:
    left, right = HashRange.full().split()
    name, idle = await segments.make(1, left), await segments.make(2, right)
    await segments.send(name, 50)
    topic, history = str(segments.topic), tmp_path / "history"
    pipeline.settings = replace(pipeline.settings, history_path=str(history))
    await pipeline.start()

    def counted() -> list[float]:
        # As any tool may read them; Spark would take cores from the stream.
        rows = [row for file in history.glob("raw/*/*/*.parquet") for row in pq.read_table(file).to_pylist()]
        assert {row["topic"] for row in rows if row["segment"] == name} <= {topic}
        return [row["msg_rate_in"] for row in rows if row["segment"] == name and row["counts"]]

    async def look() -> list[float]:
        return await asyncio.to_thread(counted)

    await eventually(
        look, lambda rates: len(rates) >= 3, what="samples are kept", within_seconds=180, every_seconds=1.0
    )
    await pipeline.stop()
    # A period in which the machine stalls has a lower rate.
    assert 20 < statistics.median(counted()) < 80
    assert max(counted()) < 80
    samples = read_samples(spark, str(history), Period())
    assert samples.count() == samples.select("at", "segment").distinct().count()
    assert samples.where(f"segment = '{idle}' and counts and msg_rate_in > 0").count() == 0

    policy = tmp_path / "policy.yaml"
    policy.write_text("split: {msgRateIn: 10}\nmerge: {msgRateIn: 1}\n")
    shared = ("--history-path", str(history), "--topic", topic)
    report, trial = tmp_path / "report", tmp_path / "trial"
    (code, out, errors), (trial_code, trial_out, trial_errors) = await asyncio.gather(
        _report("capacity-report", *shared, "--out", str(report)),
        _report("backtest", *shared, "--policy", str(policy), "--out", str(trial)),
    )
    assert code == 0, errors[-3000:]
    assert out == f"{report}/capacity.html: 1 topics\n"
    with (report / "topics.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["topic"] == topic
    assert 20 < float(row["msg_rate_in_peak"]) < 80
    assert row["initial_segments"] == "1"
    page = Page(report / "capacity.html")
    assert (len(page.charts), page.asks) == (10, [])

    assert trial_code == 0, trial_errors[-3000:]
    assert topic in trial_out
    with (trial / "backtest.csv").open() as file:
        outcomes = {row["policy"]: row for row in csv.DictReader(file)}
    assert (outcomes["recorded"]["peak_segments"], outcomes["present"]["splits"]) == ("2", "0")
    assert int(outcomes["candidate"]["splits"]) >= 1
    page = Page(trial / "backtest.html")
    assert (len(page.charts), page.asks) == (2, [])


async def test_a_report_on_nothing_says_so_in_one_line(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("split: {msgRateOn: 10}\n")
    shared = ("--history-path", str(tmp_path / "none"), "--out", str(tmp_path / "out"))
    code, _, errors = await _report("backtest", *shared, "--policy", str(policy))
    assert (code, errors) == (
        1,
        f"segment_load: {policy}: split.msgRateOn is no knob; docs/policies.md names them all\n",
    )
    code, _, errors = await _report("capacity-report", *shared)
    assert code == 1
    assert f"segment_load: {tmp_path}/none holds no history of this period" in errors
    assert not (tmp_path / "out").exists()
