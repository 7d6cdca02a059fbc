"""What becomes of a topic whose object is deleted: released or deleted (R31, hazards C1, C10, C14)."""

from __future__ import annotations

from dataclasses import replace

from scalable_topics_operator.operations.context import OperationContext, concurrently
from scalable_topics_operator.operations.errors import ClientsAttached, TopicMissing
from scalable_topics_operator.operations.journal import OperationKind, Request
from scalable_topics_operator.operations.journaling import open_deletion
from scalable_topics_operator.operations.reshape import advance_reshape

_RESHAPES = (OperationKind.SPLIT, OperationKind.MERGE, OperationKind.REBUCKET, OperationKind.MIGRATE)


async def release(ctx: OperationContext) -> None:
    """Let go of a topic and leave its data: its claim says so, and a later object takes it over silently (R1).

    A split, merge, rebucket or migration under way is ended first. Nothing is done once the claim is not ours any more,
    or says already that it is released: somebody else may act on the segments by now. Raises BackendError.
    """
    name = await ctx.backend.read_name(ctx.topic)
    if name.claim is not None and (name.claim.resource_uid != ctx.claim.resource_uid or name.claim.released):
        return
    operation = ctx.store.state.operation
    if operation is not None and operation.kind in _RESHAPES:
        await advance_reshape(ctx, operation)
        if operation.migration is not None and ctx.store.state.layout is None:
            # Called off: the topic is what it was.
            return
    if name.claim is not None:
        await ctx.backend.rewrite_claim(ctx.topic, replace(ctx.claim, released=True))


async def delete_topic(ctx: OperationContext, request: Request, *, force: bool = False) -> None:
    """Delete every segment and then the claim, which is the last thing to go.

    Only the claim's owner deletes (hazard C14). A topic without a claim that took the place of a lost one is what
    clients made who wrote to the plain name (hazard C20); it goes with the rest. Refuses while clients are attached
    (R31), before anything is deleted, unless it is to `force` them off; once the journal says `Deleting` it only goes
    on.

    Raises ClientsAttached with who is attached, BackendError.
    """
    operation = ctx.store.state.operation
    if operation is not None and operation.migration is not None:
        await advance_reshape(ctx, operation)
    made = ctx.store.state.layout is not None
    name = await ctx.backend.read_name(ctx.topic)
    if name.exists and name.claim is None and made and not name.partitions:
        await ctx.backend.rewrite_claim(ctx.topic, ctx.claim)
    elif name.exists and (name.claim is None or name.claim.resource_uid != ctx.claim.resource_uid):
        if made:
            await ctx.report("DataLeft", f"the topic's data is left on the brokers: {ctx.topic} is not this object's")
        return
    topics = await _all_segment_topics(ctx)
    if ctx.store.state.operation is None or ctx.store.state.operation.kind is not OperationKind.DELETE:
        if not force:
            source = ctx.store.state.migrated_from
            await _refuse_while_used(ctx, [*topics, *(source.topics(ctx.topic) if source else ())])
        if ctx.store.state.layout is not None and not name.exists:
            # The claim was lost; without it another object could take the name of a half deleted topic.
            await ctx.backend.take_claim(ctx.topic, ctx.claim)
        await open_deletion(ctx, request)
    await concurrently(ctx.backend.delete_segment(topic, force=force) for topic in topics)
    await ctx.backend.delete_layout_topic(ctx.topic)
    # What was migrated goes with it.
    await ctx.backend.delete_claim(ctx.topic, force=force)


async def _all_segment_topics(ctx: OperationContext) -> list[str]:
    state = ctx.store.state
    layout = state.layout
    recorded = [
        ctx.backend.segment_topic(ctx.topic, segment)
        for segment in (layout.segments.values() if layout else ())
        if not segment.is_legacy
    ]
    found = [segment.topic for segment in await ctx.backend.list_segments(ctx.topic)]
    return sorted({*recorded, *found, *(entry.topic for entry in state.deleting)})


async def _refuse_while_used(ctx: OperationContext, topics: list[str]) -> None:
    async def clients(topic: str) -> tuple[int, int]:
        try:
            look = await ctx.backend.look(topic)
        except TopicMissing:
            return 0, 0
        return len(look.producers), look.consumers

    counts = await concurrently(clients(topic) for topic in topics)
    producers, consumers = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
    if producers or consumers:
        raise ClientsAttached(
            f"{producers} producers and {consumers} consumers are attached to the topic's segments; stop them, or set "
            "deletionPolicy: Retain to keep the data"
        )
