"""ScalableTopics made for callers: where they go, what they say, and what becomes of them (R3, R32)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import yaml
from aiohttp import web

from scalable_topics.layout import TopicName
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_of, key_of
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.conditions import find_condition, holds
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.topic_work import BY_NAME
from scalable_topics_operator.gateway.acting import CallerWrites
from scalable_topics_operator.gateway.common_parameters import CONNECTION
from scalable_topics_operator.gateway.mappings import Mappings, NamespaceMapping
from scalable_topics_operator.gateway.object_names import object_name
from scalable_topics_operator.gateway.policy_handlers import MADE_BY_LABEL, MADE_BY_REST
from scalable_topics_operator.gateway.reason_statuses import status_of
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import Call
from scalable_topics_operator.gateway.waiting import ObjectWaits

_DELETIONS = 3
_GONE = "gone"


class TopicDeclarations:
    """Makes ScalableTopics as callers, and waits for them.

    Args:
        writes: makes objects for callers.
        waits: lets them wait.
        mappings: where objects are made.
        cache: the objects.
        namespaces: Kubernetes namespaces that this operator watches; empty for all.
    """

    def __init__(
        self,
        writes: CallerWrites,
        waits: ObjectWaits,
        mappings: Mappings,
        cache: ObjectCache,
        namespaces: Collection[str],
    ) -> None:
        self._writes = writes
        self._waits = waits
        self._mappings = mappings
        self._cache = cache
        self._namespaces = namespaces

    def mapping_of(self, call: Call, spec: Mapping[str, Any]) -> NamespaceMapping:
        """Where the object of a topic is made. Raises Refusal: 400, or 405 with the manifest where nothing says so."""
        mapping = self._mappings.one_of(call.pulsar_namespace, call.values.get(CONNECTION))
        if mapping is not None:
            return mapping
        raise Refusal(
            405,
            f"no connection maps Pulsar namespace {call.pulsar_namespace} to a Kubernetes one "
            "(spec.pulsarNamespaceMappings); apply a ScalableTopic",
            manifest=as_yaml(topic_manifest(call.topic, _unmapped(call), "a-namespace", spec)),
        )

    def require_free(self, topic: TopicName, mapping: NamespaceMapping) -> None:
        """Raises Refusal: 409 where an object would not be seen, or there is one already."""
        if self._namespaces and mapping.namespace not in self._namespaces:
            raise Refusal(
                409, f"this operator does not watch namespace {mapping.namespace}, which the connection maps to"
            )
        for key, body in self._cache.find(BY_NAME, str(topic)):
            if connection_of(body) == mapping.connection:
                raise Refusal(409, f"{topic} is there already: ScalableTopic {key.namespace}/{key.name} declares it")

    async def make(self, call: Call, manifest: Body, cannot: str) -> web.StreamResponse:
        """Make an object and wait until it is ready; one that cannot be leaves nothing behind.

        Args:
            call: whose it is.
            manifest: of the object.
            cannot: what is said of the topic where it cannot be.

        Raises Refusal.
        """
        self._waits.require_room()
        made = await self._writes.create(call.caller, TOPICS, manifest)
        key, seen = key_of(TOPICS, made), ""
        for _ in range(_DELETIONS):
            body = await self._waits.until(key, lambda body, seen=seen: _decided(body, made, seen))  # type: ignore[misc]
            if body is None:
                break
            status, seen = body["status"], body["metadata"]["resourceVersion"]
            if not holds(status, "Stalled"):
                return web.Response(status=204)
            # What the operator has begun since, it shall end.
            if await self._writes.delete_unchanged(call.caller, TOPICS, body):
                ready = find_condition(status, "Ready")
                await self._waits.until(key, lambda body: _gone(body, made))
                raise Refusal(status_of(ready["reason"]), f"{call.topic} {cannot}: {ready['message']}")
        latest = self._waits.latest(key) or made
        return accepted(f"ScalableTopic {key.namespace}/{key.name} is made, and not ready yet", latest)


def topic_manifest(topic: TopicName, connection: ObjectKey, namespace: str, spec: Mapping[str, Any]) -> Body:
    """The manifest of a topic.

    Args:
        topic: its name.
        connection: the Pulsar cluster.
        namespace: of the object.
        spec: what else it says.
    """
    reference = {"name": connection.name}
    if connection.namespace != namespace:
        reference["namespace"] = connection.namespace
    return {
        "apiVersion": TOPICS.api_version,
        "kind": TOPICS.kind,
        "metadata": {
            "namespace": namespace,
            "name": object_name(topic.local),
            "labels": {MADE_BY_LABEL: MADE_BY_REST},
        },
        "spec": {"topic": str(topic), "connectionRef": reference, **spec},
    }


def accepted(what: str, body: Body) -> web.Response:
    """202: it goes on, and as the object's condition says."""
    ready = find_condition(body.get("status") or {}, "Ready")
    why = f": {ready['reason']}: {ready['message']}" if ready else ""
    return web.json_response({"reason": what + why}, status=202)


def as_yaml(manifest: Body) -> str:
    """A manifest to apply."""
    return yaml.safe_dump(manifest, sort_keys=False)


def _decided(body: Body | None, made: Body, seen: str) -> Body | None:
    """The object once it is ready or cannot be, in another version than the one that was seen."""
    if body is None or body["metadata"]["uid"] != made["metadata"]["uid"]:
        return None
    status = body.get("status") or {}
    if (
        body["metadata"]["resourceVersion"] == seen
        or status.get("observedGeneration") != made["metadata"]["generation"]
    ):
        return None
    is_ready = holds(status, "Ready") and not holds(status, "Reconciling")
    return body if is_ready or holds(status, "Stalled") else None


def _gone(body: Body | None, made: Body) -> str | None:
    return _GONE if body is None or body["metadata"]["uid"] != made["metadata"]["uid"] else None


def _unmapped(call: Call) -> ObjectKey:
    namespace, _, name = (call.values.get(CONNECTION) or "its-namespace/the-connection").partition("/")
    return ObjectKey("", namespace, name)
