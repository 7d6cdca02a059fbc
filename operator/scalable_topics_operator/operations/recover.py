"""Take back a topic whose record was lost, or restored from a backup (R1, R11, R12).

It comes from its claim, its segments, and what it was migrated from; `rebuild` decides what these make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scalable_topics.layout import CreatedBy, SegmentLayout
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.operations.claims import why_lost
from scalable_topics_operator.operations.context import OperationContext, concurrently
from scalable_topics_operator.operations.errors import (
    NameRefused,
    TopicMissing,
)
from scalable_topics_operator.operations.journal import (
    Operation,
    OperationKind,
    Request,
    Result,
    Step,
    operation_segments,
)
from scalable_topics_operator.operations.migrate import (
    begin_again_sealed,
)
from scalable_topics_operator.operations.migrated_from import MigratedFrom, Migration
from scalable_topics_operator.operations.protocols import FoundSegment, NameState
from scalable_topics_operator.operations.rebuild import (
    Rebuilt,
    Witness,
    legacy_record,
    next_unused_id,
    outdated,
    rebuild,
)
from scalable_topics_operator.operations.seal import seal_segment
from scalable_topics_operator.operations.topic_state import TopicState


async def require_claim(ctx: OperationContext) -> NameState:
    """What exists under the plain name. Raises NameRefused when another object has claimed it (R1)."""
    name = await ctx.backend.read_name(ctx.topic)
    lost = why_lost(name, ctx.claim)
    if lost:
        raise NameRefused("ClaimLost", lost)
    return name


async def look_or_take_back(ctx: OperationContext, request: Request) -> NameState | None:
    """What exists under the name of a topic without a layout; to be asked before anything else of such a topic.

    None where nothing is to be decided: its journal says how to go on, or it was taken back from its segments.
    Raises NameRefused, BackendError.
    """
    operation = ctx.store.state.operation
    if operation is not None and operation.migration is not None:
        if operation.id not in ctx.opened_here:
            await _rebuild_if_migrated(ctx, operation, operation.migration, request)
        return None
    name = await ctx.backend.read_name(ctx.topic)
    if name.exists and name.claim is None and await _recover_migrated(ctx, name, request):
        return None
    return name


async def _recover_migrated(ctx: OperationContext, name: NameState, request: Request) -> bool:
    """Take a migrated topic back whose status is lost, and whose old topic lost its claim (R1, R11).

    To be asked where an ordinary topic has the name; answers whether it was such a one.
    """
    witnesses = await witnesses_of(ctx, await ctx.backend.list_segments(ctx.topic))
    ours = [
        one
        for one in witnesses
        if one.record.created_by == CreatedBy.MIGRATE.value and one.record.claim.shares_installation(ctx.claim)
    ]
    if not ours:
        return False
    source = MigratedFrom(name.partitions, ctx.clock.now_ms())
    is_sealed = any(one.terminated for one in await _legacy_witnesses(ctx, source))
    ended = [action for action in ctx.store.state.actions if action.result is not Result.SUCCEEDED]
    called_off = {child for action in ended for child in action.children}
    # Clients were told of what was written to: then the seals have come undone.
    was_told = any((one.entries or one.terminated) and one.record.segment_id not in called_off for one in ours)
    if not is_sealed and not was_told:
        return False
    await ctx.backend.take_over(ctx.topic, ctx.claim, source)
    return await rebuild_from_segments(ctx, replace(name, claim=ctx.claim, migrated_from=source), request)


async def rebuild_if_outdated(ctx: OperationContext, request: Request, *, listing_age_seconds: float) -> bool:
    """Rebuild a layout that is older than its segments: the status was restored from a backup (R11).

    Acting on it would repeat what was done since, with the same ids (R9). To be asked before anything else is done by
    a process that has not seen the topic yet; answers whether the layout was rebuilt.

    Raises NameRefused when the segments contradict each other, or when another object has claimed the topic: another
    Kubernetes cluster may have adopted it while this one was away, and newer segments are that one's. BackendError.
    """
    layout = ctx.store.state.layout
    if layout is None:
        return False
    name = await require_claim(ctx)
    uncommitted = _uncommitted(ctx.store.state.operation)
    found = await ctx.backend.list_segments(ctx.topic, max_age_seconds=listing_age_seconds)
    if not any(one.segment_id >= layout.next_segment_id or one.segment_id in uncommitted for one in found):
        return False
    witnesses = await witnesses_of(ctx, found)
    if not outdated(layout.next_segment_id, uncommitted, witnesses):
        unused = next_unused_id([witness.record for witness in witnesses])
        if unused > layout.next_segment_id:
            # An operation that the record has forgotten left them behind: their ids are not given out again (R9).
            await ctx.store.commit(replace(ctx.store.state, layout=replace(layout, next_segment_id=unused)))
        return False
    await ctx.report("RecordOutdated", "the status is older than the topic's segments; the layout is rebuilt from them")
    return await rebuild_from_segments(ctx, name, request)


async def _rebuild_if_migrated(
    ctx: OperationContext, operation: Operation, migration: Migration, request: Request
) -> bool:
    """Rebuild a topic whose status says that it is being migrated, but that has been already: the status was restored
    from a backup (R11). To be asked by a process that has not begun the migration itself; answers whether it was
    rebuilt.

    Raises NameRefused, BackendError.
    """
    name = await require_claim(ctx)
    witnesses = await witnesses_of(ctx, await ctx.backend.list_segments(ctx.topic))
    if not outdated(operation.next_segment_id, _uncommitted(operation), witnesses):
        if operation.step is Step.SEALING:
            return False
        # Nobody else seals what is migrated: a topic that was sealed before is not.
        legacy = await _legacy_witnesses(ctx, migration.source)
        if not any(witness.terminated for witness in legacy):
            return False
    return await rebuild_from_segments(
        ctx, replace(name, migrated_from=name.migrated_from or migration.source), request
    )


def _is_creating(operation: Operation | None, witnesses: Sequence[Witness]) -> bool:
    """Whether a creation is under way; not when its journal is older than the segments."""
    if operation is None or operation.kind is not OperationKind.CREATE:
        return False
    return not outdated(operation.next_segment_id, _uncommitted(operation), witnesses)


def _uncommitted(operation: Operation | None) -> Sequence[int]:
    """Segments that no client writes to yet, as the journal has it: announced ones are connected to and no more."""
    if operation is None or operation.step not in (Step.CREATING, Step.ANNOUNCING, Step.ROLLING_BACK):
        return ()
    return operation_segments(operation)


async def recover_unclaimed(ctx: OperationContext, request: Request) -> Sequence[FoundSegment] | None:
    """Take a topic back whose claim was lost with its status (R1).

    Answers None if it was; else the segments that there are, from a listing made now: there is nothing to take back.
    Raises NameRefused when the segments are another installation's or contradict each other.
    """
    found = await ctx.backend.list_segments(ctx.topic)
    witnesses = await witnesses_of(ctx, found)
    if not any(witness.entries for witness in witnesses) or _is_creating(ctx.store.state.operation, witnesses):
        return found
    owner = max(witnesses, key=lambda witness: witness.record.segment_id).record.claim
    if not owner.shares_installation(ctx.claim):
        raise NameRefused(
            "ClaimedElsewhere",
            f"segments of ScalableTopic {owner.resource_namespace}/{owner.resource_name} of another operator "
            "installation hold messages under this name, and its claim is gone; delete them or choose another name",
        )
    await ctx.backend.take_claim(ctx.topic, ctx.claim, properties=ctx.intent.properties)
    rebuilt = await rebuild_from_segments(ctx, await ctx.backend.read_name(ctx.topic), request)
    return None if rebuilt else found


async def rebuild_from_segments(ctx: OperationContext, name: NameState, request: Request) -> bool:
    """Rebuild the layout from the segments, and from the old topics of a migrated one; False when there is nothing to
    rebuild from.

    Raises NameRefused when the segments contradict each other.
    """
    witnesses = await witnesses_of(ctx, await ctx.backend.list_segments(ctx.topic))
    legacy = await _legacy_witnesses(ctx, name.migrated_from) if name.migrated_from is not None else []
    witnesses = [*legacy, *witnesses]
    if not witnesses or _is_creating(ctx.store.state.operation, witnesses):
        return False
    rebuilt = rebuild(witnesses)
    if rebuilt.problem:
        raise NameRefused("CannotRebuild", rebuilt.problem)
    if rebuilt.layout is None:
        # What a creation left behind is empty; drift repair sweeps it once other ids are in use (R9).
        return False
    if rebuilt.layout.is_synthetic and rebuilt.unfinished is None:
        if name.migrated_from is not None and any(witness.terminated for witness in legacy):
            first_id = rebuilt.layout.next_segment_id
            await begin_again_sealed(ctx, name.migrated_from, request, first_child_id=first_id)
            return True
        if not ctx.declared.migrates:
            await concurrently(ctx.backend.delete_segment(topic, force=True) for topic in rebuilt.discard)
        # Else they keep their ids from being given out again (R9), until drift repair sweeps them.
        return False
    await concurrently(_carry_over(ctx, topic, missing) for topic, missing in rebuilt.carry_over.items())
    await ctx.store.commit(_rebuilt_state(ctx, rebuilt, rebuilt.layout, name.migrated_from, request))
    await concurrently(ctx.backend.delete_segment(topic, force=True) for topic in rebuilt.discard)
    sealed = not rebuilt.layout.is_synthetic
    await ctx.backend.rewrite_claim(ctx.topic, ctx.claim, properties=ctx.intent.properties, seal=sealed)
    await _close_reopened(ctx)
    await ctx.report(
        "LayoutRebuilt",
        f"the layout was rebuilt from {len(witnesses)} segments: {len(rebuilt.layout.active)} active, epoch "
        f"{rebuilt.layout.epoch}",
        warning=False,
    )
    return True


async def _carry_over(ctx: OperationContext, segment_topic: str, subscriptions: frozenset[str]) -> None:
    try:
        await ctx.backend.ensure_cursors(segment_topic, sorted(subscriptions))
    except TopicMissing:
        # Drift repair makes it again.
        return


async def _close_reopened(ctx: OperationContext) -> None:
    """Seal again what took writes beside its children when it was found (R14)."""
    layout = ctx.store.state.layout
    for segment in layout.sealed if layout else ():
        if layout is None or segment.sealed_position is not None:
            continue
        seal = await seal_segment(ctx, ctx.backend.segment_topic(ctx.topic, segment), is_written_to=True)
        if seal is not None:
            layout = layout.with_sealed_position(segment.segment_id, str(seal.position))
    if layout != ctx.store.state.layout:
        await ctx.store.commit(replace(ctx.store.state, layout=layout))


def _rebuilt_state(
    ctx: OperationContext, rebuilt: Rebuilt, layout: SegmentLayout, source: MigratedFrom | None, request: Request
) -> TopicState:
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
            # Some of the old topics are sealed: there is no way back (R8).
            migration=Migration(source, force=True) if source is not None and layout.is_synthetic else None,
        )
    return replace(
        ctx.store.state,
        layout=None if layout.is_synthetic else layout,
        operation=operation,
        migrated_from=None if layout.is_synthetic else source,
        clocks=Clocks.of(layout.segments.values()),
        deleting=(),
        incarnation=ctx.new_incarnation(),
    )


async def _legacy_witnesses(ctx: OperationContext, source: MigratedFrom) -> list[Witness]:
    """The topics that a migrated one was made of, as its first segments."""

    async def witness(segment_id: int, topic: str) -> Witness | None:
        try:
            look = await ctx.backend.look(topic)
        except TopicMissing:
            return None
        record = legacy_record(segment_id, source, ctx.claim)
        return Witness(record, topic, look.terminated, look.last_confirmed, look.entries, look.counting, is_legacy=True)

    found = await concurrently(witness(number, topic) for number, topic in enumerate(source.topics(ctx.topic)))
    return [seen for seen in found if seen is not None]


async def witnesses_of(ctx: OperationContext, found: Sequence[FoundSegment]) -> list[Witness]:
    """What the brokers tell of segments; those without a record, or gone, are left out. Raises BackendError."""

    async def witness(found: FoundSegment) -> Witness | None:
        try:
            record = await ctx.backend.read_record(found.topic)
            if record is None:
                return None
            look = await ctx.backend.look(found.topic)
        except TopicMissing:
            return None
        return Witness(record, found.topic, look.terminated, look.last_confirmed, look.entries, look.counting)

    return [seen for seen in await concurrently(witness(segment) for segment in found) if seen is not None]
