"""The picture of a ring over its epochs: what is in it, without any colour."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import SegmentLayout, TopicName, migrated_layout
from scalable_topics_operator.cli.layout_picture import (
    ASCII,
    BEFORE,
    UNICODE,
    epoch_rows,
    glyphs_for,
    hidden,
    legend,
    level,
    picture,
)
from scalable_topics_operator.cli.segment_facts import SegmentFacts, TopicFacts

AT_MS = 1_760_000_000_000
NOTHING_KNOWN = TopicFacts()


def _grown() -> SegmentLayout:
    layout = SegmentLayout.initial(2, created_at_ms=AT_MS)
    return layout.split(0, now_ms=AT_MS + 60_000).merge([3, 1], now_ms=AT_MS + 120_000)


def _lines(layout: SegmentLayout, facts: TopicFacts = NOTHING_KNOWN, width: int = 32) -> list[str]:
    return [line.plain for line in picture(epoch_rows(layout), facts, width)]


def test_each_epoch_is_a_row_of_its_segments_between_edges() -> None:
    assert _lines(_grown()) == [
        "epoch  0000    4000    8000    c000 ffff  since (UTC)",
        "    0  │0              │1              │ 2025-10-09 08:53:20",
        "    1  │2      │3      │1              │ 2025-10-09 08:54:20",
        "    2  │2      │4                      │ 2025-10-09 08:55:20",
    ]


def test_load_is_a_shade_of_the_last_row_and_backlog_is_told_where_a_segment_ends() -> None:
    facts = TopicFacts(
        {
            0: SegmentFacts(backlog={"a": 7}),
            2: SegmentFacts({}, 0.6, "msgRateIn", {"a": 9}),
            3: SegmentFacts(backlog={"a": 0}),
            4: SegmentFacts({}, 1.2, "msgRateIn", {"a": 1000, "b": 234}),
        }
    )
    assert [line[7:] for line in _lines(_grown(), facts)[1:]] == [
        "│0 7 left       │1              │ 2025-10-09 08:53:20",
        "│2      │3      │1              │ 2025-10-09 08:54:20",
        "│2 60%▒▒│4 120% 1.23k left██████│ 2025-10-09 08:55:20",
    ]


def test_a_place_whose_segment_was_pruned_stays_empty() -> None:
    layout = _grown().prune([0])
    assert "    0  ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌│1              │" in _lines(layout)[1]


def test_a_migrated_topic_has_a_row_from_before() -> None:
    topic = TopicName.parse("acme/shop/orders")
    rows = epoch_rows(migrated_layout(topic, 2, now_ms=AT_MS))
    assert rows[0].epoch == BEFORE
    assert [one.is_legacy for one in rows[0].segments] == [True, True]
    assert not any(one.is_legacy for row in rows[1:] for one in row.segments)


def test_without_unicode_it_is_drawn_with_ascii() -> None:
    assert glyphs_for("ANSI_X3.4-1968") is ASCII
    assert (glyphs_for("utf-8"), glyphs_for("UTF-16")) == (UNICODE, UNICODE)
    facts = TopicFacts({2: SegmentFacts({}, 0.6, ""), 4: SegmentFacts({}, 2.0, "")})
    text = "\n".join(line.plain for line in picture(epoch_rows(_grown()), facts, 32, ASCII)) + legend(ASCII)
    assert text.isascii()
    assert "|2 60%::|4 200%#" in text


@pytest.mark.parametrize(
    ("ratio", "expected"), [(0, 0), (0.24, 0), (0.25, 1), (0.74, 2), (0.99, 3), (1.0, 4), (80.0, 4)]
)
def test_the_last_shade_begins_at_the_split_threshold(ratio: float, expected: int) -> None:
    assert level(ratio) == expected


@given(seed=st.integers(0, 2**32), width=st.integers(16, 128), segments=st.integers(1, 200))
def test_every_row_is_as_wide_as_the_ring_and_has_a_block_for_what_is_wide_enough(
    seed: int, width: int, segments: int
) -> None:
    chance = random.Random(seed)
    layout = SegmentLayout.initial(segments, created_at_ms=AT_MS)
    for _ in range(6):
        active = layout.active
        if chance.random() < 0.6 or len(active) < 2:
            wide = [one.segment_id for one in active if one.hash_range.size > 8]
            layout = layout.split(chance.choice(wide), now_ms=AT_MS, into=chance.choice((2, 3)))
        else:
            place = chance.randrange(len(active) - 1)
            layout = layout.merge([one.segment_id for one in active[place : place + 2]], now_ms=AT_MS)
    rows = epoch_rows(layout)
    lines = [line.plain for line in picture(rows, TopicFacts(), width)]
    margin = max(5, *(len(row.epoch) for row in rows)) + 2
    for row, line in zip(rows, lines[1:], strict=True):
        ring = line[margin : margin + width]
        assert line[margin + width] == UNICODE.edge
        assert ring.count(UNICODE.edge) == len(row.segments) - hidden(row, width)
        assert sum(one.hash_range.size for one in row.segments) == 65536, "nothing was pruned"
