"""Declared subscriptions brought in line with `spec.subscriptions` (R16, R18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scalable_topics.layout import Segment
from scalable_topics_operator.operations.context import DeclaredSubscription, OperationContext, concurrently
from scalable_topics_operator.operations.errors import ClientsAttached, TopicMissing
from scalable_topics_operator.operations.journal import SubscriptionPhase, SubscriptionState, TopicState


def wanted_subscriptions(
    recorded: Mapping[str, SubscriptionState], declared: Mapping[str, DeclaredSubscription]
) -> dict[str, SubscriptionState]:
    """The states that `spec.subscriptions` asks for, given the recorded ones. Pure.

    A removed entry whose record says so turns to `Deleting`; other removed entries are only forgotten. A name
    still being deleted stays so, even if it was declared again: it is made anew once it is gone.
    """
    wanted: dict[str, SubscriptionState] = {}
    for name, entry in recorded.items():
        if entry.phase is SubscriptionPhase.DELETING:
            wanted[name] = entry
        elif name not in declared and entry.delete_with_entry:
            wanted[name] = replace(entry, phase=SubscriptionPhase.DELETING)
    for name, wish in declared.items():
        if name in wanted:
            continue
        known = recorded.get(name)
        phase = known.phase if known else SubscriptionPhase.CREATING
        latest = known.latest if known else wish.latest
        out_of_scope = known.out_of_scope if known else ()
        wanted[name] = SubscriptionState(name, phase, latest, wish.delete_with_entry, out_of_scope)
    return wanted


async def settle_subscriptions(ctx: OperationContext) -> None:
    """Make and delete cursors until the record agrees with the spec; what is to be done is recorded first (R8).

    At earliest a new subscription gets cursors on sealed segments too, at latest only on active ones (R18). One to
    be deleted whose consumers are still attached is told of and stays `Deleting`: nothing else waits for it.
    Raises BackendError; the same call later goes on.
    """
    wanted = wanted_subscriptions(ctx.store.state.subscriptions, ctx.intent.subscriptions)
    if wanted != dict(ctx.store.state.subscriptions):
        await ctx.store.commit(_with_subscriptions(ctx.store.state, wanted))
    for entry in wanted.values():
        if entry.phase is SubscriptionPhase.CREATING:
            await _create_cursors(ctx, entry)
            skipped = tuple(one.segment_id for one in _segments(ctx) if not one.is_active) if entry.latest else ()
            await _record(ctx, replace(entry, phase=SubscriptionPhase.ACTIVE, out_of_scope=skipped))
        elif entry.phase is SubscriptionPhase.DELETING:
            try:
                await _delete_cursors(ctx, entry)
            except ClientsAttached as attached:
                await ctx.report("SubscriptionInUse", f"subscription {entry.name} is not deleted yet: {attached}")
                continue
            remaining = {name: kept for name, kept in ctx.store.state.subscriptions.items() if name != entry.name}
            await ctx.store.commit(_with_subscriptions(ctx.store.state, remaining))
            if entry.name in ctx.intent.subscriptions:
                # Declared again while it was being deleted.
                await settle_subscriptions(ctx)
                return


async def _create_cursors(ctx: OperationContext, entry: SubscriptionState) -> None:
    async def create(segment: Segment) -> None:
        try:
            await ctx.backend.ensure_cursors(
                ctx.backend.segment_topic(ctx.topic, segment), [entry.name], latest=entry.latest
            )
        except TopicMissing:
            # Drift repair re-creates a missing active segment with all its cursors and tells of the loss.
            return

    await concurrently(create(segment) for segment in _segments(ctx) if segment.is_active or not entry.latest)


async def _delete_cursors(ctx: OperationContext, entry: SubscriptionState) -> None:
    await concurrently(
        ctx.backend.delete_cursor(ctx.backend.segment_topic(ctx.topic, segment), entry.name)
        for segment in _segments(ctx)
    )


async def _record(ctx: OperationContext, entry: SubscriptionState) -> None:
    await ctx.store.commit(_with_subscriptions(ctx.store.state, {**ctx.store.state.subscriptions, entry.name: entry}))


def _with_subscriptions(state: TopicState, subscriptions: dict[str, SubscriptionState]) -> TopicState:
    return replace(state, subscriptions=subscriptions)


def _segments(ctx: OperationContext) -> list[Segment]:
    layout = ctx.store.state.layout
    return [*layout.active, *layout.sealed] if layout else []
