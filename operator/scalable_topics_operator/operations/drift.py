"""Drift repair: what the brokers have is compared with the record and mended (R14, R16, R19, R26, R27).

Runs at start, on a slow tick, and never beside an open operation. It writes to the brokers only where they
differ; what it finds lost is reported and never quietly made up for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scalable_topics.layout import Segment, SegmentLayout, legacy_topics
from scalable_topics_operator.operations.context import OperationContext, concurrently
from scalable_topics_operator.operations.errors import ClientsAttached, TopicMissing
from scalable_topics_operator.operations.journal import Request
from scalable_topics_operator.operations.protocols import (
    FoundSegment,
    NameState,
    Position,
    SegmentLook,
    SegmentRecord,
    SegmentSetup,
)
from scalable_topics_operator.operations.recover import require_claim
from scalable_topics_operator.operations.reshape import open_reshape
from scalable_topics_operator.operations.seal import seal_segment
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase


@dataclass(frozen=True, slots=True)
class DriftReport:
    """What a person should know after a drift check.

    Args:
        problems: reason and message of what could not be mended, or was mended at a loss.
        reopened: an operation was journaled to replace a segment, so the layout will change.
        terminated: active segments that were found terminated (hazard B1).
    """

    problems: tuple[tuple[str, str], ...] = ()
    reopened: bool = False
    terminated: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Managed:
    """What was set on segments earlier and must go where the spec no longer has it (hazard C7).

    Args:
        policies: names of topic policies.
        permissions: role -> actions that were granted.
    """

    policies: frozenset[str] = frozenset()
    permissions: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def overdone(self, permissions: Mapping[str, frozenset[str]]) -> list[str]:
        """Roles that were granted more than `permissions` gives them, sorted."""
        return sorted(
            role for role, actions in self.permissions.items() if not actions <= permissions.get(role, frozenset())
        )


@dataclass(slots=True)
class _Findings:
    problems: list[tuple[str, str]] = field(default_factory=list)
    positions: dict[int, str] = field(default_factory=dict)

    def add(self, reason: str, message: str) -> None:
        self.problems.append((reason, message))


async def repair_drift(
    ctx: OperationContext, *, managed: Managed, listing_age_seconds: float, request: Request
) -> DriftReport:
    """Compare the record with the brokers and mend what may be mended.

    Args:
        ctx: the topic; its journal is closed.
        managed: what was set earlier.
        listing_age_seconds: how old a shared listing of the namespace may be.
        request: names drift repair as the asker of a replacement operation.

    Raises NameRefused when another object has claimed the topic, BackendError when the brokers cannot be read or
    refuse a repair.
    """
    layout = ctx.store.state.layout
    if layout is None:
        return DriftReport()
    findings = _Findings()
    name = await _mend_claim(ctx)
    looks = await _looks(ctx, layout)
    for segment in layout.active:
        if looks[segment.segment_id] is None:
            await _recreate(ctx, layout, segment, looks, findings)
    strangers = await _find_strangers(ctx, layout, looks, findings)
    await _seal_left_behind(ctx, layout, name, findings)
    await _mend_seals(ctx, layout, looks, findings)
    await _check_cursors(ctx, layout, looks, findings)
    await _mend_settings(ctx, layout, looks, managed)
    await _sweep(ctx, layout, listing_age_seconds, findings)
    await _record_positions(ctx, findings)
    reopened = await _replace(ctx, layout, looks, strangers, request)
    found = ((segment.segment_id, looks[segment.segment_id]) for segment in layout.active)
    terminated = tuple(segment_id for segment_id, look in found if look is not None and look.terminated)
    return DriftReport(tuple(findings.problems), reopened, terminated)


async def _looks(ctx: OperationContext, layout: SegmentLayout) -> dict[int, SegmentLook | None]:
    async def look(segment: Segment) -> SegmentLook | None:
        try:
            return await ctx.backend.look(ctx.backend.segment_topic(ctx.topic, segment))
        except TopicMissing:
            return None

    segments = [*layout.active, *layout.sealed]
    found = await concurrently(look(segment) for segment in segments)
    return {segment.segment_id: seen for segment, seen in zip(segments, found, strict=True)}


async def _mend_claim(ctx: OperationContext) -> NameState:
    name = await require_claim(ctx)
    if not name.exists:
        await ctx.backend.take_claim(ctx.topic, ctx.claim, properties=ctx.intent.properties)
        await ctx.report("ClaimRestored", f"the claim on {ctx.topic} was missing and was made again")
    elif (
        name.claim != ctx.claim
        # Of a partitioned topic, which was migrated, each partition is looked at.
        or not (name.terminated or name.partitions)
        or await ctx.backend.topic_properties(ctx.topic) != ctx.intent.properties
    ):
        await ctx.backend.rewrite_claim(ctx.topic, ctx.claim, properties=ctx.intent.properties)
    source = ctx.store.state.migrated_from
    if name.exists and source is not None and name.migrated_from != source:
        await ctx.backend.take_over(ctx.topic, ctx.claim, source)
    return name


async def _seal_left_behind(ctx: OperationContext, layout: SegmentLayout, name: NameState, findings: _Findings) -> None:
    """What was migrated stays sealed when it has left the layout, and partitions that somebody adds are sealed, too:
    nobody would read what clients that do not know scalable topics write to them.
    """
    source = ctx.store.state.migrated_from
    if source is None:
        return
    recorded = {segment.topic for segment in layout.segments.values() if segment.topic is not None}
    partitions = max(source.partitions, name.partitions) if source.partitions else 0
    known = source.topics(ctx.topic)

    async def mend(topic: str) -> None:
        try:
            look = await ctx.backend.look(topic)
        except TopicMissing:
            return
        if look.terminated:
            return
        await seal_segment(ctx, topic, is_written_to=True)
        is_new = topic not in known
        what = "was added after the migration" if is_new else "was open again after the migration"
        message = f"{topic} {what} and was sealed; it holds {look.entries} entries that nobody reads"
        if is_new or look.entries:
            findings.add("PartitionAdded" if is_new else "LegacyTopicReopened", message)
        await ctx.report("PartitionAdded" if is_new else "LegacyTopicReopened", message)

    await concurrently(mend(topic) for topic in legacy_topics(ctx.topic, partitions) if topic not in recorded)


async def _recreate(
    ctx: OperationContext,
    layout: SegmentLayout,
    segment: Segment,
    looks: Mapping[int, SegmentLook | None],
    findings: _Findings,
) -> None:
    """An active segment without a topic gets one again, with every cursor its siblings have (R14, hazard B2)."""
    sibling_topics = [
        ctx.backend.segment_topic(ctx.topic, other) for other in layout.active if looks[other.segment_id] is not None
    ]
    inheritance = await ctx.backend.inheritance(ctx.topic, sibling_topics)
    await ctx.backend.create_segment(
        ctx.topic,
        SegmentRecord(
            segment_id=segment.segment_id,
            hash_range=segment.hash_range,
            parent_ids=segment.parent_ids,
            buckets=segment.buckets,
            merge_depth=segment.merge_depth,
            created_at_epoch=segment.created_at_epoch,
            created_at_ms=segment.created_at_ms,
            created_by=segment.created_by.value,
            operation_id=_repair_id(segment),
            sibling_ids=(segment.segment_id,),
            next_segment_id=layout.next_segment_id,
            claim=ctx.claim,
        ),
        SegmentSetup(
            subscriptions=_subscriptions(ctx, layout, looks),
            inheritance=replace(inheritance, permissions={**inheritance.permissions, **ctx.intent.permissions}),
            policies=ctx.intent.policies_for(len(layout.active)),
        ),
    )
    message = (
        f"active segment {segment.segment_id} {segment.hash_range} had no topic and was made again empty; "
        "messages it held are lost"
    )
    findings.add("SegmentLost", message)
    await ctx.report("SegmentLost", message)


async def _find_strangers(
    ctx: OperationContext, layout: SegmentLayout, looks: dict[int, SegmentLook | None], findings: _Findings
) -> frozenset[int]:
    """Active segments that were deleted and are not whole: a client made them again (hazard A1-25719a), or a repair
    that died over it.

    Each gets every cursor its siblings have, so that what was written to it meanwhile is read.
    """
    wanted = _subscriptions(ctx, layout, looks)

    async def is_stranger(segment: Segment, look: SegmentLook) -> bool:
        try:
            record = await ctx.backend.read_record(ctx.backend.segment_topic(ctx.topic, segment))
        except TopicMissing:
            return False
        return record is None or (record.operation_id == _repair_id(segment) and not wanted <= look.cursors.keys())

    present = [(segment, look) for segment in layout.active if (look := looks[segment.segment_id]) is not None]
    found = await concurrently(is_stranger(segment, look) for segment, look in present)
    strangers = [segment for (segment, _), strange in zip(present, found, strict=True) if strange]
    for segment in strangers:
        topic = ctx.backend.segment_topic(ctx.topic, segment)
        await ctx.backend.ensure_cursors(topic, sorted(wanted))
        looks[segment.segment_id] = await ctx.backend.look(topic)
        findings.add(
            "SegmentLost",
            f"active segment {segment.segment_id} {segment.hash_range} was deleted and made again incompletely; "
            "messages it held before are lost",
        )
    return frozenset(segment.segment_id for segment in strangers)


def _repair_id(segment: Segment) -> str:
    """Operation id in the record of a segment that drift repair made again."""
    return f"repair-{segment.segment_id}"


def _subscriptions(
    ctx: OperationContext, layout: SegmentLayout, looks: Mapping[int, SegmentLook | None]
) -> frozenset[str]:
    """Subscriptions that count: declared, or found on an active segment (R16)."""
    seen = [look for segment in layout.active if (look := looks[segment.segment_id]) is not None]
    found = frozenset(ctx.subscriptions).union(*(look.counting for look in seen))
    return found - ctx.store.state.not_discovered


async def _mend_seals(
    ctx: OperationContext,
    layout: SegmentLayout,
    looks: Mapping[int, SegmentLook | None],
    findings: _Findings,
) -> None:
    """Sealed segments are looked at until they are pruned: a terminate can come undone (hazard A1-26680)."""
    for segment in layout.sealed:
        look = looks[segment.segment_id]
        if look is None:
            findings.add("SealedSegmentMissing", f"sealed segment {segment.segment_id} has no topic any more")
            continue
        recorded = Position.parse(segment.sealed_position) if segment.sealed_position else None
        if look.terminated and look.last_confirmed == recorded:
            continue
        seal = await seal_segment(ctx, ctx.backend.segment_topic(ctx.topic, segment), is_written_to=True)
        if seal is None:
            continue
        findings.positions[segment.segment_id] = str(seal.position)
        if not look.terminated:
            await ctx.report(
                "SealRepaired",
                f"sealed segment {segment.segment_id} was open again and was sealed at {seal.position}",
            )


async def _check_cursors(
    ctx: OperationContext,
    layout: SegmentLayout,
    looks: Mapping[int, SegmentLook | None],
    findings: _Findings,
) -> None:
    """A declared subscription whose cursor is gone is lost, and said to be; it is never re-created (R17)."""
    subscriptions = dict(ctx.store.state.subscriptions)
    for name, entry in subscriptions.items():
        if entry.phase not in (SubscriptionPhase.ACTIVE, SubscriptionPhase.CURSOR_LOST):
            continue
        # At latest it never had one on what was sealed before (R18).
        expected = layout.active if entry.latest else layout.segments.values()
        lost_on = [
            segment.segment_id
            for segment in expected
            if (look := looks[segment.segment_id]) is not None and name not in look.cursors
        ]
        if lost_on:
            findings.add(
                "CursorLost",
                f"subscription {name} has no cursor on segments {lost_on}: somebody deleted it or it expired; "
                "remove it from spec.subscriptions and declare it again to start anew",
            )
        phase = SubscriptionPhase.CURSOR_LOST if lost_on else SubscriptionPhase.ACTIVE
        subscriptions[name] = replace(entry, phase=phase)
    if subscriptions != dict(ctx.store.state.subscriptions):
        await ctx.store.commit(replace(ctx.store.state, subscriptions=subscriptions))


async def _mend_settings(
    ctx: OperationContext,
    layout: SegmentLayout,
    looks: Mapping[int, SegmentLook | None],
    managed: Managed,
) -> None:
    policies = ctx.intent.policies_for(len(layout.active))
    overdone = managed.overdone(ctx.intent.permissions)
    revoked = [role for role in overdone if role not in ctx.intent.permissions]

    async def mend(segment: Segment) -> None:
        topic = ctx.backend.segment_topic(ctx.topic, segment)
        try:
            await ctx.backend.apply_policies(topic, policies, managed_before=managed.policies)
            if revoked:
                await ctx.backend.revoke(topic, revoked)
            if ctx.intent.permissions:
                await ctx.backend.grant(topic, ctx.intent.permissions, exactly=overdone)
        except TopicMissing:
            return

    await concurrently(
        mend(segment)
        for segment in [*layout.active, *layout.sealed]
        # What was migrated keeps what it had.
        if segment.is_active or (looks[segment.segment_id] is not None and not segment.is_legacy)
    )


async def _sweep(ctx: OperationContext, layout: SegmentLayout, listing_age_seconds: float, findings: _Findings) -> None:
    """Topics with a segment's name that the record does not know: resurrected by a client, or left behind (R19)."""
    recorded = {ctx.backend.segment_topic(ctx.topic, segment) for segment in layout.segments.values()}
    recorded |= {entry.topic for entry in ctx.store.state.deleting}
    found = await ctx.backend.list_segments(ctx.topic, max_age_seconds=listing_age_seconds)
    for stray in found:
        if stray.topic not in recorded and stray.segment_id < layout.next_segment_id:
            await _sweep_one(ctx, stray, findings)


