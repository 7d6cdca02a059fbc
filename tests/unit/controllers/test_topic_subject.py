"""What decisions need of a topic is read once from each state of its object."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.auto_scaler import Subject
from scalable_topics_operator.controllers.connections import CLASSIC
from scalable_topics_operator.controllers.engine import Engine
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.topic_work import TopicWorkMaker
from scalable_topics_operator.operations.topic_state import TopicState, write_state

KEY = ObjectKey(TOPICS.plural, "shop", "orders")


class World:
    """A topic, and the connection that it uses."""

    def __init__(self) -> None:
        self.cache = ObjectCache()
        self.handle = SimpleNamespace(problem="")
        connections = SimpleNamespace(handle=lambda _: self.handle)
        others = [None] * 7
        self.maker = TopicWorkMaker(*cast(Any, (self.cache, connections, *others)))
        self.last: Subject | None = None
        self.version = 0

    def commit(self, count: int, **spec: Any) -> None:
        self.version += 1
        metadata = {"namespace": "shop", "name": "orders", "uid": "u", "resourceVersion": str(self.version)}
        self.cache.observe(
            TOPICS,
            {
                "metadata": metadata,
                "spec": {"topic": "acme/shop/orders", "connectionRef": {"name": "pulsar"}, **spec},
                "status": write_state({}, TopicState(layout=SegmentLayout.initial(count))),
            },
        )

    def read(self) -> Subject | None:
        body = self.cache.get(KEY)
        assert body is not None
        self.last = self.maker.subject(KEY, body, self.last)
        return self.last


def test_it_says_what_the_object_does() -> None:
    world = World()
    world.commit(3, paused=True)
    first = world.read()
    assert first is not None
    assert (str(first.topic), len(first.layout.active)) == ("topic://acme/shop/orders", 3)
    assert (first.paused, first.is_sized, first.engine, first.backend) == (True, False, Engine.OPERATOR, CLASSIC)
    world.commit(4, segments={"desired": 5})
    second = world.read()
    assert second is not None
    assert (second.paused, second.is_sized, len(second.layout.active)) == (False, True, 4)


def test_it_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Body] = []
    whole = TopicState

    def noting(status: Body) -> TopicState:
        read.append(status)
        return whole(layout=SegmentLayout.initial(2))

    monkeypatch.setattr("scalable_topics_operator.controllers.topic_work.read_state", noting)
    world = World()
    world.commit(2)
    assert world.read() is world.read()
    assert len(read) == 1
    world.commit(2)
    world.read()
    assert len(read) == 2, "the object is another one"
    world.handle = SimpleNamespace(problem="")
    found = world.read()
    assert found is not None
    assert found.handle is cast(Any, world.handle), "the connection was changed"
    world.handle.problem = "it does not answer"
    assert world.read() is None
