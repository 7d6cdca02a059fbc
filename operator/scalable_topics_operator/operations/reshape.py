"""Split, merge, rebucket rollover and migration: one step list over a journal (DESIGN §7, pip-468 split and merge
protocol, pip-475 §2.4).

Open the journal; create the children with every cursor at earliest; announce the seal; point of no return; seal the
parents and verify it; settle what producers are in doubt about; carry over cursors made meanwhile; commit the layout
and publish it. Every step may be run again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from scalable_topics.layout import (
    CreatedBy,
    PlannedSegment,
    Segment,
    SegmentChange,
    SegmentLayout,
)
from scalable_topics_operator.operations.announce import announce, is_announced, publish, settle_tail, until_quiet
from scalable_topics_operator.operations.context import OperationContext, alongside, concurrently
from scalable_topics_operator.operations.errors import BackendRefused, TopicMissing, Unsupported
from scalable_topics_operator.operations.journal import Operation, OperationKind, Request, Result, Step
from scalable_topics_operator.operations.journaling import new_operation
from scalable_topics_operator.operations.migrate import (
    begin_migration,
    check_migration,
    give_notice,
    migrated_state,
    undo_migration,
)
from scalable_topics_operator.operations.protocols import Inheritance, SegmentRecord, SegmentSetup
from scalable_topics_operator.operations.seal import Seal, seal_segment

_CREATED_BY: Mapping[OperationKind, CreatedBy] = {
    OperationKind.CREATE: CreatedBy.CREATE,
    OperationKind.SPLIT: CreatedBy.SPLIT,
    OperationKind.MERGE: CreatedBy.MERGE,
    OperationKind.REBUCKET: CreatedBy.REBUCKET,
    OperationKind.MIGRATE: CreatedBy.MIGRATE,
}


async def open_reshape(ctx: OperationContext, change: SegmentChange, request: Request, *, reason: str = "") -> None:
    """Journal a planned split, merge or rebucket (R8, R9); `reason` says why where nobody asked for it.

    Discovers the subscriptions first: those declared and those found on the parents (R16). Raises BackendError
    when the parents cannot be read, Unsupported when the topic uses what does not survive it (R24), and then nothing
    was written.
    """
    state = ctx.store.state
    layout = _layout(ctx)
    subscriptions, _ = await alongside(
        discover_subscriptions(ctx, [layout.segment(parent) for parent in change.parent_ids]),
        ctx.backend.require_fit(ctx.topic, more_topics=len(change.children)),
    )
    reserved = layout.reserve(change)
    operation = new_operation(
        ctx,
        OperationKind(change.kind.value),
        Step.CREATING,
        request,
        parents=change.parent_ids,
        children=change.children,
        subscriptions=tuple(sorted(subscriptions)),
        next_segment_id=reserved.next_segment_id,
        reason=reason,
    )
    await ctx.store.commit(replace(state, layout=reserved, operation=operation))
    ctx.opened_here.add(operation.id)


async def advance_reshape(ctx: OperationContext, operation: Operation) -> None:
    """Take an open split, merge, rebucket or migration to its end, from whatever step it is at.

    Raises BackendUnavailable when the broker does not answer; the same call later goes on from there. A refusal
    before the seal rolls the operation back; after it the refusal is raised and nothing is undone (R8).
    """
    if operation.step is Step.CREATING:
        if operation.id not in ctx.opened_here:
            operation = await _turn_back(ctx, operation, Result.ROLLED_BACK, "the operator restarted before the seal")
        else:
            try:
                if operation.migration is not None:
                    await begin_migration(ctx, operation.migration)
                await create_children(ctx, operation)
                if operation.migration is not None:
                    await give_notice(ctx, operation.migration)
                    await check_migration(ctx, operation.migration)
            except BackendRefused as refusal:
                operation = await _turn_back(ctx, operation, Result.FAILED, str(refusal))
            else:
                operation = replace(operation, step=Step.ANNOUNCING, announcements=1)
                await ctx.store.commit(replace(ctx.store.state, operation=operation))
    if operation.step is Step.ANNOUNCING:
        operation = await _announce(ctx, operation)
    if operation.step is Step.ROLLING_BACK:
        await _roll_back(ctx, operation)
    else:
        await _seal_and_commit(ctx, operation)
    await publish(ctx)


async def _announce(ctx: OperationContext, operation: Operation) -> Operation:
    """Announce the seal and write the point of no return; a dead process's announcement is called off."""
    if operation.id not in ctx.opened_here:
        return await _turn_back(ctx, operation, Result.ROLLED_BACK, "the operator restarted before the seal")
    try:
        operation = await announce(ctx, operation)
    except BackendRefused as refusal:
        # Announcing again may have been journaled meanwhile.
        return await _turn_back(ctx, ctx.store.state.operation or operation, Result.FAILED, str(refusal))
    sealing = replace(operation, step=Step.SEALING)
    # Producers hold from here on, so they leave while the point of no return is written.
    left, _ = await alongside(
        until_quiet(ctx, sealing, _parents(ctx, operation)),
        ctx.store.commit(replace(ctx.store.state, operation=sealing)),
    )
    return await _keep(ctx, sealing, left)


