"""Telling clients: the layout after each commit, and a seal before it happens (R13, R20; pip-468 notification)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from scalable_topics.layout import Segment, incarnation_of
from scalable_topics_operator.operations.context import Announced, OperationContext, concurrently
from scalable_topics_operator.operations.errors import BackendUnavailable, TopicMissing
from scalable_topics_operator.operations.journal import Operation, Step
from scalable_topics_operator.operations.layout_message import (
    announcement_number,
    layout_message,
    message_order,
    says_the_same,
)

_MS = 1000
# The journal stays small; producers that do not listen are refused by the broker and lose nothing by it.
_IN_DOUBT_KEPT = 256


async def publish(ctx: OperationContext) -> None:
    """Bring the layout topic up to the committed state; quiet when clients know it already.

    A record that is not newer than what clients were told of, as one restored from a backup may be, begins a new
    incarnation, since clients would not follow it (R12).

    Raises BackendError; the state is committed then, and the next reconcile publishes it.
    """
    if ctx.store.state.shown_layout(ctx.topic) is None:
        return
    published = ctx.published
    await _published(ctx)
    message = _message(ctx)
    if published.message is not None and says_the_same(published.message, message):
        # A new leader has nothing to tell: failover writes nothing per topic (R5).
        published.behind = False
        return
    if published.message is not None:
        uid = ctx.claim.resource_uid
        told, committed = message_order(published.message, uid), message_order(message, uid)
        if told is not None and committed is not None and told >= committed:
            incarnation = incarnation_of(uid, max(ctx.clock.now_ms(), told.counter + 1))
            await ctx.store.commit(replace(ctx.store.state, incarnation=incarnation))
            message = _message(ctx)
    # Unknown until the broker has answered; whoever fails here reads it again.
    published.message, published.behind = None, True
    await ctx.backend.publish_layout(ctx.topic, message)
    published.message, published.behind = message, False


async def _published(ctx: OperationContext) -> str | None:
    """What clients were told last; read once, by whoever has not published anything yet."""
    if ctx.published.message is None:
        ctx.published.message = await ctx.backend.published_layout(ctx.topic)
    return ctx.published.message


def is_announced(ctx: OperationContext, operation: Operation) -> bool:
    """Whether this process announced the seal and producers hold for long enough to seal now (R13)."""
    announced = ctx.published.announced
    if announced is None or (announced.operation_id, announced.number) != (operation.id, operation.announcements):
        return False
    usable_seconds = ctx.settings.hold_seconds - ctx.settings.hold_margin_seconds
    return ctx.clock.monotonic_seconds() - announced.sent_at_seconds < usable_seconds


async def announce(ctx: OperationContext, operation: Operation) -> Operation:
    """Announce the seal of an operation's parents; answers the operation with the number of the announcement.

    What may have been announced before is announced under a higher number: producers hold from the first time they see
    an announcement, and not again for the same one (R13).

    Raises BackendError.
    """
    if _may_be_known(ctx, operation):
        # A status that somebody has restored from a backup may count less than producers have seen.
        seen = max(operation.announcements, announcement_number(await _published(ctx) or "", operation.id))
        operation = replace(operation, announcements=seen + 1)
        await ctx.store.commit(replace(ctx.store.state, operation=operation))
    sent_at_seconds = ctx.clock.monotonic_seconds()
    ctx.published.announced = Announced(operation.id, operation.announcements, sent_at_seconds)
    await publish(ctx)
    return operation


async def until_quiet(ctx: OperationContext, operation: Operation, parents: Sequence[Segment]) -> Operation:
    """Wait until the producers of announced parents have left, or have had their time.

    Answers the operation with the names of producers still attached, who ask for their tail to be settled or do not
    listen, and with enough of the hold left to seal.

    Raises BackendUnavailable when it took too long to seal now, BackendError.
    """
    topics = [ctx.backend.segment_topic(ctx.topic, parent) for parent in parents]
    until_seconds = ctx.clock.monotonic_seconds() + ctx.settings.publishers_wait_seconds
    while True:
        await ctx.clock.sleep(ctx.settings.publishers_look_seconds)
        attached = await _publishers(ctx, topics)
        if not attached or ctx.clock.monotonic_seconds() >= until_seconds:
            break
    if not is_announced(ctx, operation):
        raise BackendUnavailable(
            f"{ctx.topic}: the brokers took too long for a seal to be announced; it is tried again"
        )
    in_doubt = [*operation.in_doubt, *sorted(attached - set(operation.in_doubt))]
    return replace(operation, in_doubt=tuple(in_doubt[:_IN_DOUBT_KEPT]))


def _may_be_known(ctx: OperationContext, operation: Operation) -> bool:
    """Whether clients may have seen the operation's present announcement."""
    announced = ctx.published.announced
    if announced is None or announced.operation_id != operation.id:
        # Only its own process takes an operation past `Announcing`, so others meet it when it was announced.
        return operation.step is Step.SEALING
    return announced.number >= operation.announcements


async def _publishers(ctx: OperationContext, segment_topics: Sequence[str]) -> frozenset[str]:
    async def attached(segment_topic: str) -> frozenset[str]:
        try:
            return await ctx.backend.producers(segment_topic)
        except TopicMissing:
            return frozenset()

    return frozenset().union(*await concurrently(attached(topic) for topic in segment_topics))


async def settle_tail(ctx: OperationContext, segment_topic: str, producers: Collection[str]) -> dict[str, int]:
    """The last sequence id stored under each producer's name in a sealed segment, -1 for none (R15).

    Reads the tail backwards until each name was met, `settle_entries` at most.
    """
    if not producers:
        return {}
    found: dict[str, int] = {}
    async for entry in ctx.backend.tail_entries(segment_topic, ctx.settings.settle_entries):
        if entry.producer in producers:
            found.setdefault(entry.producer, entry.last_sequence_id)
        if len(found) == len(producers):
            break
    return {name: found.get(name, -1) for name in producers}


def _message(ctx: OperationContext) -> str:
    return layout_message(
        ctx.topic,
        ctx.store.state,
        term=ctx.term,
        hold_ms=int(ctx.settings.hold_seconds * _MS),
        segment_topic=ctx.backend.segment_topic,
    )
