"""Which policies apply to a topic, in which order, and that asking again is cheap (pip-483 policy resolution, R3)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.autoscale.policy import Level, bucket_budget
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import POLICIES, TOPICS
from scalable_topics_operator.controllers import policy_book
from scalable_topics_operator.controllers.parsed_policy import InvalidKnobs
from tests.unit.controllers.policy_world import PolicyWorld


def knob(world: PolicyWorld, topic: Any, path: str) -> tuple[Any, str]:
    effective = world.effective(topic)
    return effective.knobs[path], effective.origins[path].removeprefix("SegmentAutoScalePolicy ")


def test_narrower_scopes_win_field_by_field() -> None:
    world = PolicyWorld()
    topic = world.topic("one", labels={"team": "a"}, knobs={"split": {"cooldown": "90s"}})
    # The widest is the oldest: age counts within a scope only.
    world.policy("wide", created=1, maxSegments=10, minSegments=2, split={"cooldown": 10, "bytesRateIn": "50Mi"})
    world.policy("middle", "PulsarNamespace", created=2, pulsarNamespace="acme/orders", maxSegments=20, minSegments=3)
    by_label: dict[str, Any] = {"selector": {"matchLabels": {"team": "a"}}, "maxSegments": 30, "maxDagDepth": 5}
    world.policy("narrow", "Topics", created=3, **by_label)
    world.policy("narrowest", "Topic", created=4, topicRef={"name": "one"}, maxDagDepth=6)
    assert knob(world, topic, "maxSegments") == (30, "shop/narrow")
    assert knob(world, topic, "maxDagDepth") == (6, "shop/narrowest")
    assert knob(world, topic, "minSegments") == (3, "shop/middle")
    assert knob(world, topic, "split.bytesRateIn") == (52428800.0, "shop/wide")
    assert knob(world, topic, "split.cooldown") == (90.0, "ScalableTopic shop/one")
    assert knob(world, topic, "merge.cooldown") == (300.0, "default")


def test_enabled_false_opts_one_topic_out_and_true_opts_it_in() -> None:
    world = PolicyWorld(Level("--auto-scale-enabled", {"enabled": False}))
    out, back = world.topic("out"), world.topic("back", knobs={"enabled": True})
    assert knob(world, out, "enabled") == (False, "--auto-scale-enabled")
    assert knob(world, back, "enabled") == (True, "ScalableTopic shop/back")


def test_the_bucket_budget_of_a_topic_is_a_knob_of_its_own() -> None:
    world = PolicyWorld()
    world.policy("wide", rebucket={"budget": 16})
    plain, own = world.topic("plain"), world.topic("own", bucketBudget=8)
    both = world.topic("both", bucketBudget=8, knobs={"rebucket": {"budget": 2}})
    assert knob(world, plain, "rebucket.budget") == (16, "shop/wide")
    assert knob(world, own, "rebucket.budget") == (8, "ScalableTopic shop/own")
    assert knob(world, both, "rebucket.budget") == (2, "ScalableTopic shop/both")
    assert [bucket_budget(world.effective(one)) for one in (plain, own, both)] == [16, 8, 2]
    wrong = world.topic("wrong", bucketBudget="many")
    assert world.effective(wrong).problem == "ScalableTopic shop/wrong: spec.bucketBudget is no whole number"
    assert bucket_budget(world.effective(wrong)) == 16


def test_what_would_apply_to_a_topic_is_known_before_it_is_there() -> None:
    world = PolicyWorld()
    world.policy("here", "PulsarNamespace", pulsarNamespace="acme/orders", rebucket={"budget": 16})
    key = ObjectKey(TOPICS.plural, "shop", "new")
    manifest: dict[str, Any] = {
        "metadata": {"namespace": "shop", "name": "new"},
        "spec": {"topic": "acme/orders/new", "connectionRef": {"name": "main"}, "autoScale": {"maxSegments": 3}},
    }
    found = world.book.expected(key, manifest)
    assert (found.knobs["rebucket.budget"], found.knobs["maxSegments"]) == (16, 3)
    manifest["spec"]["topic"] = "acme/other/new"
    assert world.book.expected(key, manifest).knobs["rebucket.budget"] == 4


@pytest.mark.parametrize(
    ("target", "applies"),
    [
        ({"scope": "Cluster"}, True),
        ({"scope": "Cluster", "connectionRef": {"name": "other"}}, False),
        ({"scope": "PulsarNamespace", "pulsarNamespace": "acme/orders"}, True),
        ({"scope": "PulsarNamespace", "pulsarNamespace": "acme/order"}, False),
        ({"scope": "PulsarNamespace", "pulsarNamespace": "acme/orders", "connectionRef": {"name": "other"}}, False),
        ({"scope": "Topics", "selector": {}}, True),
        ({"scope": "Topics", "selector": {}, "connectionRef": {"name": "main"}}, True),
        ({"scope": "Topics", "selector": {}, "connectionRef": {"name": "other"}}, False),
        ({"scope": "Topics", "selector": {"matchLabels": {"team": "a", "tier": "gold"}}}, True),
        ({"scope": "Topics", "selector": {"matchLabels": {"team": "a", "tier": "tin"}}}, False),
        ({"scope": "Topics", "selector": {"matchLabels": {"absent": ""}}}, False),
        ({"scope": "Topic", "topicRef": {"name": "one"}}, True),
        ({"scope": "Topic", "topicRef": {"name": "on"}}, False),
        ({"scope": "Topic", "topicRef": {"name": "one"}, "connectionRef": {"name": "main"}}, True),
        ({"scope": "Topic", "topicRef": {"name": "one"}, "connectionRef": {"name": "other"}}, False),
    ],
)
def test_a_target_takes_what_it_says(target: dict[str, Any], applies: bool) -> None:
    world = PolicyWorld()
    topic = world.topic("one", topic="topic://acme/orders/one", labels={"team": "a", "tier": "gold"})
    policy = world.policy("p", **target, maxSegments=7)
    assert (knob(world, topic, "maxSegments")[0] == 7) == applies
    found = world.book.policy(policy)
    assert found is not None
    assert world.book.topics_of(found) == ([topic] if applies else [])


@pytest.mark.parametrize(
    ("requirement", "applies"),
    [
        ({"key": "tier", "operator": "In", "values": ["gold", "tin"]}, True),
        ({"key": "tier", "operator": "In", "values": ["tin"]}, False),
        ({"key": "absent", "operator": "In", "values": ["tin"]}, False),
        ({"key": "tier", "operator": "NotIn", "values": ["tin"]}, True),
        ({"key": "tier", "operator": "NotIn", "values": ["gold"]}, False),
        ({"key": "absent", "operator": "NotIn", "values": ["gold"]}, True),
        ({"key": "tier", "operator": "Exists"}, True),
        ({"key": "absent", "operator": "Exists"}, False),
        ({"key": "tier", "operator": "DoesNotExist"}, False),
        ({"key": "absent", "operator": "DoesNotExist"}, True),
    ],
)
def test_requirements_on_labels_are_those_of_kubernetes(requirement: dict[str, Any], applies: bool) -> None:
    world = PolicyWorld()
    topic = world.topic("one", labels={"tier": "gold"})
    world.policy("p", "Topics", selector={"matchExpressions": [requirement]}, maxSegments=7)
    assert (knob(world, topic, "maxSegments")[0] == 7) == applies


def test_R3_wide_policies_count_only_beside_their_connection_and_narrow_ones_only_at_home() -> None:
    world = PolicyWorld()
    guest = world.topic("one", namespace="guest", connection_namespace="shop")
    world.policy("wide", maxSegments=10)
    world.policy("usurper", namespace="guest", maxSegments=11, minSegments=2)
    world.policy("other-home", "Topics", selector={}, minSegments=3)
    world.policy("namesake", "Topic", topicRef={"name": "one"}, minSegments=4)
    world.policy("own", "Topics", namespace="guest", selector={}, maxDagDepth=4)
    assert knob(world, guest, "maxSegments") == (10, "shop/wide")
    assert knob(world, guest, "minSegments") == (1, "default")
    assert knob(world, guest, "maxDagDepth") == (4, "guest/own")


@given(order=st.permutations(["a", "b", "c"]))
def test_of_one_scope_the_oldest_wins_in_whatever_order_they_are_seen(order: list[str]) -> None:
    world = PolicyWorld()
    topic = world.topic("one")
    created = {"a": 3, "b": 1, "c": 1}
    for name in order:
        world.policy(name, created=created[name], maxSegments=ord(name))
    # b and c are of one age: the lower uid wins, as in R1.
    assert knob(world, topic, "maxSegments") == (ord("b"), "shop/b")


def test_a_policy_that_cannot_be_read_takes_nothing_down() -> None:
    world = PolicyWorld()
    topic = world.topic("one")
    world.policy("good", maxSegments=9)
    unreadable: dict[str, dict[str, Any]] = {
        "amount": {"split": {"msgRateIn": "many"}},
        "shape": {"split": 7},
        "scope": {"target": {"scope": "Everything"}},
    }
    for name, knobs in unreadable.items():
        bad = world.policy(name, **knobs)
        with pytest.raises(InvalidKnobs, match=r"split|target"):
            world.book.policy(bad)
    lacking = world.policy("lacking", "PulsarNamespace")
    with pytest.raises(InvalidKnobs, match=r"spec\.target\.pulsarNamespace is needed"):
        world.book.policy(lacking)
    nameless = world.policy("nameless", "Topic")
    with pytest.raises(InvalidKnobs, match=r"spec\.target\.topicRef is needed"):
        world.book.policy(nameless)
    assert knob(world, topic, "maxSegments") == (9, "shop/good")


def test_knobs_of_a_topic_that_cannot_be_read_are_its_problem_alone() -> None:
    world = PolicyWorld()
    world.policy("good", maxSegments=9)
    bad = world.topic("bad", knobs={"split": {"cooldown": "soon"}})
    effective = world.effective(bad)
    assert effective.config is None
    assert effective.problem.startswith("ScalableTopic shop/bad: spec.autoScale.split.cooldown")
    assert world.effective(world.topic("good")).problem == ""


def test_quantities_are_read_as_people_write_them() -> None:
    world = PolicyWorld()
    topic = world.topic("one")
    world.policy("p", split={"bytesRateIn": "50Mi", "msgRateIn": "12.5k"}, merge={"cooldown": "1h30m", "window": 7})
    knobs = world.effective(topic).knobs
    assert [knobs[f"split.{name}"] for name in ("bytesRateIn", "msgRateIn")] == [52428800.0, 12500.0]
    assert [knobs[f"merge.{name}"] for name in ("cooldown", "window")] == [5400.0, 7.0]


def test_the_example_is_what_it_says_it_is() -> None:
    world = PolicyWorld()
    for document in yaml.safe_load_all((Path(__file__).parents[3] / "examples" / "policies.yaml").read_text()):
        assert (document["apiVersion"], document["kind"]) == (POLICIES.api_version, POLICIES.kind)
        target = document["spec"].pop("target")
        world.policy(document["metadata"]["name"], **target, **document["spec"])
    plain = world.topic("orders", topic="topic://public/default/orders", connection="pulsar")
    assert knob(world, plain, "maxSegments") == (32, "shop/everything")
    assert knob(world, plain, "minSegments") == (2, "shop/public-default")
    world.topic("orders", topic="topic://public/default/orders", connection="pulsar", labels={"tier": "gold"})
    assert knob(world, plain, "maxSegments") == (128, "shop/gold")
    frozen = world.topic("other", topic="acme/x/other", connection="pulsar", labels={"frozen": ""})
    assert knob(world, frozen, "enabled") == (False, "shop/frozen")


def test_an_answer_follows_every_change_it_depends_on() -> None:
    world = PolicyWorld()
    topic = world.topic("one", labels={"team": "a"})
    assert knob(world, topic, "maxSegments")[0] == 64
    policy = world.policy("p", "Topics", selector={"matchLabels": {"team": "a"}}, maxSegments=9)
    assert knob(world, topic, "maxSegments")[0] == 9
    world.policy("p", "Topics", selector={"matchLabels": {"team": "a"}}, maxSegments=8)
    assert knob(world, topic, "maxSegments")[0] == 8
    world.topic("one", labels={"team": "b"})
    assert knob(world, topic, "maxSegments")[0] == 64
    world.topic("one", labels={"team": "a"}, knobs={"maxSegments": 7})
    assert knob(world, topic, "maxSegments")[0] == 7
    world.topic("one", labels={"team": "a"})
    world.remove(policy)
    assert knob(world, topic, "maxSegments")[0] == 64
    world.policy("wide", maxSegments=5)
    assert knob(world, topic, "maxSegments")[0] == 5
    world.topic("one", connection="elsewhere", labels={"team": "a"})
    assert knob(world, topic, "maxSegments")[0] == 64


async def test_asking_again_reads_and_resolves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = PolicyWorld()
    world.connection()
    topics = [world.topic(f"t{number}") for number in range(50)]
    own = world.topic("own", knobs={"maxSegments": 3})
    policy = world.policy("p", maxSegments=9)
    calls: list[str] = []

    def counted(name: str) -> Callable[..., Any]:
        real = getattr(policy_book, name)

        def count(*arguments: Any) -> Any:
            calls.append(name)
            return real(*arguments)

        return count

    for name in ("resolve", "parse_policy", "subject_of"):
        monkeypatch.setattr(policy_book, name, counted(name))
    answers = [world.effective(topic) for topic in (*topics, own)]
    assert calls.count("resolve") == 2, "topics of the same policies share a result"
    assert all(answer is answers[0] for answer in answers[:50])
    calls.clear()
    world.topic("own", knobs={"maxSegments": 3})
    await world.controller.reconcile(policy)
    assert world.writes, "a status write is no change of a policy"
    assert [world.effective(topic) for topic in (*topics, own)] == answers
    assert calls == []