async def _announced(ctx: OperationContext, operation: Operation) -> Operation:
    """The operation with its seal announced for long enough: announced again by whoever takes it over, and whenever
    the brokers kept it waiting until producers went on (R13)."""
    if is_announced(ctx, operation):
        return operation
    operation = await announce(ctx, operation)
    return await _keep(ctx, operation, await until_quiet(ctx, operation, _parents(ctx, operation)))


async def _keep(ctx: OperationContext, journaled: Operation, operation: Operation) -> Operation:
    """Journal which producers are in doubt before they are refused (R15)."""
    if operation != journaled:
        await ctx.store.commit(replace(ctx.store.state, operation=operation))
    return operation


async def create_children(ctx: OperationContext, operation: Operation) -> None:
    """Create the segments an operation makes, complete with cursors, grants, policies and schemas."""
    layout = ctx.store.state.shown_layout(ctx.topic)
    parents = [layout.segment(parent) for parent in operation.parents] if layout else []
    heirs_of = [ctx.backend.segment_topic(ctx.topic, parent) for parent in parents]
    if operation.migration is not None:
        # What a partitioned topic has, it has under its own name.
        heirs_of.insert(0, ctx.topic.persistent)
    inherited = await ctx.backend.inheritance(ctx.topic, heirs_of) if heirs_of else Inheritance()
    active_after = (len(layout.active) if layout else 0) - len(parents) + len(operation.children)
    setup = SegmentSetup(
        subscriptions=frozenset(operation.subscriptions),
        inheritance=replace(inherited, permissions=_united(inherited.permissions, ctx.intent.permissions)),
        policies=ctx.intent.policies_for(active_after),
    )
    epoch = layout.epoch + 1 if layout and operation.migration is None else 0
    now_ms = ctx.clock.now_ms()
    siblings = tuple(child.segment_id for child in operation.children)
    await concurrently(
        ctx.backend.create_segment(
            ctx.topic,
            SegmentRecord(
                segment_id=child.segment_id,
                hash_range=child.hash_range,
                parent_ids=operation.parents,
                buckets=child.buckets,
                merge_depth=child.merge_depth,
                created_at_epoch=epoch,
                created_at_ms=now_ms,
                created_by=_CREATED_BY[operation.kind].value,
                operation_id=operation.id,
                sibling_ids=siblings,
                next_segment_id=operation.next_segment_id,
                claim=ctx.claim,
            ),
            setup,
        )
        for child in operation.children
    )


async def discover_subscriptions(ctx: OperationContext, parents: list[Segment]) -> frozenset[str]:
    """Subscriptions that count: declared, and found on the parents as durable and not internal (R16).

    Raises Unsupported where a transaction is open, whose end would come behind a seal (R24).
    """

    async def found(parent: Segment) -> frozenset[str]:
        try:
            look = await ctx.backend.look(ctx.backend.segment_topic(ctx.topic, parent))
        except TopicMissing:
            return frozenset()
        if look.open_transactions:
            raise Unsupported(f"{parent} has {look.open_transactions} open transactions; scalable topics have none")
        return look.counting

    return _counting(ctx, await concurrently(found(parent) for parent in parents))


