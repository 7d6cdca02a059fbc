"""`python -m segment_load backtest`: what a policy would have done with recorded load."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scalable_topics_operator.autoscale.policy import EffectivePolicy
from segment_load.backtest import CANDIDATE, PRESENT, replay_all
from segment_load.backtest_page import COLUMNS, LIMITS, BacktestResults, backtest_page, csv_rows, text_table
from segment_load.history_reading import HistoryMissing
from segment_load.policy_file import PolicyUnreadable, read_policies
from segment_load.report_files import (
    add_history_arguments,
    minutes_of,
    moment_text,
    report_session,
    run_report,
    span_of,
    write_csv,
)

FAILURES = (HistoryMissing, PolicyUnreadable)
"""What a user can mend; the message says how."""


def add_parser(jobs: Any) -> None:
    """Add the command to those of the program."""
    parser: argparse.ArgumentParser = jobs.add_parser("backtest", help="what a policy would have done with the history")
    add_history_arguments(parser)
    for name, text in (
        ("--policy", "the policy on trial: a SegmentAutoScalePolicy or its knobs, YAML or JSON"),
        ("--present-policy", "the policy in force, in the same form; the defaults if left out"),
    ):
        more = "; may be given again, widest first"
        parser.add_argument(name, action="append", default=[], required=name == "--policy", help=text + more)
    parser.add_argument(
        "--charts", type=int, default=20, help="how many topics have charts, those that differ most (20)"
    )
    parser.set_defaults(run=run_report, report=run, failures=FAILURES)


def run(options: argparse.Namespace) -> str:
    """Write `backtest.html` and CSV files; answers a table for people. Raises what is in `FAILURES`."""
    present, candidate = read_policies(options.present_policy), read_policies(options.policy)
    with report_session(options) as spark:
        results = work_out(minutes_of(spark, options), present, candidate, options.charts)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "backtest.html").write_text(backtest_page(results), encoding="utf-8")
    write_csv(options.out / "backtest.csv", COLUMNS, csv_rows(results))
    points = (
        (topic, policy, moment_text(point["at_ms"]), point["segments"], point["highest"])
        for topic, by_policy in results.timelines.items()
        for policy, line in by_policy.items()
        for point in line
    )
    write_csv(options.out / "timeline.csv", ("topic", "policy", "at", "segments", "highest_of_split"), points)
    return f"{text_table(results)}\n\n{LIMITS}\n{options.out}/backtest.html"


def work_out(minutes: DataFrame, present: EffectivePolicy, candidate: EffectivePolicy, charts: int) -> BacktestResults:
    """Run all topics through both policies. Raises HistoryMissing if there are no minutes.

    Args:
        minutes: `MINUTE_SCHEMA`.
        present: the policy in force; one that contradicts itself has been refused.
        candidate: the policy on trial.
        charts: how many topics have charts.
    """
    assert present.config is not None
    assert candidate.config is not None
    policies = {PRESENT: present.config, CANDIDATE: candidate.config}
    found = replay_all(minutes, policies, span_of(minutes).step_ms).persist()
    try:
        by_topic: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
        for row in found.drop("timeline").collect():
            by_topic[row["topic"]][row["policy"]] = row.asDict()
        outcomes = dict(sorted(by_topic.items(), key=lambda item: (-_gap(item[1]), item[0])))
        charted = list(outcomes)[:charts]
        lines: dict[str, dict[str, Any]] = {topic: {} for topic in charted}
        for row in found.where(F.col("topic").isin(charted)).select("topic", "policy", "timeline").collect():
            lines[row["topic"]][row["policy"]] = [point.asDict() for point in row["timeline"]]
        return BacktestResults(outcomes, lines, present, candidate)
    finally:
        found.unpersist()


def _gap(by_policy: Mapping[str, Mapping[str, Any]]) -> int:
    """How far apart the policies are."""
    return abs(int(by_policy[CANDIDATE]["segment_minutes"]) - int(by_policy[PRESENT]["segment_minutes"]))
