"""The ring over the epochs, as a picture of text: a row an epoch, a block a segment. Pure.

Colour says nothing that is not said without it: blocks have edges and the segment's id, and load is a shade.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.style import Style
from rich.text import Text

from scalable_topics.layout import RING_SIZE, Segment, SegmentLayout
from scalable_topics_operator.cli.segment_facts import TopicFacts
from scalable_topics_operator.cli.topic_view import amount, time_of

BEFORE = "before"
"""Instead of an epoch: when a migrated topic was still an ordinary one."""

_PALETTE = ("blue", "magenta", "dark_green", "grey37", "purple4", "deep_pink4", "dark_cyan", "dark_orange3")
# From little load to more than a segment is meant to have; the last begins at its split threshold.
_LEVELS = ((0.25, "green"), (0.5, "green3"), (0.75, "yellow"), (1.0, "orange3"), (float("inf"), "red"))
_SHADES, _ASCII_SHADES = " ░▒▓█", " .:+#"
_EDGE, _ASCII_EDGE = "│", "|"
_GONE, _ASCII_GONE = "╌", "-"


@dataclass(frozen=True, slots=True)
class EpochRow:
    """The segments that took messages during an epoch, as far as the layout still has them.

    Args:
        epoch: its number, or `BEFORE`.
        at_ms: when it began, milliseconds since 1970; 0 if nobody knows.
        segments: in the order of the ring.
        is_current: whether it lasts.
    """

    epoch: str
    at_ms: int
    segments: tuple[Segment, ...]
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class Glyphs:
    """What a picture is made of.

    Args:
        edge: where a block begins.
        shades: of load, from little to too much.
        gone: where a pruned segment was.
    """

    edge: str
    shades: str
    gone: str


UNICODE = Glyphs(_EDGE, _SHADES, _GONE)
ASCII = Glyphs(_ASCII_EDGE, _ASCII_SHADES, _ASCII_GONE)


def glyphs_for(encoding: str) -> Glyphs:
    """Those that a terminal of this encoding can show."""
    return UNICODE if encoding.lower().replace("-", "").startswith("utf") else ASCII


def epoch_rows(layout: SegmentLayout) -> list[EpochRow]:
    """All epochs of which the layout still has something, oldest first; the last is the current one."""
    segments = list(layout.segments.values())
    legacy = [one for one in segments if one.is_legacy]
    own = [one for one in segments if not one.is_legacy]
    epochs = {layout.epoch, *(one.created_at_epoch for one in own), *(one.sealed_at_epoch for one in own)}
    rows = [EpochRow(BEFORE, _first(one.created_at_ms for one in legacy), _in_order(legacy))] if legacy else []
    for epoch in sorted(epochs):
        alive = [one for one in own if one.created_at_epoch <= epoch and (one.is_active or epoch < one.sealed_at_epoch)]
        if not alive:
            continue
        began = _first(
            [one.created_at_ms for one in own if one.created_at_epoch == epoch]
            + [one.sealed_at_ms for one in own if epoch and one.sealed_at_epoch == epoch]
        )
        rows.append(EpochRow(str(epoch), began, _in_order(alive), epoch == layout.epoch))
    return rows


def picture(rows: Sequence[EpochRow], facts: TopicFacts, width: int, glyphs: Glyphs = UNICODE) -> list[Text]:
    """Lines of text: a scale, and a line an epoch.

    Args:
        rows: the epochs.
        facts: load of the active segments, shown in the current one; backlog, shown there and where a segment ends.
        width: columns that the ring takes, 16 or more.
        glyphs: what it is drawn with.
    """
    heads = [row.epoch for row in rows]
    margin = max(len("epoch"), *map(len, heads)) + 2
    lines = [Text(f"{'epoch':>{margin - 2}}  {_scale(width)}  since (UTC)")]
    for row, after in zip_longest(rows, rows[1:]):
        line = Text(f"{row.epoch:>{margin - 2}}  ")
        line.append_text(_ring(row, _blocks(row, after, facts, glyphs), width, glyphs))
        line.append(glyphs.edge)
        line.append(f" {time_of(row.at_ms)}")
        lines.append(line)
    return lines


def level(ratio: float) -> int:
    """How loaded a segment is, 0 to 4, where 4 is above its split threshold.

    Args:
        ratio: its load in parts of that.
    """
    return next(number for number, (most, _) in enumerate(_LEVELS) if ratio < most)


def level_style(ratio: float | None) -> str:
    """The colour of a load."""
    return "" if ratio is None else _LEVELS[level(ratio)][1]


def hidden(row: EpochRow, width: int) -> int:
    """How many segments are too narrow to have a place of their own."""
    return sum(1 for start, end in _columns(row.segments, width).values() if start == end)


def legend(glyphs: Glyphs) -> str:
    """What the shades mean."""
    parts = ("under 25 %", "under 50 %", "under 75 %", "under 100 %", "above")
    shades = ", ".join(f"{shade!r} {part}" for shade, part in zip(glyphs.shades, parts, strict=True))
    return f"shades of the last row: load in parts of the split threshold: {shades}"


def _ring(row: EpochRow, blocks: Mapping[int, _Block], width: int, glyphs: Glyphs) -> Text:
    ring = Text()
    places = _columns(row.segments, width)
    at = 0
    for segment in row.segments:
        start, end = places[segment.segment_id]
        if start > at:
            ring.append(glyphs.gone * (start - at), "dim")
        if end > start:
            ring.append(glyphs.edge).append_text(blocks[segment.segment_id].inside(end - start - 1))
        at = max(at, end)
    if at < width:
        ring.append(glyphs.gone * (width - at), "dim")
    return ring


@dataclass(frozen=True, slots=True)
class _Block:
    labels: tuple[str, ...]
    shade: str
    style: Style

    def inside(self, columns: int) -> Text:
        """What is between the edges: the longest label that there is room for."""
        label = next((one for one in self.labels if len(one) <= columns), "")
        return Text(label + self.shade * (columns - len(label)), self.style)


def _blocks(row: EpochRow, after: EpochRow | None, facts: TopicFacts, glyphs: Glyphs) -> Mapping[int, _Block]:
    """How the segments of a row are drawn.

    Args:
        row: the row.
        after: the next one; None if it is the last.
        facts: of all segments.
        glyphs: what it is drawn with.
    """
    going_on = {one.segment_id for one in after.segments} if after is not None else set()
    shows_load = row.is_current and any(one.ratio is not None for one in facts.segments.values())
    found = {}
    for segment in row.segments:
        one, known = segment.segment_id, facts.of(segment.segment_id)
        backlog = amount(known.backlog_sum) if known.backlog_sum else ""
        labels, shade = [str(one)], " "
        style = Style(bgcolor=_PALETTE[one % len(_PALETTE)], color="white")
        if shows_load:
            style = Style()
        if shows_load and known.ratio is not None:
            shade, style = glyphs.shades[level(known.ratio)], Style(color=level_style(known.ratio))
            labels.append(f"{one} {known.ratio:.0%}")
        # What is left of a sealed segment is told where it ends.
        if backlog and (row.is_current or one not in going_on):
            labels.append(f"{labels[-1]} {backlog} left")
        found[one] = _Block(tuple(reversed(labels)), shade, style)
    return found


def _columns(segments: Sequence[Segment], width: int) -> Mapping[int, tuple[int, int]]:
    return {
        one.segment_id: (one.hash_range.start * width // RING_SIZE, (one.hash_range.end + 1) * width // RING_SIZE)
        for one in segments
    }


def _scale(width: int) -> str:
    """Hashes above the places where they are."""
    scale = [" "] * (width + 1)
    for quarter in range(4):
        column = quarter * width // 4
        scale[column : column + 4] = f"{quarter * RING_SIZE // 4:04x}"
    scale[-4:] = "ffff"
    return "".join(scale)


def _in_order(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    return tuple(sorted(segments, key=lambda one: one.hash_range))


def _first(times: Iterable[int]) -> int:
    return min((time for time in times if time), default=0)
