"""R24: what scalable topics do not work with is refused before anything is written or made."""

from __future__ import annotations

from dataclasses import replace

from scalable_topics_operator.operations.context import TopicIntent
from scalable_topics_operator.operations.protocols import SegmentLook
from scalable_topics_operator.operations.requests import MergeRequest, SplitRequest
from tests.simulation.run import Run
from tests.simulation.world import World

REPLICATED = "namespace tenant/space is replicated to east, west"


async def test_a_topic_is_not_made_in_an_unfit_namespace_until_that_is_fit() -> None:
    """Hazard A6-25601."""
    run = Run(World())
    run.world.broker.unfit = REPLICATED
    body = run.world.declare(TopicIntent(initial_segments=2))
    await run.settle()
    assert REPLICATED in body.standing
    assert body.state.layout is None
    assert body.state.operation is None
    assert not run.world.broker.topics
    run.world.broker.unfit = ""
    await run.settle()
    assert not body.standing
    assert body.state.layout is not None


async def test_nothing_is_split_or_merged_in_a_namespace_that_has_become_unfit() -> None:
    """Hazard A6-25601."""
    run = Run(World())
    body = run.world.declare(TopicIntent(initial_segments=2))
    await run.settle()
    before = body.state.layout
    run.world.broker.unfit = REPLICATED
    names = [run.world.ask(body, wants) for wants in (SplitRequest(0), MergeRequest((0, 1)))]
    await run.settle()
    assert body.state.layout == before
    assert all(REPLICATED in body.outcomes[name] for name in names)
    assert not body.standing, "what it has is looked after all the same"


async def test_a_segment_with_an_open_transaction_is_not_sealed() -> None:
    run = Run(World())
    body = run.world.declare(TopicIntent(initial_segments=1))
    await run.settle()
    broker, before = run.world.broker, body.state.layout
    look = broker.look

    def with_transactions(name: str) -> SegmentLook:
        return replace(look(name), open_transactions=3)

    broker.look = with_transactions  # type: ignore[method-assign]
    name = run.world.ask(body, SplitRequest(0))
    await run.settle()
    assert body.state.layout == before
    assert "3 open transactions" in body.outcomes[name]
