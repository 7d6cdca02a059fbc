"""Migrations of ordinary topics, asked for by `spec.migrateFrom` or by a SegmentOperation (pip-475 §2)."""

from __future__ import annotations

from typing import Any, Protocol

from pydantic import ValidationError

from scalable_topics.layout import TopicName
from scalable_topics_operator.api.segment_operation import SegmentOperation
from scalable_topics_operator.controllers.operation_queue import DRY_RUN, OperationQueue
from scalable_topics_operator.controllers.topic_work import TopicWork, TopicWorkMaker, WorkT, WorkT_contra
from scalable_topics_operator.operations.errors import BackendRefused, BackendUnavailable, MigrationRefused, Unsupported
from scalable_topics_operator.operations.journal import Request, Result
from scalable_topics_operator.operations.legacy_survey import LegacySurvey
from scalable_topics_operator.operations.migrate import no_such_topic
from scalable_topics_operator.operations.preflight import CLIENTS_SHOWN, Obstacle, Preflight, notes_of, preflight
from scalable_topics_operator.operations.protocols import NameState, TopicBackend


class Migrator(Protocol[WorkT_contra]):
    """Migrates topics of one backend."""

    def ordinary(self, work: WorkT_contra) -> TopicBackend:
        """Where the ordinary topic is."""

    async def open_migration(self, work: WorkT_contra, survey: LegacySurvey, request: Request, *, force: bool) -> None:
        """Journal a migration of what was surveyed and found fit. Raises BackendError."""


class Migrations:
    """Looks whether what is asked for may be done, tells of it, and begins it.

    Args:
        operations: SegmentOperations that wait.
        maker: tells what connections allow.
    """

    def __init__(self, operations: OperationQueue, maker: TopicWorkMaker) -> None:
        self._operations = operations
        self._maker = maker

    async def answer(self, work: WorkT, name: NameState, migrator: Migrator[WorkT]) -> bool:
        """Answer the SegmentOperations that ask for a migration of a topic without a layout, and begin the first that
        may be; whether one was begun. Those that must wait for `spec.paused` wait.

        Raises BackendUnavailable.
        """
        for entry in self._operations.migrations(work.key):
            try:
                spec = SegmentOperation.model_validate(entry.body).spec
                if work.spec.paused and not spec.dry_run:
                    return False
                force = spec.migrate is not None and spec.migrate.force
                found = await self._look(work, name, migrator, force=force)
                if spec.dry_run:
                    plan = plan_of(found, force=force)
                    await self._operations.succeed(entry, DRY_RUN, {"plan": plan})
                    continue
                await self._begin(work, found, entry.request, migrator, force=force)
                return True
            except MigrationRefused as refused:
                await self._operations.fail(entry, str(refused), refused.reason)
            except ValidationError as error:
                await self._operations.fail(entry, error.errors()[0]["msg"], "InvalidRequest")
            except BackendRefused as refused:
                await self._operations.fail(entry, str(refused), "BrokerRefused")
        return False

    async def begin_declared(self, work: WorkT, name: NameState, migrator: Migrator[WorkT]) -> None:
        """Begin the migration that `spec.migrateFrom` asks for.

        Raises MigrationRefused while it may not be, BackendError.
        """
        wanted = work.spec.migrate_from
        force = wanted is not None and wanted.force
        found = await self._look(work, name, migrator, force=force)
        await self._begin(work, found, work.request, migrator, force=force)

    async def _begin(
        self, work: WorkT, found: Preflight, request: Request, migrator: Migrator[WorkT], *, force: bool
    ) -> None:
        if found.obstacles:
            raise MigrationRefused(found.obstacles[0].reason, "; ".join(one.message for one in found.obstacles))
        await migrator.open_migration(work, found.survey, request, force=force)

    async def _look(self, work: WorkT, name: NameState, migrator: Migrator[WorkT], *, force: bool) -> Preflight:
        found = await look_at_ordinary(
            migrator.ordinary(work),
            work.topic,
            name,
            bucket_budget=work.ctx.declared.bucket_budget,
            force=force,
            enabled=work.ctx.settings.migration_enabled,
        )
        forbidden = self._maker.why_forbidden(work, "Migrate")
        if not forbidden:
            return found
        return Preflight(found.survey, found.children, (Obstacle("NotAllowed", forbidden), *found.obstacles))


def not_migrated(work: TopicWork) -> Exception:
    """Why a topic that was to be migrated has no layout yet."""
    last = work.store.state.actions[-1]
    if last.result is Result.ROLLED_BACK:
        return BackendUnavailable(f"{work.topic}: {last.message}; the migration is begun anew")
    return MigrationRefused("NotMigrated", last.message)


async def look_at_ordinary(
    backend: TopicBackend, topic: TopicName, name: NameState, *, bucket_budget: int, force: bool, enabled: bool
) -> Preflight:
    """What a migration would meet; nothing is changed.

    Args:
        backend: the brokers.
        topic: its name.
        name: what exists under it.
        bucket_budget: entry buckets that the scalable topic would have.
        force: whether clients that do not know scalable topics would be cut off.
        enabled: whether this operator migrates at all.

    Raises MigrationRefused where there is nothing to migrate, BackendError.
    """
    if name.claim is not None:
        owner = f"{name.claim.resource_namespace}/{name.claim.resource_name}"
        raise MigrationRefused("AlreadyScalable", f"{topic} is a scalable topic already, of ScalableTopic {owner}")
    survey = await backend.survey(topic)
    if survey is None:
        raise no_such_topic(topic)
    unfit = ""
    try:
        # The layout topic besides.
        await backend.require_fit(topic, more_topics=max(1, survey.partitions) + 1)
    except Unsupported as refused:
        unfit = str(refused)
    return preflight(topic, survey, bucket_budget=bucket_budget, force=force, unfit=unfit, enabled=enabled)


def plan_of(found: Preflight, *, force: bool) -> dict[str, Any]:
    """What a dry run answers, as `status.plan` has it. Pure."""
    survey = found.survey
    return {
        "parents": [{"id": number, "range": "0000-ffff"} for number in range(max(1, survey.partitions))],
        "children": [
            {"id": child.segment_id, "range": child.hash_range.descriptor, "buckets": child.buckets}
            for child in found.children
        ],
        "subscriptions": sorted(survey.backlogs),
        "notes": notes_of(found, force=force),
        "migration": report_of(found),
    }


def report_of(found: Preflight) -> dict[str, Any]:
    """What a preflight found, as the API has it. Pure."""
    survey = found.survey
    return {
        "partitions": survey.partitions,
        "entries": found.entries,
        "storageBytes": found.storage_bytes,
        "subscriptions": [
            {"name": name, "kind": survey.kinds[name], "backlogEntries": backlog}
            for name, backlog in survey.backlogs.items()
        ],
        "clientCount": len(survey.clients),
        "clients": [
            {
                "role": client.role,
                "topic": client.topic,
                "name": client.name,
                "address": client.address,
                "version": client.version,
                "subscription": client.subscription,
            }
            for client in survey.clients[:CLIENTS_SHOWN]
        ],
        "properties": sorted(survey.properties),
        "policies": survey.policies.to_json(),
        "policiesNotCarried": list(survey.other_policies),
        "schemas": survey.schemas,
        "obstacles": [{"reason": one.reason, "message": one.message} for one in found.obstacles],
    }
