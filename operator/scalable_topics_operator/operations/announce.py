"""Telling clients: the layout after each commit, and a seal before it happens (R13, R20; pip-468 notification)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scalable_topics.layout import Segment
from scalable_topics_operator.operations.context import OperationContext, concurrently
from scalable_topics_operator.operations.errors import TopicMissing
from scalable_topics_operator.operations.journal import Operation
from scalable_topics_operator.operations.layout_message import layout_message

_MS = 1000
# The journal stays small; producers that do not listen are refused by the broker and lose nothing by it.
_IN_DOUBT_KEPT = 256


async def publish(ctx: OperationContext) -> None:
    """Bring the layout topic up to the committed state; quiet when clients know it already.

    Raises BackendError; the state is committed then, and the next reconcile publishes it.
    """
    if ctx.store.state.layout is None:
        return
    message = _message(ctx)
    if ctx.published.message is None:
        ctx.published.message = await ctx.backend.published_layout(ctx.topic)
    if ctx.published.message != message:
        await ctx.backend.publish_layout(ctx.topic, message)
        ctx.published.message = message


async def announce_until_quiet(ctx: OperationContext, operation: Operation, parents: Sequence[Segment]) -> Operation:
    """Announce the seal of the parents and wait until their producers have left, or have had their time.

    Answers the operation with the names of producers still attached, who ask for their tail to be settled or do not
    listen, and with enough of the hold left to seal; an announcement that took too long is made again (R13).
    """
    topics = [ctx.backend.segment_topic(ctx.topic, parent) for parent in parents]
    while True:
        await publish(ctx)
        announced_ms = ctx.clock.now_ms()
        deadline_ms = announced_ms + ctx.settings.publishers_wait_seconds * _MS
        while (attached := await _publishers(ctx, topics)) and ctx.clock.now_ms() < deadline_ms:
            await ctx.clock.sleep(ctx.settings.publishers_look_seconds)
        usable_ms = (ctx.settings.hold_seconds - ctx.settings.hold_margin_seconds) * _MS
        if ctx.clock.now_ms() - announced_ms < usable_ms:
            return replace(operation, in_doubt=tuple(sorted(attached)[:_IN_DOUBT_KEPT]))
        operation = replace(operation, announcements=operation.announcements + 1)
        await ctx.store.commit(replace(ctx.store.state, operation=operation))


async def _publishers(ctx: OperationContext, segment_topics: Sequence[str]) -> frozenset[str]:
    async def attached(segment_topic: str) -> frozenset[str]:
        try:
            return (await ctx.backend.look(segment_topic)).producers
        except TopicMissing:
            return frozenset()

    return frozenset().union(*await concurrently(attached(topic) for topic in segment_topics))


async def settle_tail(ctx: OperationContext, segment_topic: str, producers: Sequence[str]) -> dict[str, int]:
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
