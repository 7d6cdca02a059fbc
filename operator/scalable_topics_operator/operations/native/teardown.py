"""The end of a topic whose layout the brokers own (R31)."""

from __future__ import annotations

from scalable_topics_operator.operations.errors import ClientsAttached, NameRefused
from scalable_topics_operator.operations.journal import OperationKind, Request
from scalable_topics_operator.operations.journaling import open_deletion
from scalable_topics_operator.operations.native.context import NativeContext
from scalable_topics_operator.operations.native.names import require_ours


async def delete_topic(ctx: NativeContext, request: Request, *, force: bool = False) -> None:
    """Delete the topic, if it is still this object's.

    Refuses while clients are attached (R31), before anything is deleted, unless it is to `force` them off: brokers
    themselves would leave a segment with its producer behind (measured). Raises ClientsAttached, BackendError.
    """
    state = ctx.store.state
    found = await ctx.backend.read(ctx.topic)
    if found is not None:
        try:
            if state.layout is None and (found.claim is None or found.claim.resource_uid != ctx.claim.resource_uid):
                return
            require_ours(state.layout, found, ctx.claim)
        except NameRefused as refused:
            await ctx.report("DataLeft", f"the topic's data is left on the brokers: {refused}")
            return
    going = state.operation is not None and state.operation.kind is OperationKind.DELETE
    if found is not None and not going and not force:
        look = await ctx.backend.look(ctx.topic)
        if look.producers or look.consumers:
            raise ClientsAttached(
                f"{len(look.producers)} producers and {look.consumers} consumers are attached to the topic; stop "
                "them, or set deletionPolicy: Retain to keep the data"
            )
    if not going:
        await open_deletion(ctx, request)
    recorded = dict(state.layout.segments) if state.layout else {}
    segments = {**recorded, **(found.layout.segments if found else {})}
    await ctx.backend.delete(ctx.topic, list(segments.values()))