def _counting(ctx: OperationContext, on_parents: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset(ctx.subscriptions).union(*on_parents) - ctx.store.state.not_discovered


async def _seal_and_commit(ctx: OperationContext, operation: Operation) -> None:
    layout = _layout(ctx)
    parents = _parents(ctx, operation)
    children = [Segment(child.segment_id, child.hash_range) for child in operation.children]
    known = _counting(ctx, [frozenset(operation.subscriptions)])
    # Both at once, since producers wait for the end of this.
    present, (operation, seals) = await alongside(
        _complete_children(ctx, children, known), _seal(ctx, operation, parents)
    )
    settled: dict[int, dict[str, int]] = {}
    for parent in parents:
        if parent.segment_id in seals:
            topic = ctx.backend.segment_topic(ctx.topic, parent)
            in_doubt = seals[parent.segment_id].came_back.union(operation.in_doubt)
            settled[parent.segment_id] = await settle_tail(ctx, topic, in_doubt)
    subscriptions = _counting(ctx, [seal.subscriptions for seal in seals.values()])
    if present and not subscriptions <= known:
        # Some appeared on the parents since the journal was opened.
        present = await _complete_children(ctx, children, subscriptions)
    if not present:
        # The point of no return is passed and a child is gone: make it again under the same record.
        await create_children(ctx, replace(operation, subscriptions=tuple(sorted(subscriptions))))
    positions = {segment_id: str(seal.position) for segment_id, seal in seals.items()}
    now_ms = ctx.clock.now_ms()
    if operation.migration is not None:
        on_parents = frozenset().union(*(seal.subscriptions for seal in seals.values()))
        after = migrated_state(ctx, operation, operation.migration, positions, on_parents, now_ms=now_ms)
    else:
        change = SegmentChange(_CREATED_BY[operation.kind], parent_ids=operation.parents, children=operation.children)
        committed = layout.apply(change, now_ms=now_ms, sealed_positions=positions)
        clocks = ctx.store.state.clocks.moved(change.kind, now_ms)
        after = replace(ctx.store.state, layout=committed, clocks=clocks)
    epoch = after.layout.epoch if after.layout else 0
    action = operation.ended(Result.SUCCEEDED, at=ctx.timestamp(), epoch=epoch)
    kept = {**_still_settled(ctx, after.layout), **{segment: last for segment, last in settled.items() if last}}
    after = replace(after, settled=kept).finished(action)
    await alongside(ctx.backend.expect_layout(ctx.topic), ctx.store.commit(after))
    ctx.opened_here.discard(operation.id)


def _still_settled(ctx: OperationContext, layout: SegmentLayout | None) -> dict[int, Mapping[str, int]]:
    """What was settled earlier and may still be asked for (R15); the rest only makes the record larger."""
    if layout is None:
        return {}
    since_ms = ctx.clock.now_ms() - ctx.settings.settle_window_seconds * 1000
    return {
        segment_id: last
        for segment_id, last in ctx.store.state.settled.items()
        if segment_id in layout.segments and layout.segment(segment_id).sealed_at_ms >= since_ms
    }


async def _seal(
    ctx: OperationContext, operation: Operation, parents: Sequence[Segment]
) -> tuple[Operation, dict[int, Seal]]:
    """Seal the parents, all at once: a merge never has one of them sealed long before its sibling."""
    operation = await _announced(ctx, operation)
    topics = [ctx.backend.segment_topic(ctx.topic, parent) for parent in parents]
    seals = await concurrently(seal_segment(ctx, topic, is_written_to=bool(operation.in_doubt)) for topic in topics)
    for parent, seal in zip(parents, seals, strict=True):
        if seal is None:
            await ctx.report(
                "SegmentMissing",
                f"segment {parent.segment_id} {parent.hash_range} had no topic when it was to be sealed; "
                "what it held is lost",
            )
    return operation, {parent.segment_id: seal for parent, seal in zip(parents, seals, strict=True) if seal is not None}


async def _complete_children(
    ctx: OperationContext, children: Sequence[Segment], subscriptions: Collection[str]
) -> bool:
    """Make sure that the children have these cursors; False if one of them is gone."""

    async def complete(child: Segment) -> bool:
        try:
            await ctx.backend.ensure_cursors(ctx.backend.segment_topic(ctx.topic, child), sorted(subscriptions))
        except TopicMissing:
            return False
        return True

    return all(await concurrently(complete(child) for child in children))


async def _turn_back(ctx: OperationContext, operation: Operation, result: Result, why: str) -> Operation:
    """Journal that an operation is rolled back, before any of its side effects is undone."""
    turned = replace(operation, step=Step.ROLLING_BACK, result=result, message=why)
    await ctx.store.commit(replace(ctx.store.state, operation=turned))
    return turned


async def _roll_back(ctx: OperationContext, operation: Operation) -> None:
    """Call the change off, then delete the children. Nobody was to write to them yet, so nothing in them can count;
    their ids stay used (R9)."""
    if operation.announcements:
        # Clients have connected to the children: they leave before these are deleted, and do not make them again.
        with suppress(BackendRefused):
            await publish(ctx)
    await concurrently(_delete_child(ctx, operation, child) for child in operation.children)
    if operation.migration is not None:
        await undo_migration(ctx, operation.migration.source)
    result = operation.result or Result.ROLLED_BACK
    action = operation.ended(result, at=ctx.timestamp(), epoch=_layout(ctx).epoch, message=operation.message)
    await ctx.store.commit(ctx.store.state.finished(action))
    ctx.opened_here.discard(operation.id)


async def _delete_child(ctx: OperationContext, operation: Operation, child: PlannedSegment) -> None:
    """Delete what the operation made; what somebody else made under the name, or wrote to, is not its own."""
    topic = ctx.backend.segment_topic(ctx.topic, Segment(child.segment_id, child.hash_range))
    try:
        record = await ctx.backend.read_record(topic)
        look = await ctx.backend.look(topic)
    except TopicMissing:
        return
    if record is not None and record.operation_id == operation.id and not look.entries:
        await ctx.backend.delete_segment(topic, force=True)


def _united(first: Mapping[str, frozenset[str]], second: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    return {role: first.get(role, frozenset()) | second.get(role, frozenset()) for role in first.keys() | second.keys()}


def _parents(ctx: OperationContext, operation: Operation) -> list[Segment]:
    layout = _layout(ctx)
    return [layout.segment(parent) for parent in operation.parents]


def _layout(ctx: OperationContext) -> SegmentLayout:
    layout = ctx.store.state.shown_layout(ctx.topic)
    if layout is None:
        raise RuntimeError(f"{ctx.topic} has no layout yet")
    return layout
