"""Create a scalable topic, or take over one that exists (R1, R11; pip-468 topic lifecycle).

Creation only goes forward: the claim decides who owns the name, the journaled ids are the only ones used, and
every call may be repeated, so a process that dies leaves nothing that the next one does not finish.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from scalable_topics.layout import Segment, SegmentLayout, planned_initial
from scalable_topics_operator.operations.claims import Judgement, Verdict
from scalable_topics_operator.operations.context import OperationContext, concurrently
from scalable_topics_operator.operations.errors import BackendRefused, TopicMissing
from scalable_topics_operator.operations.journal import (
    Action,
    Operation,
    OperationKind,
    Request,
    Result,
    Step,
    SubscriptionPhase,
    SubscriptionState,
    TopicState,
    new_operation_id,
)
from scalable_topics_operator.operations.protocols import FoundSegment
from scalable_topics_operator.operations.rebuild import Rebuilt, Witness, rebuild
from scalable_topics_operator.operations.reshape import create_children


class NameRefused(BackendRefused):
    """The name cannot be had; `reason` is the condition's reason."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


async def establish(ctx: OperationContext, judgement: Judgement, request: Request) -> None:
    """Bring a topic without a layout to one: by creating it, or by rebuilding it from its segments.

    Args:
        ctx: the topic.
        judgement: what the name's state means (R1).
        request: the object that asks.

    Raises NameRefused when the name is somebody else's or the records contradict each other, BackendError.
    """
    match judgement.verdict:
        case Verdict.REFUSED:
            if ctx.store.state.operation is not None:
                # The name was lost before the claim: nothing was made under this journal.
                await ctx.store.commit(replace(ctx.store.state, operation=None))
            raise NameRefused(judgement.reason, judgement.message)
        case Verdict.FREE:
            await _create(ctx, request)
        case Verdict.OURS:
            # Without a layout in the status our claim means: we died while creating, or the status was lost.
            if not await _rebuild(ctx, request):
                await _create(ctx, request)
        case Verdict.RECOVERABLE | Verdict.ADOPTABLE:
            await ctx.backend.rewrite_claim(ctx.topic, ctx.claim, properties=ctx.intent.properties)
            if not await _rebuild(ctx, request):
                await _create(ctx, request)
        case _:
            assert_never(judgement.verdict)


async def _create(ctx: OperationContext, request: Request) -> None:
    state = ctx.store.state
    operation = state.operation
    if operation is None:
        first_id = await _first_unused_id(ctx)
        children = planned_initial(
            ctx.intent.initial_segments, bucket_budget=ctx.intent.bucket_budget, first_id=first_id
        )
        operation = Operation(
            id=new_operation_id(),
            kind=OperationKind.CREATE,
            step=Step.CREATING,
            term=ctx.term,
            parents=(),
            children=children,
            subscriptions=tuple(sorted(ctx.intent.subscriptions)),
            started_at=ctx.timestamp(),
            request=request,
            next_segment_id=first_id + len(children),
        )
        await ctx.store.commit(replace(state, operation=operation))
        ctx.opened_here.add(operation.id)
    await ctx.backend.take_claim(ctx.topic, ctx.claim, properties=ctx.intent.properties)
    await create_children(ctx, operation)
    now_ms = ctx.clock.now_ms()
    layout = SegmentLayout(
        epoch=0,
        next_segment_id=operation.next_segment_id,
        segments={
            child.segment_id: Segment(child.segment_id, child.hash_range, buckets=child.buckets, created_at_ms=now_ms)
            for child in operation.children
        },
    )
    await _commit_created(ctx, layout, operation, incarnation=f"{ctx.claim.resource_uid}.0")


async def _commit_created(
    ctx: OperationContext, layout: SegmentLayout, operation: Operation, *, incarnation: str
) -> None:
    action = Action(
        id=operation.id,
        kind=OperationKind.CREATE.value,
        at=ctx.timestamp(),
        epoch=layout.epoch,
        parents=(),
        children=tuple(child.segment_id for child in operation.children),
        result=Result.SUCCEEDED,
        request=operation.request,
    )
    subscriptions = {
        name: SubscriptionState(
            name,
            SubscriptionPhase.ACTIVE if name in operation.subscriptions else SubscriptionPhase.CREATING,
            declared.latest,
            declared.delete_with_entry,
        )
        for name, declared in ctx.intent.subscriptions.items()
    }
    state = replace(ctx.store.state, layout=layout, subscriptions=subscriptions, incarnation=incarnation)
    await ctx.store.commit(state.finished(action))
    ctx.opened_here.discard(operation.id)


async def _first_unused_id(ctx: OperationContext) -> int:
    """0 for a fresh name; above every id ever seen where segments of an earlier life are still about (R9)."""
    found = await ctx.backend.list_segments(ctx.topic)
    return max((segment.segment_id + 1 for segment in found), default=0)


async def _rebuild(ctx: OperationContext, request: Request) -> bool:
    """Rebuild the layout from the segments; False when there is nothing to rebuild from.

    Raises NameRefused when the segments contradict each other.
    """
    state = ctx.store.state
    if state.operation is not None and state.operation.kind is OperationKind.CREATE:
        return False
    witnesses = await _witnesses(ctx)
    if not witnesses:
        return False
    rebuilt = rebuild(witnesses)
    if rebuilt.problem:
        raise NameRefused("CannotRebuild", rebuilt.problem)
    if rebuilt.layout is None:
        await concurrently(ctx.backend.delete_segment(topic, force=True) for topic in rebuilt.discard)
        return False
    await ctx.store.commit(_rebuilt_state(ctx, rebuilt, rebuilt.layout, request))
    await concurrently(ctx.backend.delete_segment(topic, force=True) for topic in rebuilt.discard)
    await ctx.backend.rewrite_claim(ctx.topic, ctx.claim, properties=ctx.intent.properties)
    await ctx.report(
        "LayoutRebuilt",
        f"the layout was rebuilt from {len(witnesses)} segments: {len(rebuilt.layout.active)} active, epoch "
        f"{rebuilt.layout.epoch}",
        warning=False,
    )
    return True


def _rebuilt_state(ctx: OperationContext, rebuilt: Rebuilt, layout: SegmentLayout, request: Request) -> TopicState:
    unfinished = rebuilt.unfinished
    operation = None
    if unfinished is not None:
        operation = Operation(
            id=unfinished.operation_id,
            kind=OperationKind(unfinished.created_by.value),
            step=Step.SEALING,
            term=ctx.term,
            parents=unfinished.parents,
            children=unfinished.children,
            subscriptions=(),
            started_at=ctx.timestamp(),
            request=request,
            next_segment_id=layout.next_segment_id,
        )
    return replace(
        ctx.store.state,
        layout=layout,
        operation=operation,
        incarnation=f"{ctx.claim.resource_uid}.{ctx.clock.now_ms()}",
    )


async def _witnesses(ctx: OperationContext) -> list[Witness]:
    async def witness(found: FoundSegment) -> Witness | None:
        try:
            record = await ctx.backend.read_record(found.topic)
            if record is None:
                return None
            look = await ctx.backend.look(found.topic)
        except TopicMissing:
            return None
        return Witness(record, found.topic, look.terminated, look.last_confirmed, look.entries)

    found = await ctx.backend.list_segments(ctx.topic)
    return [seen for seen in await concurrently(witness(segment) for segment in found) if seen is not None]
