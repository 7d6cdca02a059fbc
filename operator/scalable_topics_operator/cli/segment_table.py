"""Segments as a table: where they lie, where they come from, and their load and backlog where these are known. Pure."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from scalable_topics.layout import Segment, SegmentLayout
from scalable_topics_operator.cli.layout_picture import level_style
from scalable_topics_operator.cli.segment_facts import RATES, SegmentFacts, TopicFacts
from scalable_topics_operator.cli.tables import cells, table
from scalable_topics_operator.cli.topic_view import amount, ids, share, time_of

_PLACE = ("segment", "range", "ring", "state", "buckets", "made by", "into")
_PLACE_WIDE = ("epoch", "merges", "since (UTC)")
_LOAD = ("msg/s in", "B/s in", "load", "backlog")
_LOAD_WIDE = ("msg/s out", "B/s out", "highest")
_FEW_SEALED = 10


def segments_table(layout: SegmentLayout, facts: TopicFacts, *, wide: bool) -> Table:
    """The active segments in the order of the ring, then the sealed ones, newest first.

    Args:
        layout: the segments.
        facts: their load and backlog; without any there are no columns for that.
        wide: more columns, and all sealed segments.
    """
    is_loaded = bool(facts.segments)
    shown = table(*_PLACE, *(_PLACE_WIDE if wide else ()), *(_LOAD if is_loaded else ()))
    if wide and is_loaded:
        for heading in _LOAD_WIDE:
            shown.add_column(heading)
    sealed = sorted(layout.sealed, key=lambda one: -one.segment_id)
    few = sealed if wide else sealed[:_FEW_SEALED]
    for segment in (*layout.active, *few):
        row = _place(segment, wide)
        if is_loaded:
            row += _load(facts.of(segment.segment_id), wide)
        shown.add_row(*row)
    if len(sealed) > len(few):
        shown.add_row(*cells("…", f"{len(sealed) - len(few)} more", "", "sealed", "", "-o wide"))
    return shown


def _place(segment: Segment, wide: bool) -> list[Text]:
    maker = "ordinary topic" if segment.is_legacy else segment.created_by.value
    row = [
        segment.segment_id,
        segment.hash_range.descriptor,
        share(segment),
        segment.state.value.lower(),
        segment.buckets,
        f"{maker} of {ids(segment.parent_ids)}" if segment.parent_ids else maker,
        ids(segment.child_ids),
    ]
    if wide:
        since = time_of(segment.created_at_ms if segment.is_active else segment.sealed_at_ms)
        row += ["-" if segment.is_legacy else segment.created_at_epoch, segment.merge_depth, since]
    return list(cells(*row))


def _load(known: SegmentFacts, wide: bool) -> list[Text]:
    rates = known.rates or {}
    inward, outward = RATES[:2], RATES[2:]
    row = [
        *cells(*(amount(rates.get(rate)) for rate in inward)),
        Text("-" if known.ratio is None else f"{known.ratio:.0%}", level_style(known.ratio)),
        *cells(amount(known.backlog_sum)),
    ]
    return [*row, *cells(*(amount(rates.get(rate)) for rate in outward), known.highest or None)] if wide else row
