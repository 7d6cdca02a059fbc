"""R32, R33, pip-475: ordinary topics are migrated through REST, and pointed to migration where segments are needed."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from scalable_topics.layout import TopicName
from scalable_topics_operator.api.scalable_topic import ScalableTopic
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from scalable_topics_operator.operations.errors import BackendUnavailable
from scalable_topics_operator.operations.legacy_survey import (
    LegacyClient,
    LegacySubscription,
    LegacySurvey,
    LegacyTopic,
)
from scalable_topics_operator.operations.protocols import Claim, NameState
from tests.unit.gateway.model_kubernetes import BOB
from tests.unit.gateway.rest_world import READY, TOPIC_URL, RestWorld, connection, rest_world
from tests.unit.gateway.topics import ORDERS

OLD = TopicName("acme", "shop", "old")
OLD_URL = "/admin/v2/scalable/acme/shop/old"
CLIENT = LegacyClient("Consumer", OLD.persistent, "reader", "10.0.0.7:4242", "Pulsar-Java-v3.0.0", "billing")


def _has_ordinary(world: RestWorld, topic: TopicName = OLD, *clients: LegacyClient, **more: Any) -> None:
    """Have an ordinary topic of two partitions."""
    parts = tuple(
        LegacyTopic(
            f"{topic.persistent}-partition-{number}",
            entries=5,
            storage_bytes=100,
            subscriptions={"billing": LegacySubscription(counts=True, kind="Stream", backlog=2)},
            clients=clients if number == 0 else (),
            **more,
        )
        for number in range(2)
    )
    world.brokers.names[topic] = NameState(exists=True, partitions=2)
    world.brokers.surveys[topic] = LegacySurvey(partitions=2, topics=parts)


def _without_layout(world: RestWorld, reason: str = "NameTaken") -> None:
    condition = {"type": "Ready", "status": "False", "reason": reason, "message": "as it is"}
    world.kubernetes.set_status(world.topic, {"conditions": [condition], "observedGeneration": 1})


def _become(world: RestWorld, *conditions: dict[str, str]) -> None:
    world.kubernetes.becomes = lambda body: {"observedGeneration": 1, "conditions": list(conditions)}


def _stalled(reason: str, message: str) -> list[dict[str, str]]:
    said = {"reason": reason, "message": message}
    return [{"type": "Ready", "status": "False", **said}, {"type": "Stalled", "status": "True", **said}]


def _declared(world: RestWorld) -> list[Body]:
    return [one for one in world.kubernetes.all_of(TOPICS) if one["metadata"]["name"] == "old"]


async def test_a_declared_topic_is_migrated_by_an_operation_of_the_callers() -> None:
    async with rest_world() as world:
        _without_layout(world)
        _become(world)
        world.kubernetes.becomes = lambda body: {"phase": "Succeeded", "message": "done"}
        answer = await world.ask("POST", f"{TOPIC_URL}/migrate?force=true&ttlSecondsAfterFinished=60")
        assert answer.status == 204
        (made,) = world.kubernetes.all_of(SEGMENT_OPERATIONS)
        assert made["spec"] == {
            "scalableTopic": "orders",
            "type": "Migrate",
            "migrate": {"force": True},
            "ttlSecondsAfterFinished": 60,
        }
        assert world.kubernetes.acted == [("alice", "create", "segmentoperations")]


async def test_a_scalable_topic_is_migrated_already_and_nothing_is_made() -> None:
    async with rest_world() as world:
        answer = await world.ask("POST", f"{TOPIC_URL}/migrate")
        assert (answer.status, "is a scalable topic already" in answer.reason) == (409, True)
        assert world.kubernetes.acted == []


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("TopicMissing", 404),
        ("AlreadyScalable", 409),
        ("LegacyClients", 409),
        ("NotMigrated", 409),
        ("Unsupported", 412),
        ("Terminated", 412),
        ("TooManyPartitions", 412),
        ("MigrationDisabled", 412),
        ("NotAllowed", 403),
    ],
)
async def test_a_refusal_is_told_with_its_reason_and_leaves_no_topic_behind(reason: str, status: int) -> None:
    async with rest_world() as world:
        _without_layout(world)
        world.kubernetes.becomes = lambda body: {"phase": "Failed", "reason": reason, "message": "not now"}
        answer = await world.ask("POST", f"{TOPIC_URL}/migrate")
        assert (answer.status, answer.reason) == (status, "not now")
        _has_ordinary(world)
        _become(world, *_stalled(reason, "not now"))
        answer = await world.ask("POST", f"{OLD_URL}/migrate")
        assert (answer.status, answer.reason) == (status, "topic://acme/shop/old cannot be migrated: not now")
        assert _declared(world) == []
        assert world.kubernetes.acted[-2:] == [("alice", "create", TOPICS.plural), ("alice", "delete", TOPICS.plural)]


async def test_what_nobody_declares_is_declared_with_its_migration() -> None:
    async with rest_world() as world:
        _has_ordinary(world)
        _become(world, *READY)
        assert (await world.ask("POST", f"{OLD_URL}/migrate?force=true")).status == 204
        (made,) = _declared(world)
        assert made["spec"] == {
            "topic": "topic://acme/shop/old",
            "connectionRef": {"name": "pulsar"},
            "migrateFrom": {"topic": "topic://acme/shop/old", "force": True},
            "deletionPolicy": "Retain",
        }
        assert world.kubernetes.acted == [("alice", "create", TOPICS.plural)]


async def test_what_the_operator_has_begun_meanwhile_is_not_taken_away() -> None:
    """The object that stalled for a moment has changed by the time it would be deleted."""
    async with rest_world(wait_seconds=0.1) as world:
        _has_ordinary(world)
        _become(world, *_stalled("LegacyClients", "one is attached"))

        def begin() -> None:
            (body,) = _declared(world)
            world.kubernetes.set_status(body, {"observedGeneration": 1, "operation": {"id": "migrate-1"}})

        world.kubernetes.before_delete = begin
        answer = await world.ask("POST", f"{OLD_URL}/migrate")
        assert (answer.status, "is made, and not ready yet" in answer.reason) == (202, True)
        assert len(_declared(world)) == 1


async def test_what_is_not_decided_in_time_goes_on() -> None:
    async with rest_world(wait_seconds=0.05) as world:
        _has_ordinary(world)
        answer = await world.ask("POST", f"{OLD_URL}/migrate")
        assert (answer.status, answer.reason) == (202, "ScalableTopic shop/old is made, and not ready yet")
        assert len(_declared(world)) == 1


@pytest.mark.parametrize(
    ("clients", "more", "enabled", "unfit", "status", "words"),
    [
        ((CLIENT, CLIENT), {}, True, "", 409, "2 connections of clients that do not know scalable topics"),
        ((), {"is_terminated": True}, True, "", 412, "is sealed already"),
        ((), {"is_compacted": True}, True, "", 412, "is compacted"),
        ((), {}, True, "acme/shop is replicated", 412, "acme/shop is replicated"),
        ((), {}, False, "", 412, "--migration-enabled"),
    ],
)
async def test_what_is_refused_beforehand_makes_no_object(
    clients: tuple[LegacyClient, ...], more: dict[str, Any], enabled: bool, unfit: str, status: int, words: str
) -> None:
    async with rest_world(migration_enabled=enabled) as world:
        _has_ordinary(world, OLD, *clients, **more)
        world.brokers.unfit = unfit
        answer = await world.ask("POST", f"{OLD_URL}/migrate")
        assert (answer.status, words in answer.reason) == (status, True), answer.body
        # A dry run says the same, and is no failure.
        answer = await world.ask("POST", f"{OLD_URL}/migrate?dryRun=true")
        assert answer.status == 200
        assert any(words in one["message"] for one in answer.body["plan"]["migration"]["obstacles"])
        assert world.kubernetes.acted == []


async def test_there_must_be_something_to_migrate_that_nobody_else_has() -> None:
    async with rest_world() as world:
        answer = await world.ask("POST", f"{OLD_URL}/migrate")
        assert (answer.status, "there is no topic persistent://acme/shop/old" in answer.reason) == (404, True)
        assert (await world.ask("POST", f"{OLD_URL}/migrate?dryRun=true")).status == 404
        claim = Claim("other", "other-cluster", "uid-9", "theirs", "old", "Classic")
        world.brokers.names[OLD] = NameState(exists=True, claim=claim)
        answer = await world.ask("POST", f"{OLD_URL}/migrate")
        assert (answer.status, "of ScalableTopic theirs/old" in answer.reason) == (409, True)
        world.brokers.error = BackendUnavailable("no route")
        assert (await world.ask("POST", f"{OLD_URL}/migrate")).status == 503
        assert world.kubernetes.acted == []


async def test_a_dry_run_tells_what_would_be_done() -> None:
    async with rest_world(writes=False) as world:
        _has_ordinary(world, OLD, CLIENT)
        answer = await world.ask("POST", f"{OLD_URL}/migrate?dryRun=true&force=true")
        assert (answer.status, answer.body["message"]) == (200, "dry run: nothing was changed")
        plan = answer.body["plan"]
        assert [one["id"] for one in plan["children"]] == [2, 3]
        report = plan["migration"]
        assert (report["partitions"], report["entries"], report["clientCount"]) == (2, 10, 1)
        assert report["subscriptions"] == [{"name": "billing", "kind": "Stream", "backlogEntries": 4}]
        assert report["clients"][0]["address"] == "10.0.0.7:4242"
        assert report["obstacles"] == []
        assert (await world.ask("POST", f"{OLD_URL}/migrate")).status == 405


async def test_without_a_mapping_the_manifest_to_apply_is_told() -> None:
    async with rest_world(mapped=False) as world:
        _has_ordinary(world)
        answer = await world.ask("POST", f"{OLD_URL}/migrate?connection=shop/pulsar")
        assert answer.status == 405
        spec = ScalableTopic.model_validate(yaml.safe_load(answer.body["manifest"])).spec
        assert spec.migrate_from is not None
        assert (spec.migrate_from.topic, spec.deletion_policy) == ("topic://acme/shop/old", "Retain")
        # Where nothing says which cluster is meant, none is asked.
        assert (await world.ask("POST", f"{OLD_URL}/split/0")).status == 404


@pytest.mark.parametrize("right", [("produce", TOPICS.plural), ("create", TOPICS.plural)])
async def test_r33_rights_are_needed_before_anything_is_told_or_made(right: tuple[str, str]) -> None:
    async with rest_world() as world:
        _has_ordinary(world)
        world.kubernetes.denied = {right}
        for query in ("", "?dryRun=true"):
            answer = await world.ask("POST", f"{OLD_URL}/migrate{query}")
            assert answer.status == 403
            assert f"lacks the right to {right[0]} {right[1]}" in answer.reason
            assert (await world.ask("POST", f"{OLD_URL}/migrate{query}", token=BOB)).status == 403
        assert world.kubernetes.acted == []


async def test_r3_a_connection_that_lets_nobody_else_migrate_is_asked_first() -> None:
    async with rest_world() as world:
        _has_ordinary(world)
        mapping = [{"pulsarNamespace": "acme/shop", "namespace": "guest"}]
        allow = {"namespaces": ["guest"], "operations": ["Adopt"]}
        world.kubernetes.put(connection(allow=allow, pulsarNamespaceMappings=mapping))
        answer = await world.ask("POST", f"{OLD_URL}/migrate")
        assert (answer.status, "may not migrate through this connection" in answer.reason) == (403, True)


@pytest.mark.parametrize("path", ["split/0", "merge/0/1", "rebucket/0?buckets=8"])
async def test_what_needs_segments_points_to_migration(path: str) -> None:
    async with rest_world() as world:
        _has_ordinary(world)
        answer = await world.ask("POST", f"{OLD_URL}/{path}")
        assert (answer.status, "a partitioned topic (2 partitions)" in answer.reason) == (412, True)
        assert "migrate it first" in answer.reason
        # Whoever may not change segments there learns nothing of it, and brokers that are away tell nothing.
        assert (await world.ask("POST", f"{OLD_URL}/{path}", token=BOB)).status == 404
        world.brokers.names[ORDERS] = NameState(exists=True)
        _without_layout(world)
        answer = await world.ask("POST", f"{TOPIC_URL}/{path}")
        assert (answer.status, "orders is an ordinary topic" in answer.reason) == (412, True)
        del world.brokers.names[ORDERS]
        answer = await world.ask("POST", f"{TOPIC_URL}/{path}")
        assert (answer.status, "is not made yet" in answer.reason) == (503, True)
        world.brokers.error = BackendUnavailable("no route")
        assert (await world.ask("POST", f"{OLD_URL}/{path}")).status == 404
        assert world.kubernetes.acted == []
