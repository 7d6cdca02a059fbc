"""Every watched object is in one shard, and begins with it (R5)."""

from __future__ import annotations

from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import CONNECTIONS, POLICIES, TOPICS
from scalable_topics_operator.controllers.watched_fleet import WatchedFleet
from tests.unit.controllers.policy_world import PolicyWorld

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
