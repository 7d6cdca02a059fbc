"""The ScalableTopicSubscriptions of a topic: what its ordered subscriptions ask of its cursors (R16, R18, R21)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS, TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.operations.context import DeclaredSubscription
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase

_CREATING = SubscriptionPhase.CREATING.value
_SEEKING = "Seeking"

_TOPIC_CHARS, _READABLE_CHARS = 180, 60

SUBSCRIPTIONS_BY_TOPIC = "subscriptions-by-topic"


def topic_of_subscription(body: Body) -> ObjectKey:
    """The ScalableTopic of a ScalableTopicSubscription."""
    return ObjectKey(TOPICS.plural, body["metadata"]["namespace"], body["spec"]["scalableTopic"])


def topic_text(body: Body) -> str:
    """Index function: the ScalableTopic of a ScalableTopicSubscription."""
    return str(topic_of_subscription(body))


def ordered_subscriptions(cache: ObjectCache, topic: ObjectKey) -> Iterator[tuple[ObjectKey, Body]]:
    """The ScalableTopicSubscriptions of a topic that are not being deleted."""
    for key, body in cache.find(SUBSCRIPTIONS_BY_TOPIC, str(topic)):
        if not body["metadata"].get("deletionTimestamp"):
            yield key, body


def find_subscription(cache: ObjectCache, topic: ObjectKey, subscription: str) -> tuple[ObjectKey, Body] | None:
    """The ScalableTopicSubscription of a subscription, the oldest if there are several; None if it has none."""
    found = [entry for entry in ordered_subscriptions(cache, topic) if entry[1]["spec"]["subscription"] == subscription]
    return min(found, key=lambda entry: (entry[1]["metadata"]["creationTimestamp"], entry[0].name), default=None)


def declared_by_objects(cache: ObjectCache, topic: ObjectKey) -> dict[str, DeclaredSubscription]:
    """What the ScalableTopicSubscriptions of a topic ask of its cursors; deleting one of them leaves the cursors."""
    return {
        body["spec"]["subscription"]: DeclaredSubscription(
            latest=body["spec"].get("initialPosition") == "Latest", by_object=True
        )
        for _, body in ordered_subscriptions(cache, topic)
    }


def is_seeking(cache: ObjectCache, topic: ObjectKey, subscription: str) -> bool:
    """Whether the consumers of an ordered subscription are told to wait until its cursors have moved."""
    found = find_subscription(cache, topic, subscription)
    return found is not None and (found[1].get("status") or {}).get("phase") == _SEEKING


class TopicReaders:
    """Implements `Readers` by what the coordinator has committed.

    Args:
        cache: the objects.
        topic: the ScalableTopic.
    """

    def __init__(self, cache: ObjectCache, topic: ObjectKey) -> None:
        self._cache = cache
        self._topic = topic

    def have_let_go(self, subscription: str) -> bool:
        """Whether no consumer reads a segment; those of shared subscriptions are never waited for."""
        found = find_subscription(self._cache, self._topic, subscription)
        if found is None:
            return True
        consumers = (found[1].get("status") or {}).get("consumers", ())
        return is_seeking(self._cache, self._topic, subscription) and not any(
            one.get(what) for one in consumers for what in ("assignments", "releasing", "releasingBuckets")
        )


def has_cursors_for(status: Mapping[str, Any], subscriptions: Collection[str]) -> bool:
    """Whether the cursors of subscriptions are made, as a ScalableTopic's status says."""
    if not subscriptions:
        return True
    phases = {entry["name"]: entry["phase"] for entry in status.get("subscriptions", ())}
    return all(phases.get(name, _CREATING) != _CREATING for name in subscriptions)


def subscription_object(topic: Body, subscription: str, kind: str, *, latest: bool) -> Body:
    """The ScalableTopicSubscription to make for a subscription that has none; it goes with its topic.

    Args:
        topic: the ScalableTopic.
        subscription: its name; a checkpoint group's, too.
        kind: `Stream` or `Checkpoint`.
        latest: it starts at the latest message.
    """
    metadata = topic["metadata"]
    spec = {
        "scalableTopic": metadata["name"],
        "subscription": subscription,
        "type": kind,
        "initialPosition": "Latest" if latest else "Earliest",
    }
    owner = {"apiVersion": TOPICS.api_version, "kind": TOPICS.kind, "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": SUBSCRIPTIONS.api_version,
        "kind": SUBSCRIPTIONS.kind,
        "metadata": {
            "name": subscription_object_name(metadata["name"], subscription),
            "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        },
        "spec": {**spec, "group": subscription} if kind == "Checkpoint" else spec,
    }


def subscription_object_name(topic: str, subscription: str) -> str:
    """What the object of a subscription is called: readable, and unique within the ScalableTopic `topic`."""
    readable = re.sub("[^a-z0-9]+", "-", subscription.lower()).strip("-")[:_READABLE_CHARS]
    digest = hashlib.sha256(f"{topic}/{subscription}".encode()).hexdigest()[:8]
    return "-".join(part for part in (topic[:_TOPIC_CHARS].rstrip("-."), readable.strip("-"), digest) if part)
