"""Every watched object is in one shard, and begins with it (R5)."""

from __future__ import annotations

import random
from collections.abc import Iterator

from scalable_topics_operator.cluster.kube_client import Body, Resource
from scalable_topics_operator.cluster.object_key import ObjectKey, key_of
from scalable_topics_operator.cluster.resources import CONNECTIONS, POLICIES, SEGMENT_OPERATIONS, SUBSCRIPTIONS, TOPICS
from scalable_topics_operator.cluster.shards import shard_of
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.topic_glimpses import TopicGlimpses
from scalable_topics_operator.controllers.watched_fleet import WatchedFleet
from tests.unit.controllers.policy_world import HOME, PolicyWorld

SHARDS = 4


def test_every_object_is_in_exactly_one_shard() -> None:
    world = PolicyWorld()
    begun: list[ObjectKey] = []
    fleet = WatchedFleet(world.cache, SHARDS, begun.append, lambda _: None)
    made = {world.connection()}
    made |= {world.topic(f"t{number}") for number in range(20)} | {world.policy(f"p{number}") for number in range(20)}
    for shard in range(SHARDS):
        keys = list(fleet.keys_of(shard))
        assert all(fleet.shard_of(key) == shard for key in keys)
        fleet.begin(keys)
    assert len(begun) == len(made)
    assert set(begun) == made
    assert {key.plural for key in begun} == {CONNECTIONS.plural, TOPICS.plural, POLICIES.plural}


def _shard_as_defined(cache: ObjectCache, key: ObjectKey) -> int:
    """The shard of an object by its definition, worked out from nothing but the objects."""
    body = cache.get(key)
    assert body is not None
    if key.plural == SUBSCRIPTIONS.plural or (
        key.plural == SEGMENT_OPERATIONS.plural and body["status"].get("phase") not in ("Succeeded", "Failed")
    ):
        key = ObjectKey(TOPICS.plural, key.namespace, body["spec"]["scalableTopic"])
        body = cache.get(key)
    is_topic = key.plural == TOPICS.plural and body is not None
    return shard_of(f"topic://{body['spec']['topic']}" if is_topic and body else str(key), SHARDS)


def _all_keys(cache: ObjectCache) -> set[ObjectKey]:
    kinds = (CONNECTIONS, TOPICS, SUBSCRIPTIONS, SEGMENT_OPERATIONS, POLICIES)
    return {key for resource in kinds for key, _ in cache.all(resource)}


def test_shards_are_right_after_every_change_however_objects_come_and_go() -> None:
    """Subscriptions without their topic, names used by another topic, operations that finish."""
    chances = random.Random(5)
    cache = ObjectCache()
    fleet = WatchedFleet(cache, SHARDS, lambda _: None, lambda _: None)
    for version in range(3000):
        resource = chances.choice((TOPICS, SUBSCRIPTIONS, SEGMENT_OPERATIONS))
        metadata = {
            "namespace": HOME,
            "name": f"{resource.plural[:3]}-{chances.randrange(8)}",
            "uid": str(version),
            "resourceVersion": str(version),
        }
        spec = {"topic": f"acme/orders/{chances.randrange(12)}", "scalableTopic": f"sca-{chances.randrange(8)}"}
        body = {"metadata": metadata, "spec": spec, "status": {"phase": chances.choice(("Running", "Succeeded"))}}
        key = key_of(resource, body)
        if chances.random() < 0.3:
            cache.remove(key)
        else:
            cache.observe(resource, body)
        known = _all_keys(cache)
        shards = {key: _shard_as_defined(cache, key) for key in known}
        assert {key: fleet.shard_of(key) for key in known} == shards
        listed = [(key, shard) for shard in range(SHARDS) for key in fleet.keys_of(shard)]
        assert len(listed) == len(known)
        assert dict(listed) == shards


def test_what_a_shard_costs_follows_from_its_own_objects_alone() -> None:
    """Were all topics gone through for each shard that is gained, a start with 400 shards did so 400 times."""
    shards, topics = 400, 800
    cache = _CountingCache()
    fleet = WatchedFleet(cache, shards, lambda _: None, lambda _: None)
    for number in range(topics):
        metadata = {"namespace": HOME, "name": f"t{number}", "uid": f"u{number}", "resourceVersion": str(number)}
        spec = {"topic": f"acme/orders/t{number}", "connectionRef": {"name": "main"}}
        cache.observe(TOPICS, {"metadata": metadata, "spec": spec, "status": {"operation": {"term": 7}}})
    cache.looked_at = 0
    glimpses = list(TopicGlimpses(lambda: fleet.topics_of((3, 4)))())
    keys = [*fleet.keys_of(3), *fleet.keys_of(4)]
    assert len(glimpses) == len(keys) > 0
    assert max(fleet.highest_term_of(3), fleet.highest_term_of(4)) == 7
    assert cache.looked_at <= 2 * len(keys)


class _CountingCache(ObjectCache):
    """Counts the objects that are looked at."""

    looked_at = 0

    def get(self, key: ObjectKey) -> Body | None:
        self.looked_at += 1
        return super().get(key)

    def all(self, resource: Resource) -> Iterator[tuple[ObjectKey, Body]]:
        self.looked_at += self.count(resource)
        return super().all(resource)
