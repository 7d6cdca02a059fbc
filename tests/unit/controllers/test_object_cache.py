"""The cache that watch events, lists and our own writes feed (R39)."""

from __future__ import annotations

from typing import Any

import pytest

from scalable_topics_operator.cluster.object_key import ObjectKey, key_of
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache


def topic(name: str, version: int, *, uid: str = "u", namespace: str = "ns", label: str = "") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": str(version)},
        "spec": {"label": label},
    }


@pytest.fixture
def cache() -> ObjectCache:
    cache = ObjectCache()
    cache.add_index("label", TOPICS, lambda body: body["spec"]["label"] or None)
    return cache


def test_a_late_event_never_undoes_a_newer_state(cache: ObjectCache) -> None:
    """Hazard C34: our own write is known before its event, and older events come after."""
    assert cache.observe(TOPICS, topic("a", 10))
    assert not cache.observe(TOPICS, topic("a", 10))
    assert not cache.observe(TOPICS, topic("a", 9))
    assert cache.observe(TOPICS, topic("a", 11))


def test_versions_are_numbers_not_texts(cache: ObjectCache) -> None:
    cache.observe(TOPICS, topic("a", 9))
    assert cache.observe(TOPICS, topic("a", 10))


def test_a_recreated_object_is_news_whatever_its_version(cache: ObjectCache) -> None:
    """Hazard C18."""
    cache.observe(TOPICS, topic("a", 50, uid="first"))
    assert cache.observe(TOPICS, topic("a", 60, uid="second"))
    assert not cache.remove(key_of(TOPICS, topic("a", 60)), uid="first"), "a late delete of the first is no news"
    assert cache.remove(key_of(TOPICS, topic("a", 60)), uid="second")


def test_a_complete_list_shows_what_a_broken_watch_missed(cache: ObjectCache) -> None:
    """Hazard C30."""
    for name in ("kept", "changed", "deleted"):
        cache.observe(TOPICS, topic(name, 5))
    gone = cache.drop_unlisted(TOPICS, None, {key_of(TOPICS, topic(name, 5)) for name in ("kept", "changed")}, "10")
    assert [key.name for key in gone] == ["deleted"]
    assert [key.name for key, _ in cache.all(TOPICS)] == ["kept", "changed"]


def test_an_object_made_after_the_list_is_not_taken_for_gone(cache: ObjectCache) -> None:
    cache.observe(TOPICS, topic("young", 12))
    assert cache.drop_unlisted(TOPICS, None, frozenset(), "10") == []
    assert cache.get(key_of(TOPICS, topic("young", 12))) is not None


def test_a_list_of_one_namespace_or_kind_says_nothing_of_others(cache: ObjectCache) -> None:
    cache.observe(TOPICS, topic("elsewhere", 5, namespace="other"))
    cache.observe(SEGMENT_OPERATIONS, topic("operation", 5))
    assert cache.drop_unlisted(TOPICS, "ns", frozenset(), "10") == []


def test_indexes_follow_changes_and_removals(cache: ObjectCache) -> None:
    cache.observe(TOPICS, topic("a", 1, label="red"))
    cache.observe(TOPICS, topic("b", 1, label="red"))
    assert [key.name for key, _ in cache.find("label", "red")] == ["a", "b"]
    cache.observe(TOPICS, topic("a", 2, label="blue"))
    cache.remove(key_of(TOPICS, topic("b", 1)))
    assert cache.find("label", "red") == []
    assert [key.name for key, _ in cache.find("label", "blue")] == ["a"]


def test_changes_of_a_kind_are_counted_and_old_news_is_none(cache: ObjectCache) -> None:
    seen = [cache.changes(TOPICS)]

    def changed() -> bool:
        seen.append(cache.changes(TOPICS))
        return seen[-1] != seen[-2]

    cache.observe(TOPICS, topic("a", 5))
    assert changed()
    cache.observe(TOPICS, topic("a", 5))
    cache.observe(SEGMENT_OPERATIONS, topic("operation", 6))
    assert not changed()
    cache.observe(TOPICS, topic("a", 6))
    assert changed()
    cache.remove(key_of(TOPICS, topic("a", 6)))
    assert changed()
    cache.remove(key_of(TOPICS, topic("a", 6)))
    assert not changed()


def test_listeners_are_told_at_once_of_what_is_news_or_gone_however_it_became_known(cache: ObjectCache) -> None:
    told: list[tuple[str, str | None]] = []

    def listener(key: ObjectKey, body: dict[str, Any] | None) -> None:
        assert cache.get(key) is body
        told.append((key.name, body["metadata"]["resourceVersion"] if body is not None else None))

    def heard() -> list[tuple[str, str | None]]:
        found = list(told)
        told.clear()
        return found

    cache.observe(TOPICS, topic("early", 1))
    cache.listen(TOPICS, listener)
    cache.observe(TOPICS, topic("a", 5))
    cache.observe(TOPICS, topic("a", 5))
    cache.observe(SEGMENT_OPERATIONS, topic("operation", 6))
    assert heard() == [("a", "5")]
    cache.observe(TOPICS, topic("a", 7, uid="another"))
    assert heard() == [("a", "7")], "a replaced object is one change"
    cache.drop_unlisted(TOPICS, None, {key_of(TOPICS, topic("a", 7))}, "10")
    assert heard() == [("early", None)]
    key = key_of(TOPICS, topic("a", 7))
    cache.remove(key, "u")
    assert heard() == []
    cache.remove(key, "another")
    assert heard() == [("a", None)]
