"""What a migration does besides what every change of a layout does (pip-475 §2.4, R1, R9, R24).

The old topics are the parents, as the layout that models them says. They are claimed before anything is made, checked
once more before their seal is announced, and sealed before the commit: nobody can write to what was and to what is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from scalable_topics.layout import TopicName, migrated_layout, planned_initial
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.operations.claims import why_lost
from scalable_topics_operator.operations.context import OperationContext, concurrently
from scalable_topics_operator.operations.errors import MigrationRefused, TopicMissing
from scalable_topics_operator.operations.journal import Operation, OperationKind, Request, Step
from scalable_topics_operator.operations.journaling import new_operation
from scalable_topics_operator.operations.legacy_survey import LegacySurvey
from scalable_topics_operator.operations.migrated_from import MigratedFrom, Migration
from scalable_topics_operator.operations.preflight import legacy_clients_text
from scalable_topics_operator.operations.protocols import Claim
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase, SubscriptionState
from scalable_topics_operator.operations.topic_state import TopicState


async def open_migration(
    ctx: OperationContext, survey: LegacySurvey, request: Request, *, force: bool, skipped_ids: int = 0
) -> None:
    """Journal a migration of what was surveyed and found fit (R8).

    Args:
        ctx: the topic, which has no layout.
        survey: what there is under its name.
        request: who asked.
        force: whether clients that do not know scalable topics are cut off.
        skipped_ids: how many ids are left out, where attempts may have used some of which nothing tells (R9).
    """
    source = source_of(survey, at_ms=ctx.clock.now_ms())
    first_id = await _first_child_id(ctx, source.topic_count) + skipped_ids
    # A subscription that is being deleted does not survive the migration (R16).
    wanted = (frozenset(ctx.subscriptions) | frozenset(survey.backlogs)) - ctx.store.state.not_discovered
    operation = _operation(ctx, Migration(source, force), Step.CREATING, request, first_id, wanted)
    await ctx.store.commit(replace(ctx.store.state, operation=operation, incarnation=ctx.new_incarnation()))
    ctx.opened_here.add(operation.id)


def source_of(survey: LegacySurvey, *, at_ms: int) -> MigratedFrom:
    """What a migration of a surveyed topic keeps of it. Pure."""
    return MigratedFrom(
        survey.partitions,
        at_ms,
        properties=dict(survey.properties),
        policies=survey.policies,
        kinds=survey.kinds,
    )


def no_such_topic(topic: TopicName) -> MigrationRefused:
    """What is said where there is nothing to migrate."""
    return MigrationRefused(
        "TopicMissing", f"there is no topic {topic.persistent} to migrate; create it, or remove spec.migrateFrom"
    )


async def begin_migration(ctx: OperationContext, migration: Migration) -> None:
    """Claim the old topic, before anything is made. Raises NameTaken, MigrationRefused, BackendError."""
    try:
        await ctx.backend.take_over(ctx.topic, ctx.claim, migration.source)
    except TopicMissing:
        raise no_such_topic(ctx.topic) from None


async def begin_again_sealed(
    ctx: OperationContext, source: MigratedFrom, request: Request, *, first_child_id: int
) -> None:
    """Journal a migration whose old topics are sealed and whose segments are gone, past its point of no return (R8)."""
    migration = Migration(source, force=True)
    operation = _operation(ctx, migration, Step.SEALING, request, first_child_id, ctx.subscriptions)
    await ctx.store.commit(replace(ctx.store.state, operation=operation, incarnation=ctx.new_incarnation()))
    await ctx.report(
        "SegmentLost",
        f"{ctx.topic} was migrated, and the segments that took over are gone with what they held; they are made again",
    )


async def check_migration(ctx: OperationContext, migration: Migration) -> None:
    """Look once more whether the old topic may be sealed, now that the children are there.

    Of two installations that claim it at once the later one finds the children of the other: each has made its own
    before it reads the claim for the last time. Raises MigrationRefused, BackendError.
    """
    other = await _other_owner(ctx)
    if other is not None:
        await ctx.backend.take_over(ctx.topic, other, migration.source)
        raise MigrationRefused(
            "ClaimedElsewhere",
            f"ScalableTopic {other.resource_namespace}/{other.resource_name} of another operator installation migrates "
            "this topic at this moment",
        )
    name = await ctx.backend.read_name(ctx.topic)
    lost = why_lost(name, ctx.claim)
    if lost or name.claim is None:
        raise MigrationRefused("ClaimLost", lost or f"the claim on {ctx.topic.persistent} was taken away")
    if name.partitions != migration.source.partitions:
        raise MigrationRefused(
            "PartitionsChanged",
            f"{ctx.topic.persistent} has {name.partitions} partitions now and had {migration.source.partitions}",
        )
    if not migration.force:
        clients = await ctx.backend.legacy_clients(migration.source.topics(ctx.topic))
        if clients:
            raise MigrationRefused("LegacyClients", legacy_clients_text(clients))


async def give_notice(ctx: OperationContext, migration: Migration) -> None:
    """Let producers find the layout topic before a seal is announced on it (R13).

    Where brokers make topics by themselves their Readers have made it, and are told at once; where they do not, they
    look for it now and then. Raises BackendError.
    """
    if not await ctx.backend.make_layout_topic(ctx.topic):
        return

    async def attached(topic: str) -> frozenset[str]:
        try:
            return await ctx.backend.producers(topic)
        except TopicMissing:
            return frozenset()

    if any(await concurrently(attached(topic) for topic in migration.source.topics(ctx.topic))):
        await ctx.clock.sleep(ctx.settings.notice_seconds)


async def undo_migration(ctx: OperationContext, source: MigratedFrom) -> None:
    """Leave the old topic as it was: nothing of it was sealed.

    Nothing is done to one that bears the mark of a later migration: whoever calls an earlier one off was deposed, and
    slept meanwhile (R8). Raises BackendError.

    Args:
        ctx: the topic.
        source: what the migration that is undone has marked it with.
    """
    name = await ctx.backend.read_name(ctx.topic)
    is_later = name.migrated_from is not None and name.migrated_from.at_ms > source.at_ms
    if not is_later and not why_lost(name, ctx.claim):
        await ctx.backend.let_go(ctx.topic)
        await ctx.backend.delete_layout_topic(ctx.topic)
    ctx.published.message, ctx.published.behind = None, False


def migrated_state(
    ctx: OperationContext,
    operation: Operation,
    migration: Migration,
    sealed_positions: Mapping[int, str],
    on_parents: Collection[str],
    *,
    now_ms: int,
) -> TopicState:
    """The state to commit once the old topics are sealed.

    Args:
        ctx: the topic.
        operation: the open journal.
        migration: what it migrates.
        sealed_positions: where each old topic ends, by segment id.
        on_parents: subscriptions that have cursors on the old topics.
        now_ms: wall clock.
    """
    layout = migrated_layout(
        ctx.topic,
        migration.source.partitions,
        ctx.declared.bucket_budget,
        now_ms,
        first_child_id=operation.children[0].segment_id,
        sealed_positions=sealed_positions,
    )
    subscriptions = {
        name: SubscriptionState(
            name,
            # At latest it reads nothing of what was before, and what comes is there for it already.
            SubscriptionPhase.ACTIVE if name in on_parents else SubscriptionPhase.CREATING,
            declared.latest and name not in on_parents,
            declared.delete_with_entry,
        )
        for name, declared in ctx.subscriptions.items()
    }
    return replace(
        ctx.store.state,
        layout=layout,
        subscriptions={**ctx.store.state.subscriptions, **subscriptions},
        clocks=Clocks.of(layout.segments.values()),
        migrated_from=migration.source,
    )


def _operation(
    ctx: OperationContext,
    migration: Migration,
    step: Step,
    request: Request,
    first_child_id: int,
    subscriptions: Iterable[str],
) -> Operation:
    count = migration.source.topic_count
    children = planned_initial(count, bucket_budget=ctx.declared.bucket_budget, first_id=first_child_id)
    return new_operation(
        ctx,
        OperationKind.MIGRATE,
        step,
        request,
        parents=tuple(range(count)),
        children=children,
        subscriptions=tuple(sorted(subscriptions)),
        next_segment_id=first_child_id + len(children),
        migration=migration,
    )


async def _first_child_id(ctx: OperationContext, topics: int) -> int:
    """Above the ids of the old topics, and above all that earlier attempts have used (R9)."""
    used = [child for action in ctx.store.state.actions for child in action.children]
    found = await ctx.backend.list_segments(ctx.topic)
    return max([topics, *(one + 1 for one in used), *(segment.segment_id + 1 for segment in found)])


async def _other_owner(ctx: OperationContext) -> Claim | None:
    """Which other installation's segments there are; what former objects of this one have left behind is nobody's."""

    async def owner(segment_topic: str) -> Claim | None:
        try:
            record = await ctx.backend.read_record(segment_topic)
        except TopicMissing:
            return None
        return record.claim if record is not None else None

    found = await ctx.backend.list_segments(ctx.topic)
    owners = await concurrently(owner(segment.topic) for segment in found)
    return next((one for one in owners if one is not None and not one.shares_installation(ctx.claim)), None)
