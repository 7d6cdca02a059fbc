"""What lies around coordinators in their stories: an API server and brokers, whose replies may fail."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scalable_topics.layout import Segment, SegmentLayout, TopicName, classic_segment_name
from scalable_topics_operator.cluster.kube_client import Body, Resource
from scalable_topics_operator.cluster.kube_errors import KubeConflict, KubeUnavailable
from scalable_topics_operator.cluster.object_key import ObjectKey, key_of
from scalable_topics_operator.operations.errors import BackendUnavailable
from scalable_topics_operator.operations.protocols import CursorLook, Position, SegmentLook
from tests.simulation.fleet.api_server import merged
from tests.simulation.shared_reading import KeySharedBroker, given_twice

TOPIC = TopicName("tenant", "space", "orders")
SUBSCRIPTION = "billing"
_END = Position(0, 9)
_FAULTS = 0.08


@dataclass
class ModelServer:
    """An API server with two objects, whose replies may fail.

    Args:
        chances: decide what fails.
        bodies: the objects.
        is_calm: nothing fails any more.
    """

    chances: random.Random
    bodies: dict[ObjectKey, Body] = field(default_factory=dict)
    version: int = 0
    is_calm: bool = False

    def put(self, resource: Resource, body: Body) -> Body:
        self.version += 1
        body = copy.deepcopy(body)
        body["metadata"]["resourceVersion"] = str(self.version)
        self.bodies[key_of(resource, body)] = body
        return copy.deepcopy(body)

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Body:
        self._may_fail()
        return copy.deepcopy(self.bodies[ObjectKey(resource.plural, namespace or "", name)])

    async def create(self, resource: Resource, namespace: str | None, body: Body) -> Body:
        return body

    async def merge_patch(
        self, resource: Resource, namespace: str | None, name: str, patch: Mapping[str, Any], *, subresource: str = ""
    ) -> Body:
        self._may_fail()
        known = self.bodies[ObjectKey(resource.plural, namespace or "", name)]
        if patch["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"]:
            raise KubeConflict(f"patch {name}", 409, "conflict")
        written = merged(known, {"status": patch["status"]})
        assert not (twice := given_twice(written["status"])), f"R21: {twice}"
        answer = self.put(resource, written)
        self._may_fail()
        return answer

    def _may_fail(self) -> None:
        if not self.is_calm and self.chances.random() < _FAULTS:
            raise KubeUnavailable("a call", 503, "not today")


@dataclass
class ModelCursors:
    """Brokers: who is attached to a segment or a bucket of it, and whether it is read to its end."""

    chances: random.Random
    broker: KeySharedBroker = field(default_factory=KeySharedBroker)
    read: set[int] = field(default_factory=set)
    layout: SegmentLayout = field(default_factory=lambda: SegmentLayout.initial(1))
    is_calm: bool = False

    async def look(self, segment_topic: str) -> SegmentLook:
        if not self.is_calm and self.chances.random() < _FAULTS:
            raise BackendUnavailable("the broker does not answer")
        segment = next(one for one in self.layout.segments.values() if name_of(one) == segment_topic)
        one = segment.segment_id
        consumers = self.broker.consumers_of(one)
        cursor = CursorLook(
            counts=True,
            mark_delete=_END if one in self.read else Position(0, 0),
            backlog=0 if one in self.read else 1,
            consumers=len(consumers),
            consumer_names=consumers,
        )
        return SegmentLook(
            terminated=not segment.is_active,
            last_confirmed=_END,
            pending_adds=0,
            entries=10,
            producers=frozenset(),
            cursors={SUBSCRIPTION: cursor},
        )


def name_of(segment: Segment) -> str:
    return classic_segment_name(TOPIC, segment.hash_range, segment.segment_id)
