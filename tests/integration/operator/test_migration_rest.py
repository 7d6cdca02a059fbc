"""R32, R33, pip-475 §2.1: ordinary topics are migrated through REST, whether an object declares them or not.

What comes of it is looked up on the brokers and the API server.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from tests.support import manifests
from tests.support.pulsar_client import close
from tests.support.rest_bench import RestBench
from tests.support.waiting import eventually
from tests.support.world import World, is_ready

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _declared(world: World, local: str) -> list[str]:
    """Names of the ScalableTopics of a topic."""
    found = await world.kube.list_all(TOPICS, world.namespace)
    return [one["metadata"]["name"] for one in found if one["spec"]["topic"] == str(world.topic_name(local))]


async def test_an_ordinary_topic_that_nobody_declares_is_migrated(rest: RestBench) -> None:
    world, url = rest.world, rest.url("plain")
    name = world.topic_name("plain").persistent
    old = [f"{name}-partition-{number}" for number in range(2)]
    await world.pulsar.create_partitioned(name, 2)
    with rest.application() as application:
        for topic in old:
            await world.pulsar.create_subscription(topic, "billing")
            await application.send(topic, "m0", "m1", "m2")
            await application.receive(topic, "billing", 1)

        before = await world.pulsar.topics(world.pulsar_namespace)
        answer = await rest.ask("POST", f"{url}/split/0")
        assert (answer.status, "a partitioned topic (2 partitions)" in answer.reason) == (412, True)
        planned = await rest.ask("POST", f"{url}/migrate?dryRun=true")
        report = planned.body["plan"]["migration"]
        assert (planned.status, report["partitions"], report["entries"]) == (200, 2, 6)
        assert [(one["name"], one["backlogEntries"]) for one in report["subscriptions"]] == [("billing", 4)]
        assert report["obstacles"] == []
        assert await _declared(world, "plain") == []
        assert await world.pulsar.topics(world.pulsar_namespace) == before

        for token, status in ((rest.viewer, 403), (rest.stranger, 403), (None, 401)):
            assert (await rest.ask("POST", f"{url}/migrate", token=token)).status == status
        assert await _declared(world, "plain") == []
        assert (await rest.ask("POST", f"{url}/migrate")).status == 204
        body = await world.get(TOPICS, "plain")
        assert is_ready(body)
        assert body["spec"]["deletionPolicy"] == "Retain"
        assert body["status"]["migratedFrom"]["partitions"] == 2
        assert [segment.topic for segment in (await world.layout("plain")).sealed] == old
        await rest.until_shown(url, segments=4)
        for topic in old:
            assert await world.pulsar.terminated(topic)
            assert await application.receive(topic, "billing", 2) == ["m1", "m2"]
        answer = await rest.ask("POST", f"{url}/migrate")
        assert (answer.status, "a scalable topic already" in answer.reason) == (409, True)
        active = (await world.layout("plain")).active
        assert (await rest.ask("POST", f"{url}/split/{active[0].segment_id}")).status == 204


async def test_old_clients_are_counted_and_nothing_is_written_unless_they_are_cut_off(rest: RestBench) -> None:
    world, url = rest.world, rest.url("attached")
    name = world.topic_name("attached").persistent
    await world.pulsar.create_topic(name)
    with rest.application() as application:
        await application.producer(name)
        answer = await rest.ask("POST", f"{url}/migrate")
        assert answer.status == 409
        assert "1 connections of clients that do not know scalable topics are attached: producer" in answer.reason
        assert await _declared(world, "attached") == []
        assert not await world.pulsar.properties(name)
        assert not await world.pulsar.terminated(name)
        assert (await rest.ask("POST", f"{url}/migrate?force=true")).status == 204
        assert await world.pulsar.terminated(name)


async def test_what_an_object_declares_is_migrated_by_an_operation(rest: RestBench) -> None:
    world, url = rest.world, rest.url("declared")
    name = world.topic_name("declared").persistent
    await world.pulsar.create_topic(name)
    await world.apply(manifests.topic("declared", str(world.topic_name("declared"))))
    await world.until_reason("declared", "NameTaken")
    for operator in rest.two.operators:
        answer = await eventually(
            lambda operator=operator: rest.ask("POST", f"{url}/split/0", at=operator),  # type: ignore[misc]
            lambda answer: answer.status == 412,
            what=f"{operator.identity} knows that it is an ordinary topic",
        )
        assert "an ordinary topic, which has no segments: migrate it first" in answer.reason
    with rest.application() as application:
        producer = await application.producer(name)
        answer = await rest.ask("POST", f"{url}/migrate")
        assert (answer.status, answer.reason[:14]) == (409, "1 connections ")
        assert (await rest.ask("POST", f"{url}/migrate?dryRun=true")).status == 200
        await close(producer)
    done = await eventually(
        lambda: rest.ask("POST", f"{url}/migrate"), lambda answer: answer.status == 204, what="the producer is gone"
    )
    operation = await world.get(SEGMENT_OPERATIONS, done.operation.partition("/")[2])
    assert (operation["spec"]["type"], operation["status"]["phase"]) == ("Migrate", "Succeeded")
    await world.until_ready("declared")


async def test_what_is_not_there_is_not_made(rest: RestBench) -> None:
    world, url = rest.world, rest.url("missing")
    for query in ("", "?dryRun=true", "?force=true"):
        answer = await rest.ask("POST", f"{url}/migrate{query}")
        assert (answer.status, "there is no topic persistent://" in answer.reason) == (404, True)
    assert (await rest.ask("POST", f"{url}/split/0")).status == 404
    assert await _declared(world, "missing") == []
    assert not await world.pulsar.exists(world.topic_name("missing").persistent)


async def test_what_only_the_operator_refuses_leaves_no_object_behind(rest: RestBench) -> None:
    """An older object has the topic through another connection to the same Pulsar cluster (R1)."""
    world, url = rest.world, rest.url("rivals")
    name = world.topic_name("rivals")
    await world.pulsar.create_topic(name.persistent)
    await world.pulsar.create_subscription(name.persistent, "keeps it from being idle")
    await world.apply(manifests.connection("same", world.admin_url))
    older = await world.apply(manifests.topic("older", str(name), connection_name="same", paused=True))
    await world.until_reason("older", "Paused")
    made_at = datetime.fromisoformat(older["metadata"]["creationTimestamp"])

    async def age_seconds() -> float:
        return (datetime.now(UTC) - made_at).total_seconds()

    # Kubernetes tells ages by whole seconds.
    await eventually(age_seconds, lambda age: age > 2, what="another object is younger")
    answer = await rest.ask("POST", f"{url}/migrate?connection={world.namespace}/pulsar")
    assert (answer.status, "which is older" in answer.reason) == (409, True)
    assert await _declared(world, "rivals") == ["older"]
    assert not await world.pulsar.properties(name.persistent)
