"""Create a scalable topic, or take over one that exists (R1; pip-468 topic lifecycle).

Creation only goes forward: the claim decides who owns the name, the journaled ids are the only ones used, and
every call may be repeated, so a process that dies leaves nothing that the next one does not finish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from scalable_topics.layout import Segment, SegmentLayout, planned_initial
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.operations.claims import Judgement, Verdict
from scalable_topics_operator.operations.context import OperationContext
from scalable_topics_operator.operations.errors import (
    BackendUnavailable,
    NameRefused,
    NameTaken,
)
from scalable_topics_operator.operations.journal import (
    Action,
    Operation,
    OperationKind,
    Request,
    Result,
    Step,
)
from scalable_topics_operator.operations.journaling import new_operation, open_journal
from scalable_topics_operator.operations.migrate import (
    no_such_topic,
    open_migration,
    undo_migration,
)
from scalable_topics_operator.operations.protocols import FoundSegment, NameState
from scalable_topics_operator.operations.rebuild import (
    ID_GAP,
    next_unused_id,
)
from scalable_topics_operator.operations.recover import rebuild_from_segments, recover_unclaimed, witnesses_of
from scalable_topics_operator.operations.reshape import create_children
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase, SubscriptionState


async def establish(ctx: OperationContext, name: NameState, judgement: Judgement, request: Request) -> bool:
    """Bring a topic without a layout to one: by creating it, or by rebuilding it from its segments.

    Answers whether it was created here and now, from nothing: then all of it is as the spec says, and was read back.

    Args:
        ctx: the topic.
        name: what there is under its name.
        judgement: what that means (R1); no migration.
        request: the object that asks.

    Raises NameRefused when the name is somebody else's or the records contradict each other, Unsupported when its
    namespace cannot hold it (R24), BackendError.
    """
    match judgement.verdict:
        case Verdict.REFUSED:
            await _drop_journal(ctx)
            raise NameRefused(judgement.reason, judgement.message)
        case Verdict.FREE:
            # Without a claim there may still be segments: the claim was lost, or a deleted topic left some behind.
            found = await recover_unclaimed(ctx, request)
            if found is None:
                return False
            if ctx.declared.migrates:
                await _drop_journal(ctx)
                raise no_such_topic(ctx.topic)
            # The listing that they are from names each topic of the namespace: it is made once.
            return await _create(ctx, request, found)
        case Verdict.OURS:
            # Without a layout in the status our claim means: we died while creating, or the status was lost.
            await _recover(ctx, name, request)
            return False
        case Verdict.RECOVERABLE | Verdict.ADOPTABLE:
            await _drop_journal(ctx)
            seal = name.migrated_from is None
            properties = ctx.intent.properties if seal else None
            await ctx.backend.rewrite_claim(ctx.topic, ctx.claim, properties=properties, seal=seal)
            await _recover(ctx, name, request)
            return False
        case Verdict.MIGRATABLE:
            raise RuntimeError(f"{ctx.topic} is to be migrated, not created")
        case _:
            assert_never(judgement.verdict)


async def _recover(ctx: OperationContext, name: NameState, request: Request) -> None:
    """Rebuild a topic whose name is ours; where there is nothing to rebuild, it is made anew."""
    if await rebuild_from_segments(ctx, name, request):
        return
    if name.migrated_from is None:
        await _create(ctx, request)
        return
    # A migration that never came to its seal, and whose journal is lost: the old topic is what it was.
    survey = await ctx.backend.survey(ctx.topic) if ctx.declared.migrates else None
    if survey is None:
        await undo_migration(ctx, name.migrated_from)
        raise BackendUnavailable(f"{ctx.topic}: a migration that did not come to its seal was undone")
    await open_migration(ctx, survey, request, force=False, skipped_ids=ID_GAP)


async def _drop_journal(ctx: OperationContext) -> None:
    """Forget a creation that never had the name: nothing was made under its journal."""
    if ctx.store.state.operation is not None:
        await ctx.store.commit(replace(ctx.store.state, operation=None))


async def _create(ctx: OperationContext, request: Request, found: Sequence[FoundSegment] | None = None) -> bool:
    """Make the topic. What has been `found` of segments before it has ids in use; what is not given is listed.

    Answers whether it was begun here: what another process began may be as an older spec had it.
    """
    operation = ctx.store.state.operation
    is_begun_here = operation is None
    if operation is None:
        # The claim and the layout topic besides.
        await ctx.backend.require_fit(ctx.topic, more_topics=ctx.intent.initial_segments + 2)
        operation = await _journal_creation(ctx, request, found)
    await ctx.backend.take_claim(ctx.topic, ctx.claim, properties=ctx.intent.properties)
    try:
        await create_children(ctx, operation)
    except NameTaken as taken:
        # A client or a late call made a topic of that name. Ids are never shared (R9), so others are journaled.
        await _journal_creation(ctx, request, first_id=operation.next_segment_id)
        raise BackendUnavailable(f"{taken}; the topic is created with other segment ids") from None
    now_ms = ctx.clock.now_ms()
    layout = SegmentLayout(
        epoch=0,
        next_segment_id=operation.next_segment_id,
        segments={
            child.segment_id: Segment(child.segment_id, child.hash_range, buckets=child.buckets, created_at_ms=now_ms)
            for child in operation.children
        },
    )
    await _commit_created(ctx, layout, operation)
    return is_begun_here


async def _journal_creation(
    ctx: OperationContext, request: Request, found: Sequence[FoundSegment] | None = None, *, first_id: int = 0
) -> Operation:
    """Journal the segments to create, with ids from `first_id` and above every one ever seen."""
    if found is None:
        found = await ctx.backend.list_segments(ctx.topic)
    first_id = max(first_id, await _first_unused_id(ctx, found))
    children = planned_initial(ctx.intent.initial_segments, bucket_budget=ctx.intent.bucket_budget, first_id=first_id)
    operation = new_operation(
        ctx,
        OperationKind.CREATE,
        Step.CREATING,
        request,
        children=children,
        subscriptions=tuple(sorted(ctx.intent.subscriptions)),
        next_segment_id=first_id + len(children),
    )
    await open_journal(ctx, operation)
    ctx.opened_here.add(operation.id)
    return operation


async def _commit_created(ctx: OperationContext, layout: SegmentLayout, operation: Operation) -> None:
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
    state = replace(
        ctx.store.state,
        layout=layout,
        subscriptions=subscriptions,
        incarnation=ctx.new_incarnation(),
        clocks=Clocks.of(layout.segments.values()),
    )
    await ctx.store.commit(state.finished(action))
    ctx.opened_here.discard(operation.id)


async def _first_unused_id(ctx: OperationContext, found: Sequence[FoundSegment]) -> int:
    """0 for a fresh name; above every id ever seen where segments of an earlier life are still about (R9)."""
    records = [witness.record for witness in await witnesses_of(ctx, found)]
    return max([next_unused_id(records), *(segment.segment_id + 1 for segment in found)])
