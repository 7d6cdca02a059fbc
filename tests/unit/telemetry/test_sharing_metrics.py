"""What is shown of consumers that share segments, through joins, hand-overs and leaves (pip-486, R37)."""

from __future__ import annotations

from prometheus_client import generate_latest

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.assignment.group import Group
from scalable_topics_operator.assignment.overview import reading_of
from scalable_topics_operator.telemetry.metrics import Metrics

TOPIC, SUBSCRIPTION = "topic://t/n/x", "billing"
LAYOUT = SegmentLayout.initial(1, bucket_budget=4)


class Shown:
    """Metrics of one subscription."""

    def __init__(self, *, per_segment: bool = True, per_topic: bool = True) -> None:
        self.metrics = Metrics(per_topic=per_topic, per_segment=per_segment)

    def show(self, group: Group, layout: SegmentLayout = LAYOUT) -> None:
        self.metrics.sharing.show(TOPIC, SUBSCRIPTION, reading_of(group, layout))

    def of(self, name: str, segment: int | None = None) -> float | None:
        labels = {"topic": TOPIC, "subscription": SUBSCRIPTION}
        if segment is not None:
            labels["segment"] = str(segment)
        return self.metrics.registry.get_sample_value(f"scalable_topics_{name}", labels)


def _joined(*names: str, layout: SegmentLayout = LAYOUT) -> Group:
    group = Group()
    for name in names:
        group = group.join(name, "1", (), "", shares=True)
    return group.settle(layout, 1)


def test_a_hand_over_withholds_buckets_until_it_is_done_and_counts_as_reassignments() -> None:
    shown = Shown()
    alone = _joined("a")
    shown.show(alone)
    assert shown.of("segment_sharing_consumers", 0) == 0
    taken = alone.join("b", "1", (), "", shares=True).settle(LAYOUT, 1)
    shown.show(taken)
    assert shown.of("buckets_withheld") == shown.of("segment_buckets_withheld", 0) == 4
    assert shown.of("bucket_reassignments_total") == 0
    shared = taken.release("a", "1", taken.members["a"].releasing).settle(LAYOUT, 1)
    shown.show(shared)
    assert shown.of("buckets_withheld") == 0
    assert shown.of("bucket_reassignments_total") == shown.of("segment_bucket_reassignments_total", 0) == 2
    assert shown.of("segment_sharing_consumers", 0) == 2
    assert shown.of("draining_segments") == 0


def test_a_sealed_segment_that_is_shared_drains() -> None:
    shown = Shown()
    layout = LAYOUT.split(0, now_ms=1)
    group = _joined("a", "b", layout=layout)
    shown.show(group, layout)
    assert shown.of("draining_segments") == shown.of("segment_draining", 0) == 1
    after = group.with_drained([0]).settle(layout, 1)
    shown.show(after, layout)
    assert shown.of("draining_segments") == 0
    assert shown.of("segment_draining", 0) is None
    assert shown.of("segment_sharing_consumers", 1) == 0


def test_what_is_not_led_any_more_is_not_shown() -> None:
    shown = Shown()
    shown.show(_joined("a", "b"))
    shown.metrics.sharing.forget(TOPIC, SUBSCRIPTION)
    assert b"billing" not in _exposed(shown)


def test_series_can_be_switched_off() -> None:
    shown = Shown(per_segment=False)
    shown.show(_joined("a", "b"))
    assert shown.of("buckets_withheld") == 0
    assert shown.of("segment_buckets_withheld", 0) is None
    nothing = Shown(per_topic=False)
    nothing.show(_joined("a", "b"))
    assert b"billing" not in _exposed(nothing)


def test_segments_show_how_many_buckets_they_have() -> None:
    metrics = Metrics(per_segment=True)
    layout = LAYOUT.rebucket(0, 8, now_ms=1)

    def buckets(segment: int) -> float | None:
        labels = {"topic": TOPIC, "segment": str(segment)}
        return metrics.registry.get_sample_value("scalable_topics_segment_entry_buckets", labels)

    metrics.show_layout(TOPIC, layout)
    assert (buckets(0), buckets(1)) == (4, 8)
    metrics.show_layout(TOPIC, layout.prune([0]))
    assert (buckets(0), buckets(1)) == (None, 8)
    metrics.forget_layout(TOPIC)
    assert buckets(1) is None


def _exposed(shown: Shown) -> bytes:
    return generate_latest(shown.metrics.registry)
