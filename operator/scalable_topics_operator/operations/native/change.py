"""Split, merge and rebucket by the brokers that own the layout: journaled, asked for, and told by the layout.

A call whose outcome is not known is never repeated blindly: the layout says whether it was done. Asking again is safe
then, since brokers change a segment once at most, and ids are never used again.
"""

from __future__ import annotations

from dataclasses import replace

from scalable_topics.layout import CreatedBy, PlannedSegment, Segment, SegmentChange, SegmentLayout
from scalable_topics_operator.operations.errors import BackendRefused, RequestRefused, TopicMissing
from scalable_topics_operator.operations.journal import Operation, OperationKind, Request, Result, Step
from scalable_topics_operator.operations.journaling import close_journal, new_operation, open_journal
from scalable_topics_operator.operations.native.context import NativeContext
from scalable_topics_operator.operations.native.observe import observe
from scalable_topics_operator.operations.requests import MergeRequest, ReshapeRequest, SplitRequest

_KINDS = {
    OperationKind.SPLIT: CreatedBy.SPLIT,
    OperationKind.MERGE: CreatedBy.MERGE,
    OperationKind.REBUCKET: CreatedBy.REBUCKET,
}


def require_brokers_can(request: ReshapeRequest) -> None:
    """Refuse what only an operator that owns the layout can do. Raises RequestRefused."""
    if isinstance(request, SplitRequest) and (request.at is not None or request.into != 2):
        raise RequestRefused(
            "Unsupported", "the brokers of the Native backend split a segment in two halves only; leave at and into out"
        )
    if isinstance(request, MergeRequest) and len(request.segment_ids) != 2:
        raise RequestRefused(
            "Unsupported", "the brokers of the Native backend merge two segments at a time; ask for one pair"
        )


async def open_change(ctx: NativeContext, change: SegmentChange, request: Request, *, reason: str = "") -> None:
    """Journal a planned split, merge or rebucket; `reason` says why where nobody asked for it."""
    operation = new_operation(
        ctx,
        OperationKind(change.kind.value),
        Step.CALLING,
        request,
        parents=change.parent_ids,
        children=change.children,
        # Ids are the brokers' to give: these are what they give if nobody else is before us.
        next_segment_id=max(change.child_ids) + 1,
        reason=reason,
    )
    await open_journal(ctx, operation)


async def advance_change(ctx: NativeContext, operation: Operation) -> None:
    """Take an open split, merge or rebucket to its end, whoever opened it.

    Raises BackendUnavailable while the brokers do not answer; the same call later goes on. A refusal ends it as failed.
    """
    children = await _outcome(ctx, operation)
    if children is None:
        why = ""
        try:
            await _call(ctx, operation)
        except BackendRefused as refusal:
            why = str(refusal)
        children = await _outcome(ctx, operation)
        if children is None:
            await close_journal(
                ctx, operation, Result.FAILED, why or "the brokers say that it is done, but their layout does not"
            )
            return
    await close_journal(ctx, replace(operation, children=children), Result.SUCCEEDED)


async def _outcome(ctx: NativeContext, operation: Operation) -> tuple[PlannedSegment, ...] | None:
    """The segments it made; None while it has not happened. Raises TopicMissing."""
    if await observe(ctx) is None:
        raise TopicMissing(f"{ctx.topic}: the brokers have no such scalable topic any more")
    layout = ctx.store.state.layout
    assert layout is not None
    made = [made_for(layout, planned, operation) for planned in operation.children]
    if any(one is None for one in made):
        return None
    return tuple(PlannedSegment(one.segment_id, one.hash_range, one.buckets, one.merge_depth) for one in made if one)


def made_for(layout: SegmentLayout, planned: PlannedSegment, operation: Operation) -> Segment | None:
    """The segment that a change made for a planned one: of its range and newer than all that were there. Pure."""
    first_id = min(child.segment_id for child in operation.children)
    found = [
        segment
        for segment in layout.segments.values()
        if segment.segment_id >= first_id
        and segment.hash_range == planned.hash_range
        and segment.created_by is _KINDS[operation.kind]
        and (operation.kind is not OperationKind.REBUCKET or segment.buckets == planned.buckets)
    ]
    return min(found, key=lambda segment: segment.segment_id, default=None)


async def _call(ctx: NativeContext, operation: Operation) -> None:
    match operation.kind:
        case OperationKind.SPLIT:
            await ctx.backend.split(ctx.topic, operation.parents[0])
        case OperationKind.MERGE:
            await ctx.backend.merge(ctx.topic, operation.parents[0], operation.parents[1])
        case OperationKind.REBUCKET:
            await ctx.backend.rebucket(ctx.topic, operation.parents[0], operation.children[0].buckets)
        case _:
            raise ValueError(f"{operation.kind} is not a change of a layout")
