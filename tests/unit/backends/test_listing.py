"""The segments that a namespace's topics are, told again after each listing."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import (
    HashRange,
    TopicName,
    classic_segment_name,
    layout_topic_name,
    parse_classic_segment_name,
)
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.classic import listing
from scalable_topics_operator.backends.classic.listing import SegmentListing
from scalable_topics_operator.operations.errors import NamespaceMissing
from scalable_topics_operator.operations.protocols import FoundSegment

TOPICS = [TopicName("t", "n", "orders"), TopicName("t", "n", "orders-2")]
RANGES = [HashRange(0, 0xFFFF), HashRange(0, 0x7FFF)]
SEGMENTS = {
    classic_segment_name(topic, hash_range, number): (topic, FoundSegment(number, hash_range, name))
    for topic in TOPICS
    for hash_range in RANGES
    for number in range(3)
    for name in [classic_segment_name(topic, hash_range, number)]
}
OTHERS = [layout_topic_name(TOPICS[0]), "persistent://t/n/plain", "persistent://t/n/plain-partition-0"]


def read(*answers: Sequence[str] | Exception) -> SegmentListing:
    """A listing over brokers that answer these, one after the other."""
    answered = iter(answers)

    async def topics(_: str) -> Sequence[str]:
        answer = next(answered)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return SegmentListing(cast(PulsarAdmin, SimpleNamespace(namespaces=SimpleNamespace(topics=topics))))


@given(st.lists(st.lists(st.sampled_from([*SEGMENTS, *OTHERS])), min_size=1, max_size=5))
async def test_each_listing_tells_of_what_it_names_whatever_was_listed_before(answers: list[list[str]]) -> None:
    found = read(*(answer for answer in answers for _ in TOPICS), answers[-1])
    for answer in answers:
        for topic in TOPICS:
            of_topic = {one for name in answer if name in SEGMENTS for of, one in [SEGMENTS[name]] if of == topic}
            expected = sorted(of_topic, key=lambda one: (one.segment_id, one.topic))
            assert list(await found.segments(topic, max_age_seconds=0.0)) == expected
    assert set(await found.topics("t/n")) == {SEGMENTS[name][0] for name in answers[-1] if name in SEGMENTS}


async def test_a_namespace_that_is_gone_and_made_anew_holds_nothing_of_before() -> None:
    found = read([*SEGMENTS], NamespaceMissing("t/n"), [])
    assert len(await found.segments(TOPICS[0], max_age_seconds=0.0)) == 6
    with pytest.raises(NamespaceMissing):
        await found.segments(TOPICS[0], max_age_seconds=0.0)
    assert not await found.segments(TOPICS[0], max_age_seconds=0.0)


async def test_names_are_parsed_when_they_are_new_only() -> None:
    first, more = list(SEGMENTS)[:5], list(SEGMENTS)[5:7]
    found = read(first, first, [*first, *more], more)
    with patch.object(listing, "parse_classic_segment_name", wraps=parse_classic_segment_name) as parse:
        counts = []
        for _ in range(4):
            await found.segments(TOPICS[0], max_age_seconds=0.0)
            counts.append(parse.call_count)
    assert counts == [5, 5, 7, 12]
