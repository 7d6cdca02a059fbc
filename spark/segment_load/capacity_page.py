"""The capacity report as a page: a table of all that matters, then charts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from segment_load.capacity_advice import Advice
from segment_load.report_files import moment_text
from segment_load.report_html import page, paragraph, section, side_by_side, table
from segment_load.svg_charts import Bound, Series, amount, bar_chart, line_chart, time_labels

Row = Mapping[str, Any]
_MOST_ROWS = 200
_MOST_BARS = 12
_HOURS = tuple(float(hour) for hour in range(24))
_HOUR_LABELS = [(float(hour), f"{hour:02d}:00") for hour in range(0, 24, 4)]
_HEADLINE = (
    *("Topic", "Messages in /s, p50", "p99", "peak", "Bytes in /s, p99", "peak", "Bytes out /s, peak"),
    *("Segments, median", "most", "Above split", "Below merge", "Busiest / mean", "Gini", "Begin with"),
)


@dataclass(frozen=True, slots=True)
class CapacityResults:
    """What was worked out.

    Args:
        from_ms: the first minute.
        to_ms: the last minute.
        topics: `topic_summary`, those of most need first.
        advice: by topic.
        namespaces: `summary`, by `name`.
        brokers: `summary`, by `name`.
        shapes: `daily_shape`, by `topic`, of those that have charts.
        timelines: `timeline`, by `topic`, of those that have charts.
    """

    from_ms: int
    to_ms: int
    topics: Sequence[Row]
    advice: Mapping[str, Advice]
    namespaces: Sequence[Row]
    brokers: Sequence[Row]
    shapes: Mapping[str, Sequence[Row]]
    timelines: Mapping[str, Sequence[Row]]


def capacity_page(results: CapacityResults) -> str:
    """The page."""
    shown = results.topics[:_MOST_ROWS]
    rest = len(results.topics) - len(shown)
    span = (
        f"{moment_text(results.from_ms)} to {moment_text(results.to_ms)}; {len(results.topics)} topics; times are UTC"
    )
    return page(
        "Capacity of scalable topics",
        span,
        [
            section(
                "Topics",
                paragraph(
                    "Rates are of whole topics, minute by minute; those that need most segments come first. Above "
                    "split: share of time in which some segment was above a split threshold. Below merge: share in "
                    "which all of them were below all merge thresholds. Busiest / mean and Gini say how unequally "
                    "segments are loaded, in the median minute: 1 and 0 are alike. Begin with: segments for a new "
                    "topic of this load; why is said below."
                ),
                table(_HEADLINE, [_headline(row, results.advice.get(row["topic"])) for row in shown]),
                paragraph(f"{rest} more topics are in topics.csv.") if rest else "",
            ),
            section(
                "Namespaces and brokers",
                side_by_side(
                    [
                        _bars("Namespaces: bytes in a second", results.namespaces, "bytes_rate_in"),
                        _bars("Brokers: bytes in a second", results.brokers, "bytes_rate_in"),
                        _bars("Namespaces: messages in a second", results.namespaces, "msg_rate_in"),
                        _bars("Brokers: bytes out a second", results.brokers, "bytes_rate_out"),
                    ]
                ),
            ),
            section("Topics one by one", *(_topic(row, results) for row in shown if row["topic"] in results.timelines)),
        ],
    )


def _headline(row: Row, advice: Advice | None) -> list[str]:
    return [
        row["topic"],
        *(_amount(row[name]) for name in ("msg_rate_in_p50", "msg_rate_in_p99", "msg_rate_in_peak")),
        *(_amount(row[name]) for name in ("bytes_rate_in_p99", "bytes_rate_in_peak", "bytes_rate_out_peak")),
        *(f"{row['segments_p50']:.0f}", str(row["segments_peak"])),
        *(f"{100 * row[name]:.1f} %" for name in ("hot_share", "cold_share")),
        *("-" if row[name] is None else f"{row[name]:.2f}" for name in ("skew", "gini")),
        "-" if advice is None else str(advice.initial_segments),
    ]


def _bars(title: str, rows: Sequence[Row], rate: str) -> str:
    most = sorted(rows, key=lambda row: -(row[f"{rate}_peak"] or 0.0))[:_MOST_BARS]
    series = [Series("95th percentile", [row[f"{rate}_p95"] for row in most])]
    series.append(Series("peak", [row[f"{rate}_peak"] for row in most]))
    return bar_chart(title, [row["name"] for row in most], series, text=amount)


def _topic(row: Row, results: CapacityResults) -> str:
    points, advice = results.timelines[row["topic"]], results.advice.get(row["topic"])
    places = [float(point["at_ms"]) for point in points]
    labels = time_labels(points[0]["at_ms"], points[-1]["at_ms"])

    def over_time(title: str, named: Mapping[str, str], bounds: Sequence[Bound] = (), *, steps: bool = False) -> str:
        lines = [Series(name, [point[column] for point in points], steps) for name, column in named.items()]
        return line_chart(title, places, labels, lines, text=amount, bounds=bounds)

    by_hour = {shape["hour"]: shape for shape in results.shapes[row["topic"]]}
    daily = [
        Series(name, [by_hour[hour][column] if hour in by_hour else None for hour in range(24)])
        for name, column in (("average", "msg_rate_in_avg"), ("95th percentile", "msg_rate_in_p95"))
    ]
    words = (
        []
        if advice is None
        else [
            paragraph(f"Begin with {advice.initial_segments} segments: {advice.why_initial}."),
            *(paragraph(text) for text in advice.thresholds),
        ]
    )
    return section(
        row["topic"],
        *words,
        side_by_side(
            [
                over_time("Bytes a second", {"in": "bytes_rate_in", "out": "bytes_rate_out"}),
                over_time("Messages a second", {"in": "msg_rate_in", "out": "msg_rate_out"}),
                over_time("Active segments", {"segments": "segments"}, steps=True),
                over_time(
                    "Busiest segment, in parts of its split threshold",
                    {"load": "load"},
                    [Bound("split threshold", 1.0)],
                ),
                line_chart("Messages in a second, by hour of day (UTC)", _HOURS, _HOUR_LABELS, daily, text=amount),
                over_time("Backlog, messages of all subscriptions", {"backlog": "backlog"}),
            ]
        ),
        level=3,
    )


def _amount(value: float | None) -> str:
    return "-" if value is None else amount(value)