async def _sweep_one(ctx: OperationContext, stray: FoundSegment, findings: _Findings) -> None:
    try:
        look = await ctx.backend.look(stray.topic)
    except TopicMissing:
        return
    if look.entries or look.producers:
        findings.add(
            "StraySegment",
            f"{stray.topic} is not part of the layout but has {look.entries} entries and {len(look.producers)} "
            "producers; somebody uses it directly",
        )
        return
    try:
        await ctx.backend.delete_segment(stray.topic, force=look.consumers > 0)
    except ClientsAttached:
        return
    await ctx.report(
        "StraySegmentSwept",
        f"{stray.topic} was not part of the layout and empty; it was deleted",
        warning=False,
    )


async def _record_positions(ctx: OperationContext, findings: _Findings) -> None:
    state = ctx.store.state
    layout = state.layout
    if layout is None or not findings.positions:
        return
    for segment_id, position in findings.positions.items():
        layout = layout.with_sealed_position(segment_id, position)
    if layout != state.layout:
        await ctx.store.commit(replace(state, layout=layout))


async def _replace(
    ctx: OperationContext,
    layout: SegmentLayout,
    looks: Mapping[int, SegmentLook | None],
    strangers: frozenset[int],
    request: Request,
) -> bool:
    """An active segment that somebody sealed or deleted is rolled over to a successor (R14, hazard B1)."""
    for segment in layout.active:
        look = looks[segment.segment_id]
        made_again = segment.segment_id in strangers
        if look is None or not (look.terminated or made_again):
            continue
        await ctx.report(
            "SegmentReplaced",
            f"active segment {segment.segment_id} {segment.hash_range} was "
            f"{'deleted and made again incompletely' if made_again else 'sealed'} behind our back; a successor of the "
            "same range replaces it",
        )
        await open_reshape(ctx, layout.plan_rollover(segment.segment_id), request)
        return True
    return False
