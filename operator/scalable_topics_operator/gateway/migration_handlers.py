"""Ordinary topics made scalable ones through REST (pip-475 §2.1, R32, R33)."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from scalable_topics_operator.autoscale.policy import bucket_budget
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey, key_of
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.migrations import look_at_ordinary, plan_of
from scalable_topics_operator.controllers.policy_book import PolicyBook
from scalable_topics_operator.gateway import operation_routes
from scalable_topics_operator.gateway.acting import CallerWrites
from scalable_topics_operator.gateway.brokers import Brokers, answering
from scalable_topics_operator.gateway.common_parameters import DRY_RUN, FORCE
from scalable_topics_operator.gateway.declaring import TopicDeclarations, as_yaml, topic_manifest
from scalable_topics_operator.gateway.object_names import object_name
from scalable_topics_operator.gateway.operation_making import OperationMaker
from scalable_topics_operator.gateway.reason_statuses import status_of
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import Bound, Call, RestAdmission
from scalable_topics_operator.gateway.route import Right
from scalable_topics_operator.gateway.topic_directory import Unfound
from scalable_topics_operator.operations.errors import MigrationRefused, NamespaceMissing
from scalable_topics_operator.operations.preflight import Preflight


class MigrationHandlers:
    """Handles migrations: by a SegmentOperation where a ScalableTopic declares the topic, else by a ScalableTopic.

    Args:
        admission: finds topics and asks for rights.
        writes: knows whether callers may write.
        operations: makes SegmentOperations.
        declarations: makes ScalableTopics.
        brokers: asked what a migration would meet.
        book: knows how many entry buckets a topic would get.
        enabled: whether this operator migrates.
    """

    def __init__(
        self,
        admission: RestAdmission,
        writes: CallerWrites,
        operations: OperationMaker,
        declarations: TopicDeclarations,
        brokers: Brokers,
        book: PolicyBook,
        *,
        enabled: bool,
    ) -> None:
        self._admission = admission
        self._writes = writes
        self._operations = operations
        self._declarations = declarations
        self._brokers = brokers
        self._book = book
        self._enabled = enabled

    def bound(self) -> list[Bound]:
        """What it answers."""
        return [(operation_routes.MIGRATE, self._migrate)]

    async def _migrate(self, call: Call) -> web.StreamResponse:
        try:
            subject = await self._admission.topic(call)
        except Unfound as unfound:
            if unfound.status != 404:
                raise
            return await self._migrate_undeclared(call)
        if subject.status.get("layout"):
            self._writes.require_enabled()
            raise Refusal(409, f"{subject.topic} is a scalable topic already")
        return await self._operations.operate(call, subject, "Migrate", {"force": _force(call)})

    async def _migrate_undeclared(self, call: Call) -> web.StreamResponse:
        topic = call.topic
        # Whoever may migrate a topic may not delete its data for that.
        spec: dict[str, Any] = {
            "migrateFrom": {"topic": str(topic), "force": _force(call)},
            "deletionPolicy": "Retain",
        }
        mapping = self._declarations.mapping_of(call, spec)
        manifest = topic_manifest(topic, mapping.connection, mapping.namespace, spec)
        dry_run = call.values.get(DRY_RUN) or False
        if not dry_run:
            self._writes.require_enabled(as_yaml(manifest))
        await self._admission.require(call, Right("produce", TOPICS), mapping.namespace, object_name(topic.local))
        await self._admission.require(call, Right("create", TOPICS), mapping.namespace)
        mapping.require_allowed(mapping.namespace, topic, "Migrate")
        self._declarations.require_free(topic, mapping)
        found = await self._look(call, mapping.connection, manifest)
        if dry_run:
            plan = plan_of(found, force=_force(call))
            return web.json_response({"message": "dry run: nothing was changed", "plan": plan})
        if found.obstacles:
            raise Refusal(
                status_of(found.obstacles[0].reason),
                f"{topic} cannot be migrated: " + "; ".join(one.message for one in found.obstacles),
            )
        return await self._declarations.make(call, manifest, "cannot be migrated")

    async def _look(self, call: Call, connection: ObjectKey, manifest: Body) -> Preflight:
        """What the migration would meet, so that what is refused makes no object. Raises Refusal."""
        backend, topic = self._brokers.of(connection), call.topic
        budget = bucket_budget(self._book.expected(key_of(TOPICS, manifest), manifest))
        async with answering():
            try:
                name = await backend.read_name(topic)
                return await look_at_ordinary(
                    backend, topic, name, bucket_budget=budget, force=_force(call), enabled=self._enabled
                )
            except MigrationRefused as refused:
                raise Refusal(status_of(refused.reason), f"{topic} cannot be migrated: {refused}") from None
            except NamespaceMissing as missing:
                raise Refusal(404, f"{topic} cannot be migrated: {missing}") from None


def _force(call: Call) -> bool:
    return call.values.get(FORCE) or False
