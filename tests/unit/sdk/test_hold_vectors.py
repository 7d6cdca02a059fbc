"""Stories of holding and going on, by the contract's vectors (R13, R15)."""

from __future__ import annotations

from typing import Any

import pytest

from scalable_topics.layout import HashRange, SegmentState
from scalable_topics.sdk.layout_message import Announcement, FollowedSegment, LayoutMessage
from tests.unit.sdk.simulated_segments import SimulatedSegments
from tests.unit.sdk.vectors import cases


class Story:
    """Tells one story to a plan."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.world = SimulatedSegments()
        self._hash = case["hash"]
        self._epoch = 0
        self._step = 100
        self._segments = [self._segment(segment) for segment in case["segments"]]
        self._given: dict[str, list[int]] = {}
        self.world.on_hand_over = self._give
        self._follow()

    def tell(self, step: dict[str, Any]) -> dict[str, list[int]]:
        """One step; answers what the segments have been given so far."""
        world = self.world
        match step:
            case {"send": count}:
                for _ in range(count):
                    world.send(self._hash)
            case {"acknowledge": True}:
                for producer in world.producers:
                    while producer.holds:
                        world.store(producer)
                        world.acknowledge(producer)
            case {"announce": announced}:
                children = tuple(self._segment(child) for child in announced["children"])
                self._follow(Announcement("op", tuple(announced["parents"]), children, announced["holdSeconds"]))
            case {"resume": True}:
                self._follow()
            case {"layout": layout}:
                self._epoch = layout["epoch"]
                sealed = [
                    FollowedSegment(s.segment_id, s.hash_range, s.topic, state=SegmentState.SEALED)
                    for s in self._segments
                ]
                self._segments = [*(self._segment(segment) for segment in layout["segments"]), *sealed]
                self._follow(settled=layout.get("settled", {}))
            case {"terminate": segment_id}:
                world.stored[f"segment {segment_id}"].is_terminated = True
            case {"refuse": segment_id}:
                world.refuse(self._producer(segment_id))
            case {"store": count, "segment": segment_id}:
                for _ in range(count):
                    world.store(self._producer(segment_id))
            case {"wait": seconds}:
                world.pass_time(seconds)
            case _:
                raise AssertionError(f"nobody knows the step {step}")
        while world.opening:
            world.open_next()
        return self._given

    def _follow(self, announcement: Announcement | None = None, settled: dict[str, int] | None = None) -> None:
        self._step += 1
        truth = {
            int(segment_id): {self._producer(int(segment_id)).name: last}
            for segment_id, last in (settled or {}).items()
        }
        segments = {segment.segment_id: segment for segment in self._segments}
        message = LayoutMessage("t", "told.0", self._epoch, self._step, 1, segments, announcement, truth)
        self.world.plan.follow(message, self.world.now)
        self.world.act()

    def _give(self, topic: str, order: int) -> None:
        self._given.setdefault(topic.removeprefix("segment "), []).append(order)

    def _producer(self, segment_id: int) -> Any:
        return next(p for p in reversed(self.world.producers) if p.topic == f"segment {segment_id}")

    @staticmethod
    def _segment(told: dict[str, Any]) -> FollowedSegment:
        return FollowedSegment(told["id"], HashRange.parse_descriptor(told["range"]), f"segment {told['id']}")


@pytest.mark.parametrize("case", cases("hold.json"), ids=lambda case: case["name"])
def test_story(case: dict[str, Any]) -> None:
    story = Story(case)
    for number, step in enumerate(case["steps"]):
        assert story.tell(step) == step["sent"], f"step {number}: {step}"
