"""A cluster in memory for the tests of policies: what an API server would keep, and the book over it."""

from __future__ import annotations

import copy
import itertools
from typing import Any

from scalable_topics_operator.autoscale.policy import EffectivePolicy, Level
from scalable_topics_operator.cluster.event_recorder import EventRecorder
from scalable_topics_operator.cluster.kube_client import Body, Resource
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_of, key_of
from scalable_topics_operator.cluster.resources import CONNECTIONS, EVENTS, POLICIES, TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.policies import SegmentAutoScalePolicyController
from scalable_topics_operator.controllers.policy_book import PolicyBook
from scalable_topics_operator.controllers.policy_news import Affected, PolicyNews
from scalable_topics_operator.controllers.topic_work import BY_CONNECTION

HOME = "shop"


class PolicyWorld:
    """Objects as the API server has them; the cache learns of each change as from a watch."""

    def __init__(self, defaults: Level | None = None) -> None:
        self.cache = ObjectCache()
        self.cache.add_index(BY_CONNECTION, TOPICS, lambda body: str(connection_of(body)))
        self.book = PolicyBook(self.cache, defaults)
        self.news = PolicyNews(self.cache, self.book)
        self.writes: list[tuple[str, dict[str, Any]]] = []
        self.events: list[tuple[str, str, str]] = []
        self.controller = SegmentAutoScalePolicyController(
            self,  # type: ignore[arg-type]
            self.cache,
            EventRecorder(self),  # type: ignore[arg-type]
            self.book,
        )
        self._versions = itertools.count(1)

    def connection(self, name: str = "main", namespace: str = HOME) -> ObjectKey:
        return self._put(CONNECTIONS, namespace, name, {"adminUrl": "http://pulsar"})

    def topic(
        self,
        name: str,
        *,
        topic: str | None = None,
        namespace: str = HOME,
        connection: str = "main",
        connection_namespace: str | None = None,
        labels: dict[str, str] | None = None,
        knobs: dict[str, Any] | None = None,
        **more: Any,
    ) -> ObjectKey:
        reference = {"name": connection, **({"namespace": connection_namespace} if connection_namespace else {})}
        spec = {"topic": topic or f"acme/orders/{name}", "connectionRef": reference, **more}
        return self._put(TOPICS, namespace, name, {**spec, **({"autoScale": knobs} if knobs else {})}, labels)

    def policy(
        self, name: str, scope: str = "Cluster", *, namespace: str = HOME, created: int = 0, **rest: Any
    ) -> ObjectKey:
        """A policy; of `rest` what a target has goes there, all else are knobs. `created` is the hour of the day."""
        target: dict[str, Any] = {"scope": scope}
        if scope not in ("Topics", "Topic"):
            target["connectionRef"] = {"name": "main"}
        for field in ("connectionRef", "pulsarNamespace", "selector", "topicRef"):
            if field in rest:
                target[field] = rest.pop(field)
        spec = {"target": target, **rest}
        return self._put(POLICIES, namespace, name, spec, created=f"2026-11-28T{created:02}:00:00Z")

    def remove(self, key: ObjectKey) -> None:
        self.cache.remove(key)

    def effective(self, key: ObjectKey) -> EffectivePolicy:
        return self.book.effective(key, self.body(key))

    def body(self, key: ObjectKey) -> Body:
        body = self.cache.get(key)
        assert body is not None
        return body

    def status(self, key: ObjectKey) -> dict[str, Any]:
        status: dict[str, Any] = self.body(key).get("status") or {}
        return status

    def tell_all(self) -> None:
        """Let the news have heard of everything, as after the first list."""
        for resource in (CONNECTIONS, TOPICS, POLICIES):
            for key, _ in self.cache.all(resource):
                self.tell(key)

    def tell(self, key: ObjectKey) -> Affected:
        """Tell the news of a change."""
        if key.plural == TOPICS.plural:
            return Affected(policies=self.news.topic_changed(key))
        if key.plural == CONNECTIONS.plural:
            return Affected(policies=self.news.connection_changed(key))
        return self.news.policy_changed(key)

    async def merge_patch(
        self, resource: Resource, namespace: str, name: str, patch: Body, *, subresource: str
    ) -> Body:
        """What `StatusStore` asks of the API server."""
        assert subresource == "status"
        body = copy.deepcopy(self.body(ObjectKey(resource.plural, namespace, name)))
        self.writes.append((name, patch["status"]))
        status = body.setdefault("status", {})
        status.update({key: value for key, value in patch["status"].items() if value is not None})
        body["metadata"]["resourceVersion"] = str(next(self._versions))
        return body

    async def create(self, resource: Resource, namespace: str, body: Body) -> Body:
        """What `EventRecorder` asks of the API server."""
        assert resource == EVENTS
        self.events.append((body["involvedObject"]["name"], body["reason"], body["message"]))
        return body

    def _put(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        spec: Body,
        labels: dict[str, str] | None = None,
        created: str = "2026-11-28T00:00:00Z",
    ) -> ObjectKey:
        key = ObjectKey(resource.plural, namespace, name)
        before = self.cache.get(key)
        generation = 1
        if before is not None:
            generation = before["metadata"]["generation"] + (before["spec"] != spec)
        body: Body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"uid-{namespace}-{name}",
                "generation": generation,
                "resourceVersion": str(next(self._versions)),
                "creationTimestamp": created,
                **({"labels": labels} if labels is not None else {}),
            },
            "spec": spec,
            **({"status": before["status"]} if before is not None and "status" in before else {}),
        }
        self.cache.observe(resource, body)
        assert key == key_of(resource, body)
        return key
