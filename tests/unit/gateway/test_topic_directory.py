"""Which ScalableTopic a topic's name stands for."""

from __future__ import annotations

from typing import Any

import pytest

from scalable_topics.layout import TopicName
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.topic_work import BY_NAME, canonical_topic
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.topic_directory import TopicDirectory

ORDERS = TopicName("acme", "shop", "orders")


def scalable_topic(
    namespace: str, name: str, *, layout: bool = True, connection: str = "pulsar", born: str = "2026-01-01T00:00:00Z"
) -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": f"{namespace}-{name}",
            "resourceVersion": "1",
            "creationTimestamp": born,
        },
        "spec": {"topic": "persistent://acme/shop/orders", "connectionRef": {"name": connection}},
        "status": {"layout": {"version": 1}} if layout else {},
    }


def directory(*bodies: dict[str, Any]) -> TopicDirectory:
    cache = ObjectCache()
    cache.add_index(BY_NAME, TOPICS, canonical_topic)
    for body in bodies:
        cache.observe(TOPICS, body)
    return TopicDirectory(cache)


def refused(found: TopicDirectory, topic: TopicName, connection: str | None = None) -> int:
    with pytest.raises(Refusal) as refusal:
        found.find(topic, connection)
    return refusal.value.status


def test_a_name_is_found_however_the_object_spells_it() -> None:
    assert directory(scalable_topic("a", "x")).find(ORDERS, None).name == "x"


@pytest.mark.parametrize("local", ["", ".", "..", "a/b", "a b", "x-layout", "x-partition-0", "n" * 201])
def test_names_that_cannot_be_are_refused(local: str) -> None:
    assert refused(directory(scalable_topic("a", "x")), TopicName("acme", "shop", local)) == 400


def test_what_nobody_declares_is_not_found() -> None:
    assert refused(directory(), ORDERS) == 404
    assert refused(directory(scalable_topic("a", "x")), ORDERS, "a/other") == 404
    assert refused(directory(scalable_topic("a", "x")), ORDERS, "pulsar") == 400


def test_R1_of_several_the_one_with_a_layout_counts_else_the_oldest() -> None:
    rival = scalable_topic("a", "rival", layout=False, born="2025-01-01T00:00:00Z")
    assert directory(rival, scalable_topic("a", "owner")).find(ORDERS, None).name == "owner"
    late = scalable_topic("a", "late", layout=False)
    assert directory(late, rival).find(ORDERS, None).name == "rival"


def test_where_several_clusters_have_it_the_caller_says_which() -> None:
    found = directory(scalable_topic("a", "x"), scalable_topic("b", "y"))
    assert refused(found, ORDERS) == 400
    assert found.find(ORDERS, "b/pulsar").name == "y"
