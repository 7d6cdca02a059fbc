"""What looks at segments have found is shown as long as there are looks: nobody else takes it back."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from scalable_topics_operator.cluster.kube_client import Body, Resource
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.cluster.status_store import StatusStore
from scalable_topics_operator.controllers.conditions import Standing
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.topic_course import Outcome
from scalable_topics_operator.controllers.topic_memory import TopicMemory
from scalable_topics_operator.controllers.topic_reconciler import TopicReconciler
from scalable_topics_operator.controllers.topic_work import Stuck
from scalable_topics_operator.operations.errors import NameRefused
from scalable_topics_operator.telemetry.metrics import Metrics

KEY = ObjectKey(TOPICS.plural, "shop", "orders")
TOPIC, PULSAR = "topic://acme/shop/orders", "shop/pulsar"
LOOKS = (
    "scalable_topics_undrained_segments",
    "scalable_topics_undrained_segment_sealed_timestamp_seconds",
    "scalable_topics_terminated_active_segments",
)


@dataclass
class World:
    """A topic that was looked at, and what becomes of it next.

    Args:
        ends: what the next work on it raises; None for work that is done.
        paused: whether it is paused.
    """

    ends: Exception | None = None
    paused: bool = False
    metrics: Metrics = field(default_factory=Metrics)

    def shown(self) -> list[float | None]:
        labels = {"topic": TOPIC, "connection": PULSAR}
        return [self.metrics.registry.get_sample_value(name, labels) for name in LOOKS]

    def replaced(self) -> float | None:
        labels = {"topic": TOPIC, "connection": PULSAR}
        return self.metrics.registry.get_sample_value("scalable_topics_segments_replaced_total", labels)

    async def reconcile(self) -> None:
        cache, kube = ObjectCache(), Kubernetes()
        cache.observe(TOPICS, kube.body)

        async def nothing(*_: object) -> None:
            return None

        parts = (
            kube,
            cache,
            SimpleNamespace(warning=nothing),
            self.metrics,
            SimpleNamespace(make=self._make),
            SimpleNamespace(cache=cache, show_waiting=nothing, pending=lambda _: False),
            SimpleNamespace(is_due=lambda _: False, aspects=lambda *_: (), has_news=lambda *_: False),
            None,
            None,
            SimpleNamespace(drop_objects=nothing, pending=lambda _: False, next_look_seconds=lambda *_: 60.0),
            SimpleNamespace(prune_seconds=60.0, refused_retry_seconds=60.0),
            lambda: False,
        )
        reconciler = TopicReconciler(*cast(Any, parts))

        async def ensure(_: ObjectKey, body: Body) -> Body:
            return body

        async def advance(_: object) -> Outcome:
            return Outcome()

        # What was done is of no matter here, but that it was.
        vars(reconciler).update(
            _finalizer=SimpleNamespace(ensure=ensure),
            _courses=SimpleNamespace(require_same_cluster=nothing, advance=advance),
        )
        memory = reconciler.memories.of(KEY, kube.body)
        memory.segments_shown = TOPIC, PULSAR
        self.metrics.segments.show_undrained(TOPIC, PULSAR, [4_000])
        self.metrics.segments.show_terminated(TOPIC, PULSAR, 1, replaced=1)
        await reconciler.reconcile(KEY)

    def _make(self, key: ObjectKey, store: StatusStore, memory: TopicMemory) -> SimpleNamespace:
        if self.ends is not None:
            raise self.ends
        state = SimpleNamespace(layout=None)
        shown = SimpleNamespace(state=state, status=store.status, body=store.body, write_status=store.write)
        spec = SimpleNamespace(paused=self.paused)
        return SimpleNamespace(key=key, store=shown, memory=memory, spec=spec, generation=1, topic=TOPIC)


class Kubernetes:
    """Holds one topic."""

    def __init__(self) -> None:
        metadata = {"namespace": "shop", "name": "orders", "uid": "u", "generation": 1, "resourceVersion": "1"}
        self.body: Body = {"metadata": metadata, "spec": {"topic": "acme/shop/orders"}, "status": {}}

    async def merge_patch(
        self, resource: Resource, namespace: str, name: str, patch: Body, *, subresource: str
    ) -> Body:
        assert (resource, namespace, name, subresource) == (TOPICS, "shop", "orders", "status")
        metadata = {**self.body["metadata"], "resourceVersion": "2"}
        return {**self.body, "metadata": metadata, "status": patch["status"]}


@pytest.mark.parametrize(
    "world",
    [
        World(paused=True),
        World(NameRefused("ClaimLost", "another installation has it")),
        World(Stuck(Standing.stuck("NotAllowed", "the connection does not let it"))),
    ],
    ids=["paused", "its claim is lost", "stalled"],
)
async def test_nothing_is_shown_of_a_topic_that_nobody_looks_at(world: World) -> None:
    await world.reconcile()
    assert world.shown() == [None, None, None]
    assert world.replaced() == 1, "a counter that went and came would be taken for new events"


@pytest.mark.parametrize(
    "world",
    [World(), World(Stuck(Standing.working("ConnectionDown", "it does not answer")))],
    ids=["well", "waiting for its brokers"],
)
async def test_the_last_look_is_shown_until_the_next(world: World) -> None:
    await world.reconcile()
    assert world.shown() == [1, 4, 1]
