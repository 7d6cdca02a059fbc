"""What there must be on the brokers, the API server and the machine once all has settled; everything else is a leak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scalable_topics.layout import layout_topic_name
from scalable_topics_operator.cluster.lease_record import LEASES, REPLICA, SHARD, LeaseRecord
from scalable_topics_operator.cluster.resources import EVENTS
from tests.support.processes import command_lines
from tests.support.replicas import SHARDS
from tests.support.soak.samples import KINDS
from tests.support.soak.stage import Stage
from tests.support.soak.traffic import GROUPS, TOPICS_KEPT
from tests.support.waiting import eventually

_RECORDS = "public/default"
_SETTLE_SECONDS = 300.0
_PIPELINE_LEASE = "scalable-topics-pipeline-"


@dataclass(frozen=True, slots=True)
class Inventory:
    """What is there, by where it is.

    Args:
        topics: full names, of all namespaces, without system topics.
        cursors: `topic subscription` of the topics of this run.
        objects: `kind name` of the run's namespace, without Events, which the API server lets go an hour later.
        pipelines: command lines of drivers that still run.
    """

    topics: frozenset[str] = frozenset()
    cursors: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()
    pipelines: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Settled:
    """How it is.

    Args:
        found: what is there.
        sealed: how many of the segments are.
        problems: what is there and must not be, or the other way round; empty if all has settled.
    """

    found: Inventory
    sealed: int
    problems: Sequence[str]


async def inventory(stage: Stage) -> Inventory:
    """What there is now."""
    topics = await _all_topics(stage)
    own = [name for name in topics if f"/{stage.world.pulsar_namespace}/" in name]
    cursors = {f"{name} {one}" for name in own for one in await stage.world.pulsar.subscriptions(name)}
    objects = set()
    for resource in KINDS:
        if resource != EVENTS:
            for body in await stage.world.kube.list_all(resource, stage.world.namespace):
                objects.add(f"{resource.kind} {body['metadata']['name']}")
    pipelines = command_lines("segment_load stream", str(stage.pipelines)).values()
    return Inventory(topics, frozenset(cursors), frozenset(objects), frozenset(pipelines))


async def until_settled(stage: Stage, before: Inventory) -> Settled:
    """Wait until there is what must be, or until that has taken too long; answers how it is then.

    Args:
        stage: no client uses its topics any more, and all operators run.
        before: what there was when the topics that stay had been made, and nothing had happened yet.
    """

    async def look() -> Settled:
        found = await inventory(stage)
        wanted = await _wanted(stage, before, found)
        sealed = sum([len((await stage.world.layout(name)).sealed) for name in TOPICS_KEPT])
        return Settled(found, sealed, _differences(found, wanted))

    try:
        return await eventually(
            look, lambda one: not one.problems, what="all is settled", within_seconds=_SETTLE_SECONDS, every_seconds=3.0
        )
    except AssertionError:
        return await look()


def _differences(found: Inventory, wanted: Inventory) -> list[str]:
    problems = []
    for part in ("topics", "cursors", "objects", "pipelines"):
        have, want = getattr(found, part), getattr(wanted, part)
        problems += [f"{part}: {one} is left over" for one in sorted(have - want)]
        problems += [f"{part}: {one} is missing" for one in sorted(want - have)]
    return problems


async def _wanted(stage: Stage, before: Inventory, found: Inventory) -> Inventory:
    world = stage.world
    topics, cursors = set(), set()
    for name in TOPICS_KEPT:
        topic = world.topic_name(name)
        topics |= {topic.persistent, layout_topic_name(topic)}
        for segment in (await world.segment_names(name, name)).values():
            topics.add(segment)
            cursors |= {f"{segment} {group}" for group in GROUPS[name]}
    foreign = {name for name in before.topics if f"/{world.pulsar_namespace}/" not in name}
    # Where a pipeline writes its records: made with the first of its batches, and kept.
    records = {name for name in found.topics if f"{_RECORDS}/{world.namespace}.pulsar." in name}
    leases = await _leases(stage)
    others = {one for one in before.objects if not one.startswith(f"{LEASES.kind} ")}
    return Inventory(
        frozenset(topics | foreign | records),
        frozenset(cursors),
        frozenset(others | {f"{LEASES.kind} {name}" for name in leases}),
    )


async def _leases(stage: Stage) -> Sequence[str]:
    """Names of the Leases that there must be: one a shard, one a living replica, and one for the pipeline."""
    bodies = await stage.world.kube.list_all(LEASES, stage.world.namespace)
    identities = {operator.identity for operator in stage.operators}
    records = [record for body in bodies if (record := LeaseRecord.parse(body)) is not None]
    shards = sorted(record.name for record in records if record.part == SHARD)[:SHARDS]
    replicas = [record.name for record in records if record.part == REPLICA and record.holder in identities]
    pipelines = [body["metadata"]["name"] for body in bodies if body["metadata"]["name"].startswith(_PIPELINE_LEASE)]
    return [*shards, *replicas, *pipelines[:1]]


async def _all_topics(stage: Stage) -> frozenset[str]:
    pulsar, found = stage.world.pulsar, set()
    for tenant in await pulsar.call("GET", "tenants"):
        for namespace in await pulsar.call("GET", f"namespaces/{tenant}"):
            found.update(await pulsar.topics(namespace))
    return frozenset(found)
