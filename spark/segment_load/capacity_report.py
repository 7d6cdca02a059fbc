"""`python -m segment_load capacity-report`: what recorded load says of the capacity that topics need."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from segment_load.capacity_advice import Advice, advise
from segment_load.capacity_page import CapacityResults, capacity_page
from segment_load.capacity_tables import (
    broker_minutes,
    daily_shape,
    namespace_minutes,
    summary,
    timeline,
    topic_minutes,
    topic_summary,
)
from segment_load.history_reading import HistoryMissing
from segment_load.report_files import (
    add_history_arguments,
    minutes_of,
    moment_text,
    report_session,
    run_report,
    span_of,
    write_csv,
)
from segment_load.thresholds import Thresholds, ThresholdsUnreadable

FAILURES = (HistoryMissing, ThresholdsUnreadable)
"""What a user can mend; the message says how."""


def add_parser(jobs: Any) -> None:
    """Add the command to those of the program."""
    parser: argparse.ArgumentParser = jobs.add_parser("capacity-report", help="what the history says of capacity")
    add_history_arguments(parser)
    parser.add_argument("--thresholds-file", default="", help="thresholds of topics, as the operator publishes them")
    parser.add_argument("--charts", type=int, default=20, help="how many topics have charts, those that need most (20)")
    parser.set_defaults(run=run_report, report=run, failures=FAILURES)


def run(options: argparse.Namespace) -> str:
    """Write `capacity.html` and CSV files; answers a line for people. Raises HistoryMissing, ThresholdsUnreadable."""
    with report_session(options) as spark:
        thresholds = Thresholds(options.thresholds_file).read(spark)
        results = work_out(minutes_of(spark, options), thresholds, options.charts)
    options.out.mkdir(parents=True, exist_ok=True)
    write_report(options, results)
    return f"{options.out}/capacity.html: {len(results.topics)} topics"


def work_out(minutes: DataFrame, thresholds: DataFrame, charts: int) -> CapacityResults:
    """Work out the report. Raises HistoryMissing if there are no minutes.

    Args:
        minutes: `MINUTE_SCHEMA`.
        thresholds: `THRESHOLDS_SCHEMA`.
        charts: how many topics have charts.
    """
    topics = topic_minutes(minutes, thresholds).persist()
    try:
        span = span_of(topics)
        rows = sorted(topic_summary(topics).collect(), key=lambda row: (-(row["need_p99"] or 0.0), row["topic"]))
        charted = topics.where(F.col("topic").isin([row["topic"] for row in rows[:charts]]))
        advice = {row["topic"]: found for row in rows if (found := advise(row.asDict())) is not None}
        return CapacityResults(
            from_ms=span.from_ms,
            to_ms=span.to_ms,
            topics=[row.asDict() for row in rows],
            advice=advice,
            namespaces=_rows(summary(namespace_minutes(topics), "name").orderBy("name")),
            brokers=_rows(summary(broker_minutes(minutes), "name").orderBy("name")),
            shapes=_by_topic(daily_shape(charted, "topic").collect()),
            timelines=_by_topic(timeline(charted, span.step_ms).collect()),
        )
    finally:
        topics.unpersist()


def write_report(options: argparse.Namespace, results: CapacityResults) -> None:
    """Write the files."""
    out = options.out
    (out / "capacity.html").write_text(capacity_page(results), encoding="utf-8")
    topics = [{name: value for name, value in row.items() if name != "split"} for row in results.topics]
    advised = [{**row, **_advice_columns(results.advice.get(row["topic"]))} for row in topics]
    _write(out / "topics.csv", advised)
    _write(out / "namespaces.csv", results.namespaces)
    _write(out / "brokers.csv", results.brokers)
    _write(out / "daily_shape.csv", [row for rows in results.shapes.values() for row in rows])
    points = [point for rows in results.timelines.values() for point in rows]
    _write(out / "timeline.csv", [{**point, "at_ms": moment_text(point["at_ms"])} for point in points], at_ms="at")


def _advice_columns(advice: Advice | None) -> Mapping[str, Any]:
    if advice is None:
        return {"initial_segments": None, "why_initial": None, "thresholds": None}
    return {
        "initial_segments": advice.initial_segments,
        "why_initial": advice.why_initial,
        "thresholds": " ".join(advice.thresholds),
    }


def _write(file: Any, rows: Sequence[Mapping[str, Any]], **renamed: str) -> None:
    names = list(rows[0]) if rows else []
    write_csv(file, [renamed.get(name, name) for name in names], (list(row.values()) for row in rows))


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


def _by_topic(rows: Sequence[Row]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["topic"]].append(row.asDict())
    return dict(found)
