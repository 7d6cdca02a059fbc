"""What has become of a layout that brokers own: they prune within a minute and tell little of what they did."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import CreatedBy, SegmentLayout, TopicName, from_pip468, migrated_layout, to_pip468
from scalable_topics_operator.operations.native.news import is_another, news_of

_OURS = ("mergeDepth", "createdBy", "sealedPosition")
_NOW_MS = 9_000_000


def as_brokers_tell(layout: SegmentLayout) -> SegmentLayout:
    """A layout without what the brokers' record lacks."""
    record = to_pip468(layout)
    for segment in record["segments"].values():
        for field in _OURS:
            segment.pop(field, None)
    return from_pip468(record)


def _changed(layout: SegmentLayout, choice: int, now_ms: int) -> SegmentLayout:
    """The layout after one change that the brokers may make."""
    active = layout.active
    place = choice % len(active)
    kind = choice % 4
    if kind == 0 and layout.sealed:
        return layout.prune([layout.sealed[choice % len(layout.sealed)].segment_id])
    if kind == 1 and len(active) > 1:
        pair = active[min(place, len(active) - 2) :][:2]
        return layout.merge([one.segment_id for one in pair], now_ms=now_ms)
    if kind == 2:
        return layout.rebucket(active[place].segment_id, active[place].buckets % 7 + 1, now_ms=now_ms)
    if active[place].hash_range.size > 1:
        return layout.split(active[place].segment_id, now_ms=now_ms)
    return layout


@given(st.lists(st.integers(0, 10_000), max_size=40), st.integers(1, 5))
def test_depth_and_makers_outlive_the_parents_that_brokers_prune(choices: list[int], initial: int) -> None:
    """R36: depth that is told from what pruning edits would begin anew after every minute."""
    truth = SegmentLayout.initial(initial, created_at_ms=1)
    known = news_of(None, as_brokers_tell(truth), now_ms=_NOW_MS).layout
    history: list[int] = []
    made = 0
    for number, choice in enumerate(choices, 2):
        before, truth = truth, _changed(truth, choice, number)
        news = news_of(known, as_brokers_tell(truth), now_ms=_NOW_MS)
        known = news.layout
        assert not news.replaced
        assert known == truth
        history += [one.segment_id for one in news.pruned]
        made += len(news.happened)
        assert {one.segment_id for one in news.pruned} == before.segments.keys() - truth.segments.keys()
    assert set(history) | known.segments.keys() == set(range(known.next_segment_id))
    assert len(history) == len(set(history)), "nothing is pruned twice"
    assert made == sum(1 for _ in _changes(truth, history))


def _changes(layout: SegmentLayout, pruned: list[int]) -> Any:
    """One a change that made segments: as many as there are epochs that did not prune."""
    return range(layout.epoch - len(pruned))


@given(st.lists(st.integers(0, 10_000), max_size=30))
def test_several_changes_between_two_looks_are_told_one_by_one(choices: list[int]) -> None:
    truth = SegmentLayout.initial(2, created_at_ms=1)
    before = as_brokers_tell(truth)
    for number, choice in enumerate(choices, 2):
        # What is pruned between two looks leaves no trace.
        truth = _changed(truth, choice | 1 if choice % 4 == 0 else choice, number)
    news = news_of(before, as_brokers_tell(truth), now_ms=_NOW_MS)
    assert news.layout == truth
    assert [one.epoch for one in news.happened] == list(range(1, truth.epoch + 1))
    assert [set(one.child_ids) for one in news.happened] == [
        {one.segment_id for one in truth.segments.values() if one.created_at_epoch == epoch}
        for epoch in range(1, truth.epoch + 1)
    ]


def test_a_split_whose_parent_is_pruned_already_is_still_a_split() -> None:
    before = SegmentLayout.initial(1, created_at_ms=1)
    after = as_brokers_tell(before.split(0, now_ms=2).prune([0]))
    news = news_of(before, after, now_ms=_NOW_MS)
    assert [(one.kind, one.parent_ids, one.child_ids) for one in news.happened] == [(CreatedBy.SPLIT, (0,), (1, 2))]
    assert [(one.segment_id, one.child_ids, one.pruned_at_ms) for one in news.pruned] == [(0, (1, 2), _NOW_MS)]


def test_a_topic_that_was_deleted_and_made_again_is_another() -> None:
    before = SegmentLayout.initial(2, created_at_ms=1).split(0, now_ms=2)
    assert is_another(before, SegmentLayout.initial(2, created_at_ms=1)), "epochs never go back"
    assert is_another(SegmentLayout.initial(2, created_at_ms=1), SegmentLayout.initial(2, created_at_ms=5))
    assert is_another(SegmentLayout.initial(2, created_at_ms=1), SegmentLayout.initial(3, created_at_ms=1))
    assert not is_another(before, before.merge([1, 3], now_ms=3).prune([0]))
    assert not is_another(before, before)


def test_a_migration_is_told_from_the_old_topics() -> None:
    topic = TopicName.parse("tenant/space/orders")
    migrated = migrated_layout(topic, 2, 4, 5, first_child_id=2)
    news = news_of(None, as_brokers_tell(migrated), now_ms=_NOW_MS)
    assert {one.created_by for one in news.layout.active} == {CreatedBy.MIGRATE}
    assert {one.merge_depth for one in news.layout.active} == {0}
