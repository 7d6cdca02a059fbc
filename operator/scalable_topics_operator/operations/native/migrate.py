"""Migration by the brokers' own endpoint, with the repairs that it lacks (pip-475 §2, DESIGN §7).

The brokers commit first and seal the old topics afterwards, once, best effort; who dies in between leaves them open for
old clients. So the seal is verified here, and repeated until it holds; and every subscription that the old topics have
is made known to the new one, or the brokers would prune what it has not read.
"""

from __future__ import annotations

from dataclasses import replace

from scalable_topics.layout import planned_initial
from scalable_topics_operator.operations.context import concurrently
from scalable_topics_operator.operations.errors import BackendRefused, TopicMissing
from scalable_topics_operator.operations.journal import Operation, OperationKind, Request, Result, Step
from scalable_topics_operator.operations.journaling import close_journal, new_operation, open_journal
from scalable_topics_operator.operations.legacy_survey import STREAM, LegacySurvey
from scalable_topics_operator.operations.migrate import source_of
from scalable_topics_operator.operations.migrated_from import Migration
from scalable_topics_operator.operations.native.context import NativeContext
from scalable_topics_operator.operations.native.observe import record
from scalable_topics_operator.operations.native.protocols import NativeTopic
from scalable_topics_operator.operations.seal import seal_segment


async def open_migration(ctx: NativeContext, survey: LegacySurvey, request: Request, *, force: bool) -> None:
    """Journal a migration of what was surveyed and found fit (R8)."""
    source = source_of(survey, at_ms=ctx.clock.now_ms())
    count = source.topic_count
    children = planned_initial(count, bucket_budget=ctx.declared.bucket_budget, first_id=count)
    operation = new_operation(
        ctx,
        OperationKind.MIGRATE,
        Step.CALLING,
        request,
        parents=tuple(range(count)),
        children=children,
        subscriptions=tuple(sorted(survey.backlogs)),
        next_segment_id=2 * count,
        migration=Migration(source, force),
    )
    await open_journal(ctx, operation)


async def advance_migration(ctx: NativeContext, operation: Operation, migration: Migration) -> None:
    """Take an open migration to its end, whoever opened it. A refusal ends it as failed, with nothing changed.

    Raises BackendUnavailable; the same call later goes on.
    """
    found = await ctx.backend.read(ctx.topic)
    refused = ""
    if found is None:
        try:
            await ctx.backend.migrate(ctx.topic, force=migration.force)
        except BackendRefused as refusal:
            refused = str(refusal)
        found = await ctx.backend.read(ctx.topic)
    if found is None or not was_migrated(found, migration.source.topic_count):
        why = refused or f"the brokers have a scalable topic {ctx.topic} that is not the migrated one"
        await close_journal(ctx, operation, Result.FAILED, why)
        return
    await record(ctx, found)
    await _seal_old_topics(ctx, found)
    await _know_subscriptions(ctx, operation, migration)
    await ctx.store.commit(replace(ctx.store.state, migrated_from=migration.source))
    await close_journal(ctx, operation, Result.SUCCEEDED)


def is_migrated(found: NativeTopic) -> bool:
    """Whether a topic of the brokers was an ordinary one; what was pruned of it does not tell any more. Pure."""
    return any(segment.is_legacy for segment in found.layout.segments.values())


def was_migrated(found: NativeTopic, topic_count: int) -> bool:
    """Whether a topic of the brokers is what became of an ordinary one of so many topics, pruned of these or not. Pure.

    Brokers prune old topics that are drained within a minute, which may pass before anybody goes on with the journal.
    What took over has the ids behind theirs from the first epoch on, where a topic made as such begins with 0.
    """
    first = [one.segment_id for one in found.layout.segments.values() if one.created_at_epoch == 0]
    return is_migrated(found) or (bool(first) and min(first) >= topic_count)


async def mend_old_topics(ctx: NativeContext, found: NativeTopic) -> None:
    """Seal an old topic that is open: brokers do not, and nobody would read what old clients write. Raises
    BackendError.
    """

    async def mend(topic: str) -> None:
        try:
            look = await ctx.ordinary.backend.look(topic)
        except TopicMissing:
            return
        if not look.terminated:
            await seal_segment(ctx.ordinary, topic, is_written_to=True)
            await ctx.report("SealRepaired", f"{topic} takes part in a migration and was open; it was sealed")

    await concurrently(mend(topic) for topic in _old_topics(found))


async def _seal_old_topics(ctx: NativeContext, found: NativeTopic) -> None:
    await concurrently(seal_segment(ctx.ordinary, topic, is_written_to=True) for topic in _old_topics(found))


async def _know_subscriptions(ctx: NativeContext, operation: Operation, migration: Migration) -> None:
    """Make every subscription known, whatever the brokers' statistics show: those count the cursors of old topics, too,
    while the record has no such subscription and the new segments no cursor that would keep what is sent (measured).
    """
    for name in operation.subscriptions:
        ordered = migration.source.kinds.get(name) == STREAM
        await ctx.backend.create_subscription(ctx.topic, name, ordered=ordered)


def _old_topics(found: NativeTopic) -> list[str]:
    return [segment.topic for segment in found.layout.segments.values() if segment.topic is not None]
