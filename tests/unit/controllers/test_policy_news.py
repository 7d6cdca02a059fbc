"""A change makes exactly those look again that it bears on."""

from __future__ import annotations

import pytest

from scalable_topics_operator.controllers.policy_news import Affected
from tests.unit.controllers.policy_world import PolicyWorld

NOTHING = Affected()


@pytest.fixture
def world() -> PolicyWorld:
    world = PolicyWorld()
    world.connection()
    return world


def test_topics_that_come_move_and_go_are_news_for_the_policies_they_concern(world: PolicyWorld) -> None:
    wide = world.policy("wide")
    gold = world.policy("gold", "Topics", selector={"matchLabels": {"tier": "gold"}})
    tin = world.policy("tin", "Topics", selector={"matchLabels": {"tier": "tin"}})
    world.tell_all()
    topic = world.topic("one", labels={"tier": "gold"})
    assert world.tell(topic).policies == {wide, gold}
    world.topic("one", labels={"tier": "tin"})
    assert world.tell(topic).policies == {gold, tin}
    world.topic("one", labels={"tier": "tin"}, connection="elsewhere")
    assert world.tell(topic).policies == {wide, tin}, "what is narrower shows what wider policies give"
    world.remove(topic)
    assert world.tell(topic).policies == {tin}
    assert world.tell(topic) == NOTHING


def test_a_topic_is_news_for_all_that_it_sets_against_each_other(world: PolicyWorld) -> None:
    wide = world.policy("wide")
    every = world.policy("every", "Topics", selector={}, maxSegments=5)
    gold = world.policy("gold", "Topics", selector={"matchLabels": {"tier": "gold"}}, maxSegments=6)
    topic = world.topic("one")
    world.tell_all()
    world.tell(topic)
    world.topic("one", labels={"tier": "gold"})
    assert world.tell(topic).policies == {every, gold}
    assert wide not in world.tell(topic).policies


def test_a_change_that_policies_do_not_look_at_is_none(world: PolicyWorld) -> None:
    world.policy("gold", "Topics", selector={"matchLabels": {"tier": "gold"}})
    topic = world.topic("one", labels={"tier": "gold"})
    world.tell_all()
    world.topic("one", labels={"tier": "gold"})
    assert world.tell(topic) == NOTHING
    world.topic("one", labels={"tier": "gold", "nudge": "x"}, knobs={"maxSegments": 3})
    assert world.tell(topic) == NOTHING
    world.policy("gold", "Topics", selector={"matchLabels": {"tier": "gold"}}, maxSegments=5)
    assert world.tell(topic) == NOTHING, "the policy itself has said so"


def test_a_new_policy_is_news_once_not_once_for_each_of_its_topics(world: PolicyWorld) -> None:
    topics = [world.topic(f"t{number}") for number in range(3)]
    world.tell_all()
    narrow, wide = world.policy("narrow", "Topics", selector={}), world.policy("wide")
    assert world.tell(narrow).policies == {wide}
    assert world.tell(wide).policies == {narrow}
    assert [world.tell(topic) for topic in topics] == [NOTHING] * 3


def test_a_policy_wakes_the_topics_whose_effective_policy_changed(world: PolicyWorld) -> None:
    policy = world.policy("p", maxSegments=9)
    follows, overrides = world.topic("follows"), world.topic("overrides", knobs={"maxSegments": 3})
    elsewhere, unasked = world.topic("elsewhere", connection="other"), world.topic("unasked")
    world.tell_all()
    for topic in (follows, overrides, elsewhere):
        world.effective(topic)
    world.policy("p", maxSegments=8)
    assert world.tell(policy).topics == {follows}
    assert world.tell(policy) == NOTHING
    world.policy("p", maxSegments=8, connectionRef={"name": "other"})
    assert world.tell(policy).topics == {follows, elsewhere}
    world.remove(policy)
    assert world.tell(policy).topics == {elsewhere}
    assert world.effective(unasked).knobs["maxSegments"] == 64


def test_a_policy_of_one_topic_is_news_for_that_one_alone(world: PolicyWorld) -> None:
    wide = world.policy("wide")
    one, other = world.topic("one"), world.topic("other")
    world.tell_all()
    for topic in (one, other):
        world.effective(topic)
    own = world.policy("own", "Topic", topicRef={"name": "one"}, maxSegments=8)
    assert world.tell(own) == Affected(topics=frozenset({one}), policies=frozenset({wide}))
    world.remove(one)
    assert own in world.tell(one).policies, "it counts one topic less"
    world.topic("one")
    assert own in world.tell(one).policies


def test_a_policy_that_becomes_unreadable_wakes_its_topics(world: PolicyWorld) -> None:
    policy, topic = world.policy("p", maxSegments=9), world.topic("one")
    world.tell_all()
    world.effective(topic)
    world.policy("p", split={"cooldown": "soon"})
    assert world.tell(policy).topics == {topic}
    assert world.effective(topic).knobs["maxSegments"] == 64


async def test_a_status_write_is_no_news(world: PolicyWorld) -> None:
    policy, topic = world.policy("p", maxSegments=9), world.topic("one")
    world.tell_all()
    world.effective(topic)
    await world.controller.reconcile(policy)
    assert world.writes
    assert world.tell(policy) == NOTHING


def test_a_policy_is_news_for_its_neighbours_and_for_those_of_guests(world: PolicyWorld) -> None:
    wide = world.policy("wide", maxSegments=9)
    beside = world.policy("beside", "Topics", selector={})
    at_guests = world.policy("own", "Topics", namespace="guest", selector={})
    stranger = world.policy("stranger", "Topics", namespace="strange", selector={})
    world.topic("one", namespace="guest", connection_namespace="shop")
    world.topic("two", namespace="strange")
    world.tell_all()
    for topic in ("one",):
        world.tell(world.topic(topic, namespace="guest", connection_namespace="shop"))
    world.policy("wide", maxSegments=8)
    affected = world.tell(wide)
    assert affected.policies == {beside, at_guests}
    assert stranger not in affected.policies


def test_a_connection_is_news_when_it_comes_or_goes(world: PolicyWorld) -> None:
    waiting = world.policy("waiting", connectionRef={"name": "late"})
    world.policy("other")
    world.policy("elsewhere", namespace="guest", connectionRef={"name": "late"})
    world.tell_all()
    connection = world.connection("late")
    assert world.tell(connection).policies == {waiting}
    world.connection("late")
    assert world.tell(connection) == NOTHING
    world.remove(connection)
    assert world.tell(connection).policies == {waiting}
