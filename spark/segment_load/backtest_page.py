"""What a backtest found, for people: a table as text, and a page with charts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalable_topics_operator.autoscale.policy import KNOBS, EffectivePolicy, knob_text
from segment_load.backtest import CANDIDATE, PRESENT, RECORDED
from segment_load.report_html import page, paragraph, section, side_by_side, table
from segment_load.svg_charts import Bound, Series, amount, line_chart, time_labels

COLUMNS = (
    *("topic", "policy", "splits", "merges", "rebuckets", "hours_of_history", "hours_unknown", "hours_above_split"),
    *("hours_above_present_split", "peak_segments", "mean_segments", "segment_hours"),
)
LIMITS = (
    "Load lies evenly over the hash range of each recorded segment, as more is not known: a heavy key is spread over "
    "it, too. Consumers are not recorded, so what is done for their number alone is left out. Cool-downs begin clear. "
    "A new segment counts after 70 seconds, and a decision is made each minute, as with the operator's own settings. "
    "Where nothing counted for more than five minutes the load is not known, and nothing is split or merged there."
)
_HEADINGS = (
    *("Topic", "Policy", "Splits", "Merges", "Hours above split", "above present split", "Segments, most", "mean"),
    *("Segment hours", "Hours unknown"),
)
_ALL = "all topics"
_ORDER = (RECORDED, PRESENT, CANDIDATE)
_MOST_ROWS = 200


@dataclass(frozen=True, slots=True)
class BacktestResults:
    """What was found.

    Args:
        outcomes: by topic and policy, `OUTCOME_SCHEMA` but for the timelines; the widest gaps of segment hours first.
        timelines: by topic and policy, of those that have charts.
        present: the policy in force.
        candidate: the policy on trial.
    """

    outcomes: Mapping[str, Mapping[str, Mapping[str, Any]]]
    timelines: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]
    present: EffectivePolicy
    candidate: EffectivePolicy


def csv_rows(results: BacktestResults) -> Iterable[Sequence[Any]]:
    """Rows of `COLUMNS`."""
    for topic, by_policy in results.outcomes.items():
        for policy in _ORDER:
            one = by_policy[policy]
            yield (
                *(topic, policy, one["splits"], one["merges"], one["rebuckets"]),
                *(round(one[name] / 60, 3) for name in ("minutes", "minutes_unknown", "minutes_above_split")),
                *(round(one["minutes_above_present_split"] / 60, 3), one["peak_segments"]),
                *(round(one["segment_minutes"] / one["minutes"], 3), round(one["segment_minutes"] / 60, 3)),
            )


def text_table(results: BacktestResults) -> str:
    """The same for a terminal: all topics together, then each."""
    rows = [_HEADINGS, *_rows(results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    lines = []
    for row in rows:
        names = [text.ljust(width) for text, width in zip(row[:2], widths[:2], strict=True)]
        numbers = [text.rjust(width) for text, width in zip(row[2:], widths[2:], strict=True)]
        lines.append("  ".join([*names, *numbers]).rstrip())
    return "\n".join(lines)


def backtest_page(results: BacktestResults) -> str:
    """The page."""
    rows = list(_rows(results))
    rest = len(results.outcomes) - _MOST_ROWS
    return page(
        "Backtest of a policy",
        f"{len(results.outcomes)} topics; times are UTC",
        [
            section(
                "What would have been done",
                paragraph(
                    "Candidate and present are the operator's own decisions on the recorded load; recorded is what "
                    "there was, by the present thresholds. Above split is by each policy's own thresholds, above "
                    "present split by the same ones for all. Segment hours are what segments cost."
                ),
                table(_HEADINGS, rows[: 3 * (1 + _MOST_ROWS)]),
                paragraph(f"{rest} more topics are in backtest.csv.") if rest > 0 else "",
                paragraph(f"How far this goes: {LIMITS}"),
            ),
            section("Where the policies differ", _differences(results)),
            section("Topics one by one", *(_charts(topic, lines) for topic, lines in results.timelines.items())),
        ],
    )


def _rows(results: BacktestResults) -> Iterable[tuple[str, ...]]:
    if len(results.outcomes) > 1:
        for policy in _ORDER:
            yield _row(_ALL, policy, [by_policy[policy] for by_policy in results.outcomes.values()])
    for topic, by_policy in results.outcomes.items():
        for policy in _ORDER:
            yield _row(topic, policy, [by_policy[policy]])


def _row(topic: str, policy: str, some: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    def total(name: str) -> int:
        return sum(one[name] or 0 for one in some)

    is_recorded = policy == RECORDED
    return (
        *(topic, policy),
        *("-" if is_recorded else str(total(name)) for name in ("splits", "merges")),
        *(f"{total(name) / 60:.2f}" for name in ("minutes_above_split", "minutes_above_present_split")),
        str(max(one["peak_segments"] for one in some)),
        f"{total('segment_minutes') / total('minutes'):.2f}",
        *(f"{total(name) / 60:.1f}" for name in ("segment_minutes", "minutes_unknown")),
    )


def _differences(results: BacktestResults) -> str:
    present, candidate = results.present, results.candidate
    rows = [
        (
            entry.path,
            knob_text(present.knobs[entry.path]),
            knob_text(candidate.knobs[entry.path]),
            f"{candidate.origins[entry.path]}",
        )
        for entry in KNOBS
        if present.knobs[entry.path] != candidate.knobs[entry.path]
    ]
    if not rows:
        return paragraph("They do not.")
    return table(("Knob", "Present", "Candidate", "says"), rows)


def _charts(topic: str, lines: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    points = lines[RECORDED]
    places = [float(point["at_ms"]) for point in points]
    labels = time_labels(points[0]["at_ms"], points[-1]["at_ms"])

    def chart(title: str, column: str, policies: Sequence[str], bounds: Sequence[Bound] = (), *, steps: bool) -> str:
        series = [Series(name, [point[column] for point in lines[name]], steps) for name in policies]
        return line_chart(title, places, labels, series, text=amount, bounds=bounds)

    return section(
        topic,
        side_by_side(
            [
                chart("Active segments", "segments", (CANDIDATE, PRESENT, RECORDED), steps=True),
                chart(
                    "Busiest segment, in parts of the split threshold of each policy",
                    "highest",
                    (CANDIDATE, PRESENT),
                    [Bound("split threshold", 1.0)],
                    steps=False,
                ),
            ]
        ),
        level=3,
    )
