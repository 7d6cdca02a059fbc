"""Subscriptions brought in line with what is declared, and with what is asked for besides (R16, R18, R32)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from scalable_topics.layout import Segment
from scalable_topics_operator.operations.context import (
    DeclaredSubscription,
    OperationContext,
    TopicContext,
    concurrently,
)
from scalable_topics_operator.operations.errors import ClientsAttached, RequestRefused, TopicMissing
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase, SubscriptionState
from scalable_topics_operator.operations.topic_state import TopicState


@dataclass(frozen=True, slots=True)
class SubscriptionWish:
    """What somebody asks of a subscription besides what is declared (R32).

    Args:
        name: of the subscription.
        deletes: it is to go; else it is to be there.
        latest: if it is new, it starts at the latest message.
        forced: it goes although consumers are attached.
        ordered: if it is new, brokers that own the layout make it an ordered one (Native).
    """

    name: str
    deletes: bool = False
    latest: bool = False
    forced: bool = False
    ordered: bool = False


async def record_wish(ctx: TopicContext, wish: SubscriptionWish) -> None:
    """Record what is to become of a subscription; `settle_subscriptions` does it. Raises RequestRefused."""
    entry = ctx.store.state.subscriptions.get(wish.name)
    wanted = _wished_away(ctx, wish, entry) if wish.deletes else _wished_for(wish, entry)
    if wanted != entry:
        await _record(ctx, wanted)


def _wished_for(wish: SubscriptionWish, entry: SubscriptionState | None) -> SubscriptionState:
    if entry is None:
        return SubscriptionState(
            wish.name, SubscriptionPhase.CREATING, wish.latest, False, requested=True, ordered=wish.ordered
        )
    if entry.phase is SubscriptionPhase.DELETING:
        raise RequestRefused("Deleting", f"subscription {wish.name} is being deleted; ask again once it is gone")
    if entry.phase is SubscriptionPhase.CURSOR_LOST:
        raise RequestRefused(
            "CursorLost", f"subscription {wish.name} lost its cursor on some segments; delete it first"
        )
    return entry


def _wished_away(ctx: TopicContext, wish: SubscriptionWish, entry: SubscriptionState | None) -> SubscriptionState:
    declared = ctx.intent.subscriptions.get(wish.name)
    if declared is not None and not declared.by_object:
        raise RequestRefused(
            "Declared",
            f"subscription {wish.name} is in spec.subscriptions; remove it there, with deletionPolicy: Delete",
        )
    known = entry or SubscriptionState(wish.name, SubscriptionPhase.DELETING, False, False)
    return replace(known, phase=SubscriptionPhase.DELETING, requested=True, forced=known.forced or wish.forced)


def wanted_subscriptions(
    recorded: Mapping[str, SubscriptionState], declared: Mapping[str, DeclaredSubscription]
) -> dict[str, SubscriptionState]:
    """The states that declarations and requests ask for, given the recorded ones. Pure.

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
        if known is None:
            known = SubscriptionState(name, SubscriptionPhase.CREATING, wish.latest, wish.delete_with_entry)
        wanted[name] = replace(known, delete_with_entry=wish.delete_with_entry)
    return wanted


class Cursors(Protocol):
    """Where the cursors of a topic's subscriptions are made and deleted."""

    async def create(self, entry: SubscriptionState) -> tuple[int, ...]:
        """Make those of a subscription, and answer the segments that it never reads (R18). Raises BackendError."""

    async def delete(self, entry: SubscriptionState) -> None:
        """Delete those of a subscription; quiet where they are gone. Raises ClientsAttached, BackendError."""


async def settle_subscriptions(ctx: OperationContext) -> None:
    """Make and delete the cursors of a topic whose layout the operator owns; see `settle_cursors`."""
    await settle_cursors(ctx, _SegmentCursors(ctx))


async def settle_cursors(ctx: TopicContext, cursors: Cursors) -> None:
    """Make and delete cursors until the record agrees with the spec; what is to be done is recorded first (R8).

    One to be deleted whose consumers are still attached is told of and stays `Deleting`: nothing else waits for it.
    One that somebody asked to delete waits for the object to go that declares it (R32).
    Raises BackendError; the same call later goes on.
    """
    wanted = wanted_subscriptions(ctx.store.state.subscriptions, ctx.subscriptions)
    if wanted != dict(ctx.store.state.subscriptions):
        await ctx.store.commit(_with_subscriptions(ctx.store.state, wanted))
    for entry in wanted.values():
        if entry.phase is SubscriptionPhase.CREATING:
            skipped = await cursors.create(entry)
            await _record(ctx, replace(entry, phase=SubscriptionPhase.ACTIVE, out_of_scope=skipped))
        elif entry.phase is SubscriptionPhase.DELETING and not _waits_for_object(ctx, entry):
            try:
                await cursors.delete(entry)
            except ClientsAttached as attached:
                await ctx.report("SubscriptionInUse", f"subscription {entry.name} is not deleted yet: {attached}")
                continue
            remaining = {name: kept for name, kept in ctx.store.state.subscriptions.items() if name != entry.name}
            await ctx.store.commit(_with_subscriptions(ctx.store.state, remaining))
            if entry.name in ctx.subscriptions:
                # Declared again while it was being deleted.
                await settle_cursors(ctx, cursors)
                return


@dataclass(frozen=True, slots=True)
class _SegmentCursors:
    """Cursors made one by one: at earliest on sealed segments too, at latest only on active ones (R18)."""

    ctx: OperationContext

    async def create(self, entry: SubscriptionState) -> tuple[int, ...]:
        ctx = self.ctx

        async def create(segment: Segment) -> None:
            try:
                await ctx.backend.ensure_cursors(
                    ctx.backend.segment_topic(ctx.topic, segment), [entry.name], latest=entry.latest
                )
            except TopicMissing:
                # Drift repair re-creates a missing active segment with all its cursors and tells of the loss.
                return

        segments = _segments(ctx)
        await concurrently(create(segment) for segment in segments if segment.is_active or not entry.latest)
        return tuple(one.segment_id for one in segments if not one.is_active) if entry.latest else ()

    async def delete(self, entry: SubscriptionState) -> None:
        ctx = self.ctx
        await concurrently(
            ctx.backend.delete_cursor(ctx.backend.segment_topic(ctx.topic, segment), entry.name, force=entry.forced)
            for segment in _segments(ctx)
        )


def _waits_for_object(ctx: TopicContext, entry: SubscriptionState) -> bool:
    declared = ctx.intent.subscriptions.get(entry.name)
    return entry.requested and declared is not None and declared.by_object


async def _record(ctx: TopicContext, entry: SubscriptionState) -> None:
    await ctx.store.commit(_with_subscriptions(ctx.store.state, {**ctx.store.state.subscriptions, entry.name: entry}))


def _with_subscriptions(state: TopicState, subscriptions: dict[str, SubscriptionState]) -> TopicState:
    return replace(state, subscriptions=subscriptions)


def _segments(ctx: OperationContext) -> list[Segment]:
    layout = ctx.store.state.layout
    return [*layout.active, *layout.sealed] if layout else []
