"""`stopics migrate` with a real API server, operator and brokers: reports, plans, and waves that end at a failure."""

from __future__ import annotations

import json
from typing import Any

from scalable_topics_operator.cluster.resources import TOPICS
from tests.support import manifests
from tests.support.pulsar_client import PulsarClient, close
from tests.support.pulsar_view import PulsarView
from tests.support.stopics import running_stopics
from tests.support.world import World


async def _migrate(*arguments: str) -> tuple[int, str, str]:
    """Run it with nothing but the kubeconfig, as a process; answers exit code, stdout and stderr."""
    async with running_stopics("migrate", *arguments) as process:
        output, errors = await process.communicate()
    return process.returncode or 0, output.decode(), errors.decode()


async def _declare(world: World, local: str) -> None:
    """An ordinary topic, and an object that declares it, labelled with the world's own Pulsar namespace."""
    name = world.topic_name(local).persistent
    await world.pulsar.create_topic(name)
    # Else brokers would delete it as unused.
    await world.pulsar.create_subscription(name, "keeps-it")
    manifest = manifests.topic(local, str(world.topic_name(local)))
    manifest["metadata"]["labels"] = {"of": world.pulsar_namespace.replace("/", ".")}
    await world.apply(manifest)
    await world.until_reason(local, "NameTaken")


def _selected(world: World) -> str:
    return f"of={world.pulsar_namespace.replace('/', '.')}"


def _verdicts(output: str) -> dict[str, Any]:
    return {one["scalableTopic"].rpartition("/")[2]: one["verdict"] for one in json.loads(output)["topics"]}


async def test_a_team_migrates_until_a_topic_has_an_old_client(
    world: World, view: PulsarView, pulsar_client: PulsarClient
) -> None:
    names = [f"topic-{number}" for number in range(6)]
    for name in names:
        await _declare(world, name)
    old = world.topic_name("topic-2").persistent
    producer = await pulsar_client.producer(old)
    in_namespace, many = ("-n", world.namespace), ("-l", _selected(world))
    before = await view.topics(world.pulsar_namespace)

    code, output, errors = await _migrate(*many, "--plan", "-A", "-o", "json")
    assert code == 1, errors
    may_be = dict.fromkeys(names, "may be migrated")
    assert _verdicts(output) == {**may_be, "topic-2": "LegacyClients"}
    assert await view.topics(world.pulsar_namespace) == before, "nothing was changed"

    # Nobody is there to say yes.
    code, output, errors = await _migrate(*many, *in_namespace)
    assert code != 0
    assert "This cannot be taken back" in errors
    assert await view.topics(world.pulsar_namespace) == before

    code, output, errors = await _migrate(*many, *in_namespace, "--yes", "--wave", "2", "-o", "json")
    assert code == 1
    assert "2 topics were not begun; LegacyClients: 1 connections of clients" in errors
    migrated = {"topic-0": "migrated", "topic-1": "migrated", "topic-3": "migrated"}
    left = {"topic-2": "LegacyClients", "topic-4": "not begun", "topic-5": "not begun"}
    assert _verdicts(output) == {**migrated, **left}
    for name in names:
        has_layout = "layout" in (await world.get(TOPICS, name))["status"]
        assert has_layout == (name in migrated), name
        assert await view.terminated(world.topic_name(name).persistent) == (name in migrated), name

    await close(producer)
    code, output, errors = await _migrate(*many, *in_namespace, "--yes")
    assert code == 0, errors
    assert "topic-0" in output
    for name in names:
        await world.until_ready(name)
    code, output, errors = await _migrate(*many, *in_namespace, "--plan", "-o", "json")
    assert (code, set(_verdicts(output).values())) == (0, {"scalable already"})


async def test_one_topic_is_reported_on_then_refused_and_then_migrated(
    world: World, view: PulsarView, pulsar_client: PulsarClient
) -> None:
    await _declare(world, "orders")
    name, topic = world.topic_name("orders").persistent, str(world.topic_name("orders"))
    await pulsar_client.send(name, "m0", "m1")
    producer = await pulsar_client.producer(name, producer_name="old-one")
    in_namespace = ("-n", world.namespace)

    code, output, errors = await _migrate("orders", *in_namespace, "--dry-run")
    assert code == 1, errors
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert "verdict: cannot be migrated now" in lines
    assert "keeps-it Unknown 2" in lines
    (client,) = (line for line in lines if line.startswith("Producer old-one - "))
    assert client.endswith(name)
    code, output, errors = await _migrate(topic, *in_namespace)
    assert (code, output) == (1, "")
    assert f"{world.namespace}/orders: LegacyClients: 1 connections" in errors
    assert not await view.terminated(name)

    code, output, errors = await _migrate(topic, *in_namespace, "--force", "-o", "json")
    assert code == 0, errors
    assert json.loads(output)["phase"] == "Succeeded"
    await world.until_ready("orders")
    code, output, errors = await _migrate("orders", *in_namespace)
    assert (code, "is a scalable topic already" in errors) == (1, True)
    assert producer.topic() == name
