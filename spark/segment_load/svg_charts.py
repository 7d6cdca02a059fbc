"""Charts as SVG that stands in a page by itself: no script, no font and no file from elsewhere. Pure.

Colours are variables of the page, so that light and dark are its business; series differ by dashes as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

_WIDTH, _HEIGHT = 720, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 12, 12, 30
_DASHES = ("", "7 4", "2 3", "9 3 2 3")
_LABEL_CHARACTERS = 44
_CHARACTER = 6.6
_SMALLEST = 1e-9

Text = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Series:
    """One line or one set of bars.

    Args:
        name: in the legend.
        values: one for each place on the axis; None where there is none.
        steps: whether values hold until the next one, as counts do.
    """

    name: str
    values: Sequence[float | None]
    steps: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """A level drawn across a chart, such as a threshold."""

    name: str
    value: float


def line_chart(
    title: str,
    places: Sequence[float],
    labels: Sequence[tuple[float, str]],
    series: Sequence[Series],
    *,
    text: Text,
    bounds: Sequence[Bound] = (),
) -> str:
    """Lines over one axis.

    Args:
        title: what it shows, for those who hear it, too.
        places: on the axis, ascending.
        labels: of the axis, with their places.
        series: the lines.
        text: a value for people.
        bounds: levels; those far above all values are left out, as they would flatten these.
    """
    known = [value for one in series for value in one.values if value is not None]
    highest = max(known, default=0.0)
    shown = [bound for bound in bounds if bound.value <= 2 * highest]
    top, ticks = _scale(max([highest, *(bound.value for bound in shown)]))
    left, right = (places[0], places[-1]) if places else (0.0, 1.0)

    def x(place: float) -> float:
        return _LEFT + (place - left) / ((right - left) or 1.0) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _TOP - _BOTTOM)

    parts = [_grid(y(tick), text(tick)) for tick in ticks]
    parts += _axis([(x(place), name) for place, name in labels])
    for bound in shown:
        parts.append(
            f'<line class="bound" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(bound.value):.1f}" '
            f'y2="{y(bound.value):.1f}"/>'
            f'<text class="bound" x="{_WIDTH - _RIGHT - 4}" y="{y(bound.value) - 4:.1f}" text-anchor="end">'
            f"{escape(bound.name)}</text>"
        )
    for number, one in enumerate(series):
        parts.append(
            f'<path class="line c{number % 4}" stroke-dasharray="{_DASHES[number % 4]}" '
            f'd="{_path(one, [x(place) for place in places], y)}"><title>{escape(one.name)}</title></path>'
        )
    return _figure(title, _HEIGHT, "".join(parts), [one.name for one in series])


def bar_chart(title: str, names: Sequence[str], series: Sequence[Series], *, text: Text) -> str:
    """Horizontal bars, a group for each name, with their values beside them."""
    height = 16
    group = height * len(series) + 10
    total = group * len(names) + 6
    left = 12 + _CHARACTER * min(_LABEL_CHARACTERS, max(map(len, names), default=0))
    top = max((value or 0.0 for one in series for value in one.values), default=0.0) or 1.0
    parts = []
    for row, name in enumerate(names):
        short = name if len(name) <= _LABEL_CHARACTERS else "…" + name[1 - _LABEL_CHARACTERS :]
        middle = row * group + 4 + height * len(series) / 2 + 4
        parts.append(
            f'<text x="{left - 6:.0f}" y="{middle:.1f}" text-anchor="end"><title>{escape(name)}</title>'
            f"{escape(short)}</text>"
        )
        for number, one in enumerate(series):
            value = one.values[row] or 0.0
            width = value / top * (_WIDTH - left - 90)
            y = row * group + 4 + number * height
            parts.append(
                f'<rect class="bar c{number % 4}" x="{left:.0f}" y="{y}" width="{width:.1f}" height="{height - 3}">'
                f"<title>{escape(one.name)}: {escape(text(value))}</title></rect>"
                f'<text class="value" x="{left + width + 5:.1f}" y="{y + height - 5}">{escape(text(value))}</text>'
            )
    return _figure(title, total, "".join(parts), [one.name for one in series])


def time_labels(from_ms: int, to_ms: int, most: int = 7) -> list[tuple[float, str]]:
    """Places and words for an axis of time, in UTC."""
    steps_minutes = (1, 2, 5, 10, 30, 60, 120, 240, 720, 1440, 2880, 10080, 20160, 43200)
    span_minutes = max(1, (to_ms - from_ms) / 60_000)
    step_ms = next((step for step in steps_minutes if span_minutes / step <= most), steps_minutes[-1]) * 60_000
    form = "%d %b" if step_ms >= 86_400_000 else "%d %b %H:%M" if span_minutes > 1440 else "%H:%M"
    first = math.ceil(from_ms / step_ms) * step_ms
    return [
        (float(at_ms), datetime.fromtimestamp(at_ms / 1000, UTC).strftime(form))
        for at_ms in range(first, to_ms + 1, step_ms)
    ]


def amount(value: float) -> str:
    """A number for people: 12.3k, 4.5M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _scale(highest: float) -> tuple[float, list[float]]:
    """The top of an axis and its ticks, of round numbers."""
    if highest < _SMALLEST:
        return 1.0, [0.0, 1.0]
    rough = highest / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    count = math.ceil(highest / step)
    return count * step, [index * step for index in range(count + 1)]


def _path(series: Series, xs: Sequence[float], y: Callable[[float], float]) -> str:
    parts: list[str] = []
    is_open = False
    for x, value in zip(xs, series.values, strict=True):
        if value is None:
            is_open = False
            continue
        if is_open and series.steps:
            parts.append(f"H{x:.1f}V{y(value):.1f}")
        else:
            parts.append(f"{'L' if is_open else 'M'}{x:.1f} {y(value):.1f}")
        if not is_open:
            # A point by itself would not be seen.
            parts.append("h0.1")
        is_open = True
    return "".join(parts)


def _grid(y: float, text: str) -> str:
    return (
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>'
    )


def _axis(labels: Sequence[tuple[float, str]]) -> list[str]:
    """Words below the axis, where they are; those that would touch another are left out."""
    parts: list[str] = []
    taken = -math.inf
    for x, text in labels:
        width = _CHARACTER * len(text)
        begins = min(max(x - width / 2, _LEFT), _WIDTH - width)
        if begins >= taken:
            parts.append(f'<text x="{begins:.1f}" y="{_HEIGHT - 10}">{escape(text)}</text>')
            taken = begins + width + _CHARACTER
    return parts


def _figure(title: str, height: float, body: str, legend: Sequence[str]) -> str:
    keys = "".join(
        f'<li><svg width="30" height="10" aria-hidden="true"><line class="line c{number % 4}" x1="0" x2="30" y1="5" '
        f'y2="5" stroke-dasharray="{_DASHES[number % 4]}"/></svg> {escape(name)}</li>'
        for number, name in enumerate(legend if len(legend) > 1 else ())
    )
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">{body}</svg>'
        + (f'<ul class="legend">{keys}</ul>' if keys else "")
        + "</figure>"
    )
