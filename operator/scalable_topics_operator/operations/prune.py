"""Prune: drained, sealed segments leave the layout, and then their topics are deleted (R17, R19)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scalable_topics.layout import Segment, SegmentLayout
from scalable_topics_operator.operations.context import OperationContext, concurrently
from scalable_topics_operator.operations.errors import BackendRefused, ClientsAttached, TopicMissing
from scalable_topics_operator.operations.journal import Action, OperationKind, Request, Result, new_operation_id
from scalable_topics_operator.operations.protocols import Position, SegmentLook
from scalable_topics_operator.operations.topic_state import DeletingSegment


@dataclass(frozen=True, slots=True)
class PruneFinding:
    """Whether one sealed segment may go, and if not, why (in words for a condition).

    Args:
        segment_id: the segment.
        blocked_by: why it must stay; empty if it may go.
        drained: whether every subscription that counts has read it to its verified end.
    """

    segment_id: int
    blocked_by: str = ""
    drained: bool = True


def drained(look: SegmentLook, sealed_position: Position, subscription: str) -> bool:
    """Whether a subscription has acknowledged everything in a sealed segment (R17).

    A mark-delete position may stand at the end of the last ledger that held entries while the segment ended
    in an empty one; then the precise backlog says it.
    """
    cursor = look.cursors[subscription]
    return cursor.mark_delete >= sealed_position or (sealed_position.entry_id < 0 and cursor.backlog == 0)


def is_read_to_its_end(segment: Segment, look: SegmentLook, subscription: str) -> bool:
    """Whether a subscription is through with a segment: it is sealed, as was verified, and all acknowledged (R17).

    Args:
        segment: as recorded.
        look: what its broker shows now.
        subscription: its name.
    """
    if segment.sealed_position is None or not look.terminated:
        return False
    position = Position.parse(segment.sealed_position)
    return look.last_confirmed == position and subscription in look.cursors and drained(look, position, subscription)


def judge_segment(
    segment: Segment,
    look: SegmentLook | None,
    *,
    declared: frozenset[str],
    now_ms: int,
    retention_minutes: int,
    settle_window_seconds: float,
) -> PruneFinding:
    """Decide whether a sealed segment may be pruned. Pure.

    Args:
        segment: the sealed segment.
        look: what its broker shows; None when its topic is gone, and then nothing keeps the record.
        declared: subscriptions that must have a cursor here; one that lost it blocks (R17).
        now_ms: wall clock.
        retention_minutes: that applies to it; negative means for ever.
        settle_window_seconds: how long it must stay readable for unknown sends (R15).
    """

    def unread(why: str) -> PruneFinding:
        return PruneFinding(segment.segment_id, why, drained=False)

    def blocked(why: str) -> PruneFinding:
        return PruneFinding(segment.segment_id, why)

    if look is None:
        return PruneFinding(segment.segment_id)
    position = Position.parse(segment.sealed_position) if segment.sealed_position else None
    if not look.terminated or look.last_confirmed != position:
        # It was open again after its position was recorded: drift repair seals it and records where it ends now.
        return unread("its seal is not verified")
    lost = sorted(name for name in declared if name not in look.cursors)
    if lost:
        return unread(f"subscription {lost[0]} has lost its cursor on it")
    undrained = sorted(name for name in look.counting | declared if not drained(look, position, name))
    if undrained:
        backlog = look.cursors[undrained[0]].backlog
        return unread(f"subscription {undrained[0]} has not drained it ({backlog} entries left)")
    age_seconds = (now_ms - segment.sealed_at_ms) / 1000
    if age_seconds < settle_window_seconds:
        return blocked(f"sealed {age_seconds:.0f} s ago; it stays {settle_window_seconds:.0f} s for unknown sends")
    if retention_minutes < 0:
        return blocked("its retention is without end")
    if age_seconds < retention_minutes * 60:
        return blocked(f"its retention of {retention_minutes} min is not over")
    return PruneFinding(segment.segment_id)


async def find_prunable(ctx: OperationContext, segment_ids: Sequence[int] = ()) -> list[PruneFinding]:
    """Judge the given sealed segments, or all of them. Raises LayoutError for an unknown id, BackendError."""
    layout = ctx.store.state.layout
    if layout is None:
        return []
    chosen = tuple(segment_ids) or tuple(segment.segment_id for segment in layout.sealed)
    ancestors = {one: _ancestors(layout, one) for one in chosen}
    # A subscription made at latest may never have had a cursor on a sealed segment (R18): it counts where it has one.
    declared = frozenset(name for name, entry in ctx.subscriptions.items() if not entry.latest)
    declared -= ctx.store.state.not_discovered
    judged = sorted(set(chosen).union(*ancestors.values()))
    found = await concurrently(_judge(ctx, layout.segment(one), declared) for one in judged)
    findings = {finding.segment_id: finding for finding in found}
    return [_in_order(findings[one], [findings[ancestor] for ancestor in ancestors[one]]) for one in chosen]


def _ancestors(layout: SegmentLayout, segment_id: int) -> list[int]:
    return [one.segment_id for one in layout.lineage(segment_id) if one.segment_id < segment_id]


def _in_order(finding: PruneFinding, ancestors: Sequence[PruneFinding]) -> PruneFinding:
    """A segment outlives what comes before it, or its successors would be read too early (hazard A3-26274)."""
    unread = [ancestor.segment_id for ancestor in ancestors if not ancestor.drained]
    if finding.blocked_by or not unread:
        return finding
    return replace(finding, blocked_by=f"segment {unread[0]}, which comes before it, is not drained")


async def _judge(ctx: OperationContext, segment: Segment, declared: frozenset[str]) -> PruneFinding:
    if segment.is_active:
        return PruneFinding(segment.segment_id, "it is active", drained=False)
    topic = ctx.backend.segment_topic(ctx.topic, segment)
    try:
        look = await ctx.backend.look(topic)
        retention = await ctx.backend.retention_minutes(topic)
    except TopicMissing:
        look, retention = None, 0
    return judge_segment(
        segment,
        look,
        declared=declared,
        now_ms=ctx.clock.now_ms(),
        retention_minutes=retention,
        settle_window_seconds=ctx.settings.settle_window_seconds,
    )


async def prune(ctx: OperationContext, segment_ids: Sequence[int], request: Request) -> None:
    """Take segments out of the layout; their topics are listed as `deleting` in the same write (hazard B6).

    Raises LayoutError for an active or unknown segment. Deleting the topics is `delete_pruned`.
    """
    state = ctx.store.state
    if state.layout is None:
        return
    going = [state.layout.segment(segment_id) for segment_id in segment_ids]
    pruned = state.layout.prune(segment_ids)
    now_ms = ctx.clock.now_ms()
    action = Action(
        id=new_operation_id(),
        kind=OperationKind.PRUNE.value,
        at=ctx.timestamp(),
        epoch=pruned.epoch,
        parents=tuple(segment_ids),
        children=(),
        result=Result.SUCCEEDED,
        request=request,
    )
    deleting = tuple(
        DeletingSegment(one.segment_id, ctx.backend.segment_topic(ctx.topic, one), now_ms, one.is_legacy)
        for one in going
    )
    await ctx.store.commit(replace(state, layout=pruned, deleting=(*state.deleting, *deleting)).finished(action))


async def delete_pruned(ctx: OperationContext) -> bool:
    """Delete the topics of pruned segments, and truncate those that were migrated; answers whether none is left.

    Clients still attached are waited for, and after `force_delete_after_seconds` disconnected. A failed delete
    stays listed and is tried again at the next call.
    """
    state = ctx.store.state
    if not state.deleting:
        return True

    async def delete(entry: DeletingSegment) -> bool:
        if entry.is_legacy:
            # It holds the name: whoever does not know scalable topics must find it sealed (R19).
            await ctx.backend.truncate(entry.topic)
            return True
        waited_seconds = (ctx.clock.now_ms() - entry.since_ms) / 1000
        try:
            await ctx.backend.delete_segment(
                entry.topic, force=waited_seconds >= ctx.settings.force_delete_after_seconds
            )
        except ClientsAttached:
            return False
        except BackendRefused as refusal:
            await ctx.report("SegmentDeleteRefused", f"{entry.topic}: {refusal}")
            return False
        return True

    gone = await concurrently(delete(entry) for entry in state.deleting)
    left = tuple(entry for entry, deleted in zip(state.deleting, gone, strict=True) if not deleted)
    if left != state.deleting:
        await ctx.store.commit(replace(ctx.store.state, deleting=left))
    return not left
