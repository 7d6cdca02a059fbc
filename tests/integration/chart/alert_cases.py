"""When each of the chart's alerts is to fire, and when not: series as they would be scraped, a value a minute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.integration.chart.rendering import NAMESPACE

_TOPIC = {"topic": "topic://public/default/orders"}
_OF_CLUSTER = {**_TOPIC, "connection": "shop/pulsar"}
_CONNECTION = {"namespace": "shop", "name": "pulsar"}
_OURS = f'namespace="{NAMESPACE}"'
_OF_TOPIC = f'topic="{_TOPIC["topic"]}"'
_IN_CLUSTER = f'{_OF_TOPIC},connection="shop/pulsar"'
_OF_CONNECTION = 'namespace="shop",name="pulsar"'


@dataclass(frozen=True, slots=True)
class AlertCase:
    """Series, and whether an alert fires on them.

    Args:
        alert: its name, without the project's in front.
        what: the case in words.
        series: in promtool's notation, by selector: `0+1x30` is 0 and then 30 times one more, `_` nothing.
        minute: when that is looked at.
        labels: of the alert that fires, besides its severity; None where it does not.
        value: as its description shows it.
    """

    alert: str
    what: str
    series: Mapping[str, str]
    minute: int
    labels: Mapping[str, str] | None = None
    value: str = ""


def _held(pod: str) -> str:
    return f'scalable_topics_shards_held{{{_OURS},pod="{pod}"}}'


def _operations(result: str) -> str:
    return f'scalable_topics_operations_total{{kind="Split",result="{result}"}}'


_STALLED = 'scalable_topics_stalled_topics{reason="CursorLost",pod="a"}'
_UP = f"scalable_topics_connection_up{{{_OF_CONNECTION}"
_STARTED = f'scalable_topics_operation_start_timestamp_seconds{{{_IN_CLUSTER},kind="Split"}}'
_UNDRAINED = f"scalable_topics_undrained_segment_sealed_timestamp_seconds{{{_IN_CLUSTER}}}"
_TERMINATED = f"scalable_topics_terminated_active_segments{{{_IN_CLUSTER}}}"
_REPLACED = f"scalable_topics_segments_replaced_total{{{_IN_CLUSTER}}}"
_SUPPRESSED = f"pulsar_scalable_topic_split_suppressed_max_segments_total{{{_OF_TOPIC}}}"
_WITHHELD = f'scalable_topics_buckets_withheld{{{_OF_TOPIC},subscription="billing"}}'
_AGE = f"scalable_topics_load_age_seconds{{{_OF_CONNECTION}"
_FOLLOWED = f"scalable_topics_pipeline_followed{{{_OF_CONNECTION}}}"
_ORPHANS = f"scalable_topics_orphans{{{_OF_CONNECTION}}}"
_LOST = f"scalable_topics_shards_lost_total{{{_OURS}}}"
_WAIT = f"scalable_topics_queue_oldest_wait_seconds{{{_OURS}}}"

CASES = (
    AlertCase("ShardsWithoutLeader", "a shard of eight is led by nobody", {_held("a"): "7x9"}, 3, {}, "7"),
    AlertCase("ShardsWithoutLeader", "no replica is left", {}, 3, {}, "0"),
    AlertCase("ShardsWithoutLeader", "two replicas share all of them", {_held("a"): "4x9", _held("b"): "4x9"}, 9),
    AlertCase("ShardsWithoutLeader", "one is away during a hand-over", {_held("a"): "8 7 7 8x9"}, 3),
    AlertCase(
        "ShardsWithoutLeader",
        "another installation has leaders for its own",
        {_held("a"): "7x9", 'scalable_topics_shards_held{namespace="other"}': "1x9"},
        3,
        {},
        "7",
    ),
    AlertCase("LeadershipUnsteady", "twelve losses in half an hour", {_LOST: "0+0.4x40"}, 31, {}, "12"),
    AlertCase("LeadershipUnsteady", "all shards of a dead replica, once", {_LOST: "0x10 8x30"}, 31),
    AlertCase("WorkWaits", "a topic has waited for minutes", {_WAIT: "0 60+60x9"}, 9, {}, "9m 0s"),
    AlertCase("WorkWaits", "a burst is worked off", {_WAIT: "0 60 120 180 0x9"}, 9),
    AlertCase(
        "ConnectionDown",
        "one of two replicas cannot reach it",
        {f'{_UP},pod="a"}}': "1x9", f'{_UP},pod="b"}}': "0x9"},
        6,
        _CONNECTION,
        "0",
    ),
    AlertCase("ConnectionDown", "brokers were restarted", {f'{_UP},pod="a"}}': "1 0 0 0 1x9"}, 6),
    AlertCase("TopicsStalled", "two wait for hours", {_STALLED: "2x60"}, 40, {"reason": "CursorLost"}, "2"),
    AlertCase("TopicsStalled", "somebody has seen to it", {_STALLED: "0 2x20 _x40"}, 40),
    AlertCase(
        "OperationsFail",
        "a split is rolled back again and again",
        {_operations("RolledBack"): "0+1x20"},
        16,
        {"kind": "Split"},
        "15",
    ),
    AlertCase(
        "OperationsFail",
        "many succeed and one fails",
        {_operations("Succeeded"): "0+5x20", _operations("Failed"): "0x9 1x11"},
        16,
    ),
    AlertCase(
        "OperationStuck",
        "a split is in the journal for twenty minutes",
        {_STARTED: "0x30"},
        20,
        {**_OF_CLUSTER, "kind": "Split"},
        "20m 0s",
    ),
    AlertCase(
        "OperationStuck",
        "its leader changes meanwhile",
        {_STARTED.replace("{", '{pod="a",'): "0x10 _x20", _STARTED.replace("{", '{pod="b",'): "_x10 0x20"},
        20,
        {**_OF_CLUSTER, "kind": "Split"},
        "20m 0s",
    ),
    AlertCase("OperationStuck", "splits follow one another", {_STARTED: "0x5 300x5 600x5 900x15"}, 20),
    AlertCase(
        "OperationStuck",
        "a topic of that name on another cluster splits again and again",
        {_STARTED: "0x30", _STARTED.replace("shop/pulsar", "shop/other"): "0x5 300x5 600x5 900x15"},
        20,
        {**_OF_CLUSTER, "kind": "Split"},
        "20m 0s",
    ),
    AlertCase("OperationStuck", "it has ended", {_STARTED: "0x16 _x30"}, 30),
    AlertCase("TerminatedButActive", "a segment is not replaced", {_TERMINATED: "0 0 1x20"}, 8, _OF_CLUSTER, "1"),
    AlertCase(
        "TerminatedButActive",
        "somebody terminates successors, too",
        {_TERMINATED: "0x60", _REPLACED: "0+0.1x60"},
        60,
        _OF_CLUSTER,
        "6",
    ),
    AlertCase(
        "TerminatedButActive", "one was terminated and replaced", {_TERMINATED: "0 1 0x30", _REPLACED: "0 0 1x30"}, 20
    ),
    AlertCase(
        "SegmentUndrained",
        "nobody has read it for more than a day",
        {_UNDRAINED: "0x1500"},
        1450,
        _OF_CLUSTER,
        "1d 0h 10m 0s",
    ),
    AlertCase("SegmentUndrained", "it is drained within a day", {_UNDRAINED: "0x1000 _x500"}, 1450),
    AlertCase("SegmentUndrained", "the oldest goes, and a newer one is left", {_UNDRAINED: "0x1000 36000x500"}, 1450),
    AlertCase("SplitsSuppressed", "each decision for an hour", {_SUPPRESSED: "0+1x60"}, 60, _TOPIC, "15"),
    AlertCase("SplitsSuppressed", "a peak of ten minutes", {_SUPPRESSED: "0x10 0+1x10 10x40"}, 50),
    AlertCase(
        "HandOverStuck",
        "a consumer does not let go",
        {_WITHHELD: "0 2x20"},
        7,
        {**_TOPIC, "subscription": "billing"},
        "2",
    ),
    AlertCase("HandOverStuck", "hand-overs come to their end", {_WITHHELD: "0 2 2 0 1 1 0 3 0x9"}, 7),
    AlertCase("LoadUnknown", "the last look is long ago", {f"{_AGE}}}": "0+60x20"}, 11, _CONNECTION, "11m 0s"),
    AlertCase(
        "LoadUnknown",
        "another replica looks at the brokers now",
        {f'{_AGE},pod="a"}}': "0+60x20", f'{_AGE},pod="b"}}': "30x20"},
        11,
    ),
    AlertCase(
        "LoadUnknown",
        "another replica leads it now, and knows no better",
        {f'{_AGE},pod="a"}}': "0+60x10 stale", f'{_AGE},pod="b"}}': "_x11 660+60x20"},
        15,
        _CONNECTION,
        "15m 0s",
    ),
    AlertCase(
        "LoadUnknown", "a replica that has just started waits for the first look", {f"{_AGE}}}": "0+60x5 5x20"}, 9
    ),
    AlertCase("PipelineNotFollowed", "it is not followed for half an hour", {_FOLLOWED: "0x30"}, 30, _CONNECTION, "0"),
    AlertCase("PipelineNotFollowed", "it was started anew", {_FOLLOWED: "1x10 0x5 1x15"}, 30),
    AlertCase("Orphans", "a topic is left for hours", {_ORPHANS: "1x90"}, 70, _CONNECTION, "1"),
    AlertCase("Orphans", "its object was applied again", {_ORPHANS: "1x30 0x60"}, 70),
)
