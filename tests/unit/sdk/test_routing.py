"""From keys to segments and entry buckets (R23), by the contract's vectors."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import HashRange, TopicName, key_hash, route, routing_key, synthetic_layout
from scalable_topics.sdk.layout_message import FollowedSegment, Routing
from scalable_topics.sdk.routing_table import RoutingTable
from scalable_topics.sdk.segment_lane import KEYLESS, LaneKey, SegmentLane
from tests.unit.sdk.vectors import cases


class Lanes:
    """Makes and keeps lanes."""

    def __init__(self) -> None:
        self.made: dict[LaneKey, SegmentLane] = {}

    def __call__(self, key: LaneKey, segment: FollowedSegment) -> SegmentLane:
        return self.made.setdefault(key, SegmentLane(key, segment))


def table(layout: str, *, per_bucket: bool = True) -> tuple[RoutingTable, Lanes]:
    """A routing table over a layout of the vectors."""
    found = next(known for known in cases("routing.json", "layouts") if known["name"] == layout)
    active = [
        FollowedSegment(segment["id"], HashRange.parse_descriptor(segment["range"]), "topic", segment["buckets"])
        for segment in found["segments"]
    ]
    lanes = Lanes()
    routing = Routing(found.get("routing", "Ranges"))
    return RoutingTable(active, per_bucket=per_bucket, lane=lanes, routing=routing), lanes


@pytest.mark.parametrize("case", cases("routing.json", "keys"))
def test_hashes(case: dict[str, Any]) -> None:
    assert key_hash(base64.b64decode(case["base64"])) == case["hash"]


@pytest.mark.parametrize("case", cases("routing.json"))
@pytest.mark.parametrize("per_bucket", [True, False])
def test_segments_and_buckets(case: dict[str, Any], per_bucket: bool) -> None:
    key = routing_key(case["orderingKey"], case["key"], base64_encoded=case["keyIsBase64"])
    assert key is not None
    lane = table(case["layout"], per_bucket=per_bucket)[0].keyed(key_hash(key))
    assert lane.key == (case["segment"], case["bucket"] if per_bucket else 0)


def test_keyless_messages_take_turns_in_ring_order() -> None:
    routes, _ = table("uneven")
    assert [routes.keyless().key for _ in range(4)] == [(7, KEYLESS), (12, KEYLESS), (9, KEYLESS), (7, KEYLESS)]


def test_keyless_messages_pass_over_what_is_held_up() -> None:
    routes, lanes = table("four")
    for _ in range(4):
        routes.keyless()
    lanes.made[LaneKey(1, KEYLESS)].held = True
    lanes.made[LaneKey(2, KEYLESS)].failures = 1
    assert [routes.keyless().key.segment_id for _ in range(4)] == [0, 3, 0, 3]
    for lane in lanes.made.values():
        lane.held = True
    assert routes.keyless().key.segment_id in range(4)


@given(st.integers(0, 0xFFFF_FFFF), st.integers(0, 130))
def test_R25_ordinary_topics_are_routed_as_the_layout_kernel_says(hash_value: int, partitions: int) -> None:
    layout = synthetic_layout(TopicName.parse("t/n/x"), partitions)
    active = [FollowedSegment(segment.segment_id, segment.hash_range, segment.topic or "") for segment in layout.active]
    routes = RoutingTable(active, per_bucket=True, lane=Lanes(), routing=Routing.MODULO)
    assert routes.keyed(hash_value).key == (route(layout, hash_value).segment_id, 0)
