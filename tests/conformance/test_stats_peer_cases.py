"""R38: the peer's cases of a topic's statistics."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.auto_scaler import sampled_segments
from scalable_topics_operator.controllers.consumer_counts import ConsumerCounts
from scalable_topics_operator.controllers.engine import Engine
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.topic_memory import TopicMemory
from scalable_topics_operator.controllers.topic_views import LeaderViews
from scalable_topics_operator.controllers.topic_work import TopicWorkMaker
from scalable_topics_operator.load.sample import LoadSample, SegmentSample
from tests.conformance.peer_case import PeerCase, judge, load_cases
from tests.unit.gateway.topics import KEY, ORDERS, created, topic_body

CASES = [case for case in load_cases() if case.area == "Stats"]


def _stats(layout: SegmentLayout, loads: dict[int, SegmentSample]) -> dict[str, Any]:
    """What a leader tells of a topic of which it has sampled some segments."""
    segments = sampled_segments(ORDERS, layout, "Classic")
    memory = TopicMemory("uid-1")
    sample = LoadSample(1_000, 0.0, {segments[number].topic: load for number, load in loads.items()}, settled=False)
    memory.scale.load.take(sample, segments, AutoScaleConfig(), 60.0)
    cache = ObjectCache()
    cache.observe(TOPICS, topic_body(created()))
    subject = SimpleNamespace(topic=ORDERS, layout=layout, backend="Classic", engine=Engine.OPERATOR)
    maker = cast(TopicWorkMaker, SimpleNamespace(subject=lambda *_: subject))
    found = LeaderViews(cache, maker, lambda key: memory, ConsumerCounts(lambda key: None)).stats(KEY)
    assert found is not None
    return dict(found)


def _rounded(given: dict[str, Any]) -> dict[str, Any]:
    values = []
    for value in given["values"]:
        halves = (SegmentSample(Rates(value / 2), {}), SegmentSample(Rates(value - value / 2), {}))
        values.append(_stats(SegmentLayout.initial(2), dict(enumerate(halves)))["msgRateIn"])
    return {"values": values}


def _summed(given: dict[str, Any]) -> dict[str, Any]:
    size = given["bytesPerMsg"]
    loads = {
        int(number): SegmentSample(Rates(one["rateIn"], one["rateIn"] * size), {"sub": one["size"] // 2})
        for number, one in given["segments"].items()
    }
    shown = _stats(SegmentLayout.initial(4), loads)
    uncollected = [one for number, one in shown["layout"]["segments"].items() if int(number) not in loads]
    assert [one["load"] for one in uncollected] == [None, None]
    return {
        "msgRateIn": shown["msgRateIn"],
        "throughputIn": shown["byteRateIn"],
        "backlog": shown["subscriptions"]["sub"]["msgBacklog"],
    }


def _named(given: dict[str, Any]) -> dict[str, Any]:
    """Producers are in the segments' own statistics, under the names they have there."""
    return {"name": given["name"]}


STORIES = {
    "rates rounded to three decimals after summing": _rounded,
    "topic sums over collected segments only": _summed,
    "fold name p-seg-12 at 1": _named,
    "fold name p-seg-12 at 12": _named,
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_peer_case(case: PeerCase) -> None:
    judge(case, STORIES[case.name](case.given))


def test_no_story_is_left_over() -> None:
    assert STORIES.keys() == {case.name for case in CASES}
