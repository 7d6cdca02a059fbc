"""A topic made by the brokers, or one that they have already taken over (R1, pip-468 creation)."""

from __future__ import annotations

from dataclasses import fields

from scalable_topics_operator.operations.claims import Judgement, Verdict
from scalable_topics_operator.operations.context import TopicIntent
from scalable_topics_operator.operations.errors import BackendUnavailable, NameRefused, NameTaken, Unsupported
from scalable_topics_operator.operations.journal import Action, OperationKind, Request, Result, new_operation_id
from scalable_topics_operator.operations.native.context import NativeContext
from scalable_topics_operator.operations.native.news import news_of
from scalable_topics_operator.operations.native.observe import with_news
from scalable_topics_operator.operations.native.protocols import NativeTopic


async def create(ctx: NativeContext, request: Request) -> NativeTopic:
    """Have a topic made that is not there. The claim goes with the call, so nobody else's can come first.

    Raises NameRefused where something else has the name, NamespaceMissing, Unsupported, BackendError; nothing is left
    behind then.
    """
    if why := unsupported(ctx.declared):
        raise Unsupported(f"{ctx.topic}: {why}")
    try:
        await ctx.backend.require_creatable(ctx.topic)
    except NameTaken as taken:
        raise NameRefused("NameTaken", str(taken)) from taken
    await ctx.backend.create(ctx.topic, ctx.declared.initial_segments, ctx.claim, ctx.declared.properties)
    found = await ctx.backend.read(ctx.topic)
    if found is None:
        raise BackendUnavailable(f"create {ctx.topic}: the brokers do not show it yet")
    if found.claim != ctx.claim:
        raise BackendUnavailable(f"create {ctx.topic}: somebody else was first; it is looked at again")
    await _record(ctx, found, request, "")
    return found


async def take_over(ctx: NativeContext, found: NativeTopic, judgement: Judgement, request: Request) -> None:
    """Record a topic that the brokers have already, as `judgement` lets. Raises NameRefused."""
    if judgement.verdict is Verdict.REFUSED:
        raise NameRefused(judgement.reason, judgement.message)
    why = "adopted" if judgement.verdict is Verdict.ADOPTABLE else "found again"
    await _record(ctx, found, request, why)


async def _record(ctx: NativeContext, found: NativeTopic, request: Request, message: str) -> None:
    news = news_of(ctx.store.state.layout, found.layout, now_ms=ctx.clock.now_ms())
    state = with_news(ctx, news)
    action = Action(
        id=new_operation_id(),
        kind=OperationKind.CREATE.value,
        at=ctx.timestamp(),
        epoch=found.layout.epoch,
        parents=(),
        children=tuple(one.segment_id for one in found.layout.active),
        result=Result.SUCCEEDED,
        request=request,
        message=message,
    )
    await ctx.store.commit(state.finished(action))


def unsupported(intent: TopicIntent) -> str:
    """What a spec asks for that brokers who own the layout cannot be told; empty if nothing."""
    policies = intent.policies_for(1)
    if all(getattr(policies, one.name) is None for one in fields(policies)):
        return ""
    return (
        "spec.policies and spec.deduplication cannot be set on a topic of the Native backend, as Pulsar 5.0 has no "
        "topic policies for scalable topics; set them on the Pulsar namespace"
    )
