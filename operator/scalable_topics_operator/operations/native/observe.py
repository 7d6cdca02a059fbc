"""The brokers' layout taken over into the record: with a history of what they prune, and whose changes they were."""

from __future__ import annotations

from dataclasses import replace

from scalable_topics_operator.operations.journal import Action, Request, Result, new_operation_id
from scalable_topics_operator.operations.native.context import NativeContext
from scalable_topics_operator.operations.native.names import require_ours
from scalable_topics_operator.operations.native.news import Happened, News, news_of
from scalable_topics_operator.operations.native.protocols import NativeTopic
from scalable_topics_operator.operations.topic_state import ACTIONS_KEPT, TopicState

BROKERS = Request("Brokers", "", "")
"""Who asked for a change that nobody asked the operator for: the brokers' own controller, or somebody at their API."""


async def observe(ctx: NativeContext) -> NativeTopic | None:
    """Read the brokers' layout and record what is new of it; None if the topic is gone.

    Raises NameRefused where it is another object's now, BackendError.
    """
    found = await ctx.backend.read(ctx.topic)
    if found is None:
        return None
    require_ours(ctx.store.state.layout, found, ctx.claim)
    await record(ctx, found)
    return found


async def record(ctx: NativeContext, found: NativeTopic) -> News:
    """Record what is new of a layout that was read; nothing is written where nothing is."""
    state = ctx.store.state
    news = news_of(state.layout, found.layout, now_ms=ctx.clock.now_ms())
    after = with_news(ctx, news)
    if after != state:
        await ctx.store.commit(after)
    if news.replaced:
        await ctx.report(
            "TopicReplaced",
            f"{ctx.topic} was deleted and made again by somebody else; what it held before is lost",
        )
    return news


def with_news(ctx: NativeContext, news: News) -> TopicState:
    """The record after a look at the brokers' layout.

    What the open journal is about is left to whoever closes it.
    """
    state = ctx.store.state
    clocks = state.clocks
    for kind, at_ms in news.kinds.items():
        clocks = clocks.moved(kind, at_ms)
    journaled = state.operation.parents if state.operation is not None else ()
    foreign = [_foreign(one, ctx.timestamp()) for one in news.happened if not set(journaled) & set(one.parent_ids)]
    pruned = () if news.replaced else state.pruned
    return replace(
        state,
        layout=news.layout,
        clocks=clocks,
        actions=(*state.actions, *foreign)[-ACTIONS_KEPT:],
        incarnation=ctx.new_incarnation() if news.replaced or not state.incarnation else state.incarnation,
        pruned=(*pruned, *news.pruned)[-ctx.max_history :],
    )


def _foreign(one: Happened, at: str) -> Action:
    return Action(
        id=new_operation_id(),
        kind=one.kind.value,
        at=at,
        epoch=one.epoch,
        parents=one.parent_ids,
        children=one.child_ids,
        result=Result.SUCCEEDED,
        request=BROKERS,
    )
