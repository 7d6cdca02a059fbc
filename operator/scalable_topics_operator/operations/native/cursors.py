"""Subscriptions of a topic whose layout the brokers own: made, deleted and moved by one call each (R16, R18)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from scalable_topics_operator.operations.errors import (
    BackendRefused,
    ClientsAttached,
    RequestRefused,
    TopicMissing,
)
from scalable_topics_operator.operations.journal import Operation, OperationKind, Request, Result, Step
from scalable_topics_operator.operations.journaling import close_journal, new_operation, open_journal
from scalable_topics_operator.operations.native.context import NativeContext
from scalable_topics_operator.operations.native.protocols import NativeLook
from scalable_topics_operator.operations.requests import CursorRequest, RestoreRequest, SeekRequest
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase, SubscriptionState
from scalable_topics_operator.operations.topic_state import TopicState


@dataclass(frozen=True, slots=True)
class BrokersCursors:
    """Implements `Cursors` where brokers see to every segment themselves."""

    ctx: NativeContext

    async def create(self, entry: SubscriptionState) -> tuple[int, ...]:
        """Make a subscription. Brokers begin at the earliest message; for the latest it is moved there at once."""
        ctx = self.ctx
        declared = ctx.subscriptions.get(entry.name)
        is_new = entry.name not in (await ctx.backend.look(ctx.topic)).subscriptions
        by_object = declared is not None and declared.by_object
        await ctx.backend.create_subscription(ctx.topic, entry.name, ordered=entry.ordered or by_object)
        if entry.latest and is_new:
            await ctx.backend.skip_all(ctx.topic, entry.name)
        return ()

    async def delete(self, entry: SubscriptionState) -> None:
        """Delete a subscription; brokers would disconnect its consumers without a word."""
        ctx = self.ctx
        try:
            found = (await ctx.backend.look(ctx.topic)).subscriptions.get(entry.name)
        except TopicMissing:
            return
        if found is not None and found.consumers and not entry.forced:
            raise ClientsAttached(f"{found.consumers} consumers are attached to subscription {entry.name}")
        await ctx.backend.delete_subscription(ctx.topic, entry.name)


def without_cursors(state: TopicState) -> TopicState:
    """The record of a topic that is made again, whose subscriptions are to be made with it (R14). Pure."""
    made_again = {
        name: entry if entry.phase is SubscriptionPhase.DELETING else replace(entry, phase=SubscriptionPhase.CREATING)
        for name, entry in state.subscriptions.items()
    }
    return replace(state, subscriptions=made_again)


async def mark_lost(ctx: NativeContext, look: NativeLook) -> None:
    """Record which declared subscriptions the brokers have lost; they are never silently made again (R17)."""
    subscriptions = dict(ctx.store.state.subscriptions)
    for name, entry in subscriptions.items():
        if entry.phase in (SubscriptionPhase.ACTIVE, SubscriptionPhase.CURSOR_LOST):
            phase = SubscriptionPhase.ACTIVE if name in look.subscriptions else SubscriptionPhase.CURSOR_LOST
            subscriptions[name] = replace(entry, phase=phase)
    if subscriptions != dict(ctx.store.state.subscriptions):
        await ctx.store.commit(replace(ctx.store.state, subscriptions=subscriptions))


async def require_movable(ctx: NativeContext, wants: CursorRequest) -> None:
    """Make sure that a subscription is there to be moved: brokers answer 204 for one that is not.

    Raises RequestRefused, BackendError.
    """
    if isinstance(wants, RestoreRequest):
        raise RequestRefused(
            "Unsupported", "on the Native backend checkpoints are restored by their consumers, not by the brokers"
        )
    if wants.subscription not in (await ctx.backend.look(ctx.topic)).subscriptions:
        raise RequestRefused("SubscriptionMissing", f"there is no subscription {wants.subscription} on the topic")


async def open_move(ctx: NativeContext, wants: CursorRequest, request: Request) -> None:
    """Journal a seek or skip-all. Raises RequestRefused, BackendError."""
    await require_movable(ctx, wants)
    kind = OperationKind.SEEK if isinstance(wants, SeekRequest) else OperationKind.SKIP_ALL
    to_ms = wants.to_ms if isinstance(wants, SeekRequest) else None
    operation = new_operation(ctx, kind, Step.CALLING, request, subscriptions=(wants.subscription,), seek_to_ms=to_ms)
    await open_journal(ctx, operation)


async def advance_move(ctx: NativeContext, operation: Operation) -> None:
    """Take an open seek or skip-all to its end; doing it twice is doing it once. Raises BackendUnavailable."""
    subscription = operation.subscriptions[0]
    result, why = Result.SUCCEEDED, ""
    try:
        if operation.seek_to_ms is not None:
            await ctx.backend.seek(ctx.topic, subscription, operation.seek_to_ms)
        else:
            await ctx.backend.skip_all(ctx.topic, subscription)
    except BackendRefused as refusal:
        result, why = Result.FAILED, str(refusal)
    await close_journal(ctx, operation, result, why)
