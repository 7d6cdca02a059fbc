"""What reports are asked for by the command line, and the files they leave."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from scalable_topics.layout import LayoutArgumentError, TopicName
from segment_load.history_reading import HistoryMissing, Period, read_minutes
from segment_load.session import make_session

_POINTS = 500
_MINUTE_MS = 60_000


def add_history_arguments(parser: argparse.ArgumentParser) -> None:
    """What all reports take: the history, what part of it, and where to write."""
    parser.add_argument("--history-path", required=True, help="the history that the stream keeps")
    parser.add_argument("--out", required=True, type=Path, help="a folder for the report; made if it is missing")
    parser.add_argument(
        "--from", dest="from_ms", type=_moment, help="from when on, UTC: 2026-11-28 or 2026-11-28T06:00"
    )
    parser.add_argument("--to", dest="to_ms", type=_moment, help="until when, in the same form")
    parser.add_argument("--topic", type=_topic, help="one topic alone: topic://TENANT/NAMESPACE/TOPIC")
    parser.add_argument(
        "--master", default="local[*]", help="Spark master (local[*]); empty for what spark-submit says"
    )


def run_report(options: argparse.Namespace) -> int:
    """Write the report that was asked for; answers the exit code.

    Args:
        options: with `report`, which writes it and answers what to print, and `failures`, which a user can mend.
    """
    try:
        print(options.report(options))
    except (*options.failures, OSError) as error:
        print(f"segment_load: {error}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def report_session(options: argparse.Namespace) -> Iterator[SparkSession]:
    """The session of a report, which ends with it; it shows how far it is to people, who are at a terminal."""
    spark = make_session(options.master, spark_ui_showConsoleProgress="true" if sys.stderr.isatty() else "false")
    try:
        yield spark
    finally:
        spark.stop()


@dataclass(frozen=True, slots=True)
class Span:
    """What a report is of, and in which steps its charts go.

    Args:
        from_ms: the first minute, milliseconds since 1970.
        to_ms: the last.
        step_ms: what one point of a chart stands for.
    """

    from_ms: int
    to_ms: int
    step_ms: int


def span_of(minutes: DataFrame) -> Span:
    """The span of some rows that have a `minute`. Raises HistoryMissing if there are none."""
    first, last = minutes.agg(F.min(F.unix_millis("minute")), F.max(F.unix_millis("minute"))).collect()[0]
    if first is None:
        raise HistoryMissing("the history holds nothing of that topic in this period")
    return Span(first, last, _MINUTE_MS * (1 + (last - first) // (_MINUTE_MS * _POINTS)))


def minutes_of(spark: SparkSession, options: argparse.Namespace) -> DataFrame:
    """The minutes that a report is asked for. Raises HistoryMissing."""
    minutes = read_minutes(spark, options.history_path, Period(options.from_ms, options.to_ms))
    return minutes.where(minutes["topic"] == options.topic) if options.topic else minutes


def write_csv(file: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table as CSV with a line of names; what is not known is empty."""
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(columns)
        writer.writerows(rows)


def moment_text(at_ms: int) -> str:
    """A time for people and for CSV, UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%MZ")


def _moment(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 2026-11-28 or 2026-11-28T06:00") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def _topic(text: str) -> str:
    try:
        return str(TopicName.parse(text))
    except LayoutArgumentError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
