"""What a decision leads to beside what people ask for, on the brokers and API server of the simulation (R10, R30)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from scalable_topics.layout import SegmentChange
from scalable_topics_operator.autoscale.decision import Decision, Finding, Merge, Reason, Rebucket, Rule, Split
from scalable_topics_operator.cluster.object_key import ObjectKey, key_of
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.automatic_changes import AutomaticChanges
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.operations.context import TopicIntent
from scalable_topics_operator.operations.journal import Action, Request
from scalable_topics_operator.operations.requests import SplitRequest
from scalable_topics_operator.operations.reshape import advance_reshape, open_reshape
from scalable_topics_operator.telemetry.scaling_metrics import ScalingMetrics
from tests.simulation.model_store import TopicObject
from tests.simulation.operator_process import OperatorProcess
from tests.simulation.run import Run
from tests.simulation.world import HOME, World

BODY: dict[str, Any] = {
    "metadata": {"name": "orders", "namespace": "team", "uid": "u", "resourceVersion": "1", "generation": 1}
}


class Bench:
    """A topic of the simulation, what people ask for meanwhile, and how far the operations came."""

    def __init__(self, run: Run, body: TopicObject) -> None:
        self.run, self.body = run, body
        self.cache = ObjectCache()
        self.cache.observe(TOPICS, BODY)
        self.waiting: list[str] = []
        self.asked_after = 99
        process = OperatorProcess(run.world, "p9", HOME, 9)
        self.work: Any = SimpleNamespace(
            ctx=process._context(body),
            key=key_of(TOPICS, BODY),
            generation=1,
            request=Request("ScalableTopic", "orders", body.uid),
            topic=body.topic,
        )
        self.work.store = self.work.ctx.store
        metrics = ScalingMetrics(CollectorRegistry(), per_segment=False)
        queue: Any = self
        scaler: Any = None
        self.changes = AutomaticChanges(self.cache, queue, scaler, metrics, 60.0, 30.0)

    def pending(self, topic: ObjectKey) -> list[str]:
        """What an OperationQueue answers."""
        return self.waiting

    async def change(self, work: Any, change: SegmentChange, request: Request, reason: str) -> Action:
        """Take the change to its end; somebody may ask for something right after."""
        await open_reshape(work.ctx, change, request, reason=reason)
        while (operation := work.store.state.operation) is not None:
            await advance_reshape(work.ctx, operation)
        self.asked_after -= 1
        if self.asked_after == 0:
            self.waiting.append("a merge")
        ended: Action = work.store.state.actions[-1]
        return ended

    async def act(self, action: Split | Merge | Rebucket) -> bool:
        """Carry out a decision."""
        return await self.changes.act(self.work, Decision(action, (Finding(Rule.LOAD_SPLIT, True, "x", "why"),)), self)

    @property
    def kinds(self) -> list[str]:
        """What was done since the creation."""
        return [action.kind for action in self.body.state.actions[1:]]

    @property
    def buckets(self) -> list[int]:
        layout = self.body.state.layout
        return [] if layout is None else [segment.buckets for segment in layout.active]


async def _bench(*splits: int) -> Bench:
    run = Run(World())
    body = run.world.declare(TopicIntent(initial_segments=3))
    await run.settle()
    for segment_id in splits:
        run.world.ask(body, SplitRequest(segment_id))
    await run.settle()
    return Bench(run, body)


async def test_what_was_asked_for_meanwhile_goes_before_an_automatic_change() -> None:
    """Hazard B3."""
    bench = await _bench()
    bench.waiting.append("a merge")
    assert await bench.act(Split(0, 2, Reason.MSG_RATE_IN)), "it is no failure: the next decision sees to it"
    assert bench.kinds == []
    bench.waiting.clear()
    bench.cache.observe(TOPICS, {"metadata": {**BODY["metadata"], "resourceVersion": "2", "generation": 2}})
    assert await bench.act(Split(0, 2, Reason.MSG_RATE_IN)), "nor that the spec has changed"
    assert bench.kinds == []


async def test_between_the_changes_of_one_decision_comes_what_was_asked_for() -> None:
    """Hazards B3 and A2-26434d: all of them are done unless somebody asks for something else."""
    bench = await _bench()
    assert await bench.act(Rebucket((0, 1, 2), 4, Reason.AT_MAX_SEGMENTS))
    assert bench.buckets == [4, 4, 4]
    bench.asked_after = 1
    assert await bench.act(Rebucket((3, 4, 5), 8, Reason.AT_MAX_SEGMENTS))
    assert bench.buckets == [8, 4, 4]


async def test_a_decision_on_a_layout_that_has_changed_is_refused_and_told_of() -> None:
    """Hazard B3: it was made before somebody split the segment, and its ids are planned on what there is now."""
    bench = await _bench(0)
    assert not await bench.act(Split(0, 2, Reason.MSG_RATE_IN))
    assert bench.kinds == ["Split"]
    assert "AutoSplitFailed: segment 0 is sealed; only active segments can be split" in bench.run.world.events
    assert await bench.act(Split(1, 2, Reason.MSG_RATE_IN))
    assert bench.body.state.actions[-1].children == (5, 6)


async def test_of_a_decision_that_fails_half_way_the_rest_is_left_to_the_next() -> None:
    """Hazard A1-26434b: nothing that was done is undone, and nothing is in the way."""
    bench = await _bench(1)
    assert not await bench.act(Rebucket((0, 1, 2), 4, Reason.AT_MAX_SEGMENTS))
    assert bench.kinds == ["Split", "Rebucket"]
    assert bench.body.state.operation is None
    assert await bench.act(Rebucket((2,), 4, Reason.AT_MAX_SEGMENTS))
    assert bench.kinds == ["Split", "Rebucket", "Rebucket"]
