"""What changes of a layout leave in the record, on the brokers and API server of the simulation."""

from __future__ import annotations

from dataclasses import replace

from scalable_topics.layout import TopicName, migrated_layout
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.operations.context import TopicIntent
from scalable_topics_operator.operations.journal import OperationKind, Request, Result
from scalable_topics_operator.operations.prune import delete_pruned, find_prunable, prune
from scalable_topics_operator.operations.requests import SplitRequest
from scalable_topics_operator.operations.topic_state import write_state
from tests.simulation.auditor import SETTINGS
from tests.simulation.faults import Call, Fault, FaultKind, NoFaults
from tests.simulation.model_store import TopicObject
from tests.simulation.operator_process import OperatorProcess
from tests.simulation.run import Run
from tests.simulation.world import HOME, World


class Denied(NoFaults):
    """A right to make topics is missing."""

    def at(self, call: Call) -> Fault | None:
        return Fault(FaultKind.DENIED) if call.verb == "create" else None


async def _topic(segments: int) -> tuple[Run, TopicObject]:
    """A topic just made."""
    run = Run(World())
    body = run.world.declare(TopicIntent(initial_segments=segments))
    await run.settle()
    return run, body


async def test_a_creation_lists_its_namespace_once() -> None:
    """A listing names each topic of the namespace: in one of many topics it is the longest answer of a creation."""
    run, _ = await _topic(2)
    assert [call.verb for call in run.world.calls].count("list") == 1


async def test_R9_a_creation_counts_on_from_the_ids_of_an_earlier_life() -> None:
    """What is left of it may be an empty segment of a high id, without a claim and a status."""
    run, body = await _topic(1)
    run.world.stop_writing()
    run.world.ask(body, SplitRequest(0))
    await run.settle()
    left = max(run.world.segment_topics(), key=lambda topic: topic.name)
    for topic in run.world.segment_topics():
        if topic is not left:
            run.world.drop(topic.name)
    run.world.drop(body.topic.persistent)
    run.world.wipe(body)
    await run.settle()
    layout = run.world.layout
    assert layout is not None
    assert min(layout.segments) > 2
    assert left.name not in [run.world.name_of(segment) for segment in layout.segments.values()]


async def test_a_split_that_failed_moves_no_clock() -> None:
    """Hazard A2-25980d: what was not done does not keep anything from being done."""
    run, body = await _topic(1)
    run.world.plan = Denied()
    run.world.ask(body, SplitRequest(0))
    await run.settle()
    assert [action.result for action in body.state.actions[1:]] == [Result.FAILED]
    assert body.state.clocks == Clocks()
    run.world.plan = NoFaults()
    run.world.ask(body, SplitRequest(0))
    await run.settle()
    assert [action.result for action in body.state.actions[1:]] == [Result.FAILED, Result.SUCCEEDED]
    assert body.state.clocks.split_at_ms is not None


async def test_segments_that_may_go_together_leave_in_one_write_and_the_clocks_stay() -> None:
    """Hazards A3-25668 and B8: each write more could be another leader's, and cool-downs need no parents."""
    run, body = await _topic(3)
    for segment_id in range(3):
        run.world.ask(body, SplitRequest(segment_id))
    await run.settle()
    layout, clocks = body.state.layout, body.state.clocks
    assert layout is not None
    assert len(layout.sealed) == 3
    before = len(run.world.calls)
    run.world.clock.advance(SETTINGS.settle_window_seconds + 1)
    await run.settle()
    pruned = body.state.layout
    assert pruned is not None
    assert (len(pruned.sealed), pruned.epoch) == (0, layout.epoch + 1)
    commits = [
        call for call in run.world.calls[before:] if call.verb == "commit" and f"epoch={pruned.epoch}" in call.target
    ]
    assert len(commits) == 2, "they leave the layout together, and are deleted and forgotten together"
    assert [action.kind for action in body.state.actions].count(OperationKind.PRUNE.value) == 1
    assert body.state.clocks == clocks


async def test_what_was_migrated_is_truncated_once_all_have_read_it_and_never_deleted() -> None:
    """R19, hazard B5: whoever has a cursor on an old topic counts, whether any record knows of it or not."""
    run, body = await _topic(1)
    layout = migrated_layout(TopicName("tenant", "space", "old"), 2, now_ms=0)
    broker, names = run.world.broker, []
    for number, segment in enumerate(layout.sealed):
        assert segment.topic is not None
        broker.create(segment.topic)
        broker.create_subscription(segment.topic, "old-reader", latest=False)
        broker.produce(segment.topic)
        names.append(segment.topic)
        layout = layout.with_sealed_position(number, str(broker.terminate(segment.topic)))
    broker.acknowledge(names[0], "old-reader")
    body.status = write_state(body.status, replace(body.state, layout=layout))
    body.version += 1
    ctx = OperatorProcess(run.world, "p9", HOME, 9)._context(body)
    findings = {finding.segment_id: finding.blocked_by for finding in await find_prunable(ctx)}
    assert findings == {0: "", 1: "subscription old-reader has not drained it (1 entries left)"}
    await prune(ctx, [0], Request("Retention", "orders", "uid"))
    assert await delete_pruned(ctx)
    assert body.state.deleting == ()
    assert broker.topics[names[0]].terminated, "it is there, and sealed"
