"""Scalable topics: listed, created, shown and deleted; what only their leaders know is asked of these."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Collection, Mapping
from typing import Any

import yaml
from aiohttp import web

from scalable_topics.layout import LayoutError, TopicName, to_pip468, validate_scalable_name
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey, key_of
from scalable_topics_operator.cluster.resources import FORCE_DELETE_ANNOTATION, TOPICS
from scalable_topics_operator.controllers.conditions import find_condition, holds
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.topic_work import BY_NAME, BY_PULSAR_NAMESPACE, connection_of
from scalable_topics_operator.gateway import topic_routes as routes
from scalable_topics_operator.gateway.acting import CallerWrites
from scalable_topics_operator.gateway.common_parameters import CONNECTION, FORCE
from scalable_topics_operator.gateway.looks import SegmentLooks
from scalable_topics_operator.gateway.mappings import Mappings, NamespaceMapping
from scalable_topics_operator.gateway.policy_handlers import MADE_BY_LABEL, MADE_BY_REST, PolicyHandlers
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import Bound, Call, RestAdmission, Subject
from scalable_topics_operator.gateway.route import Right
from scalable_topics_operator.gateway.waiting import ObjectWaits

# Why a topic cannot be made, and what that is in HTTP; everything else is 409.
_STATUSES: Mapping[str, int] = {
    "NamespaceMissing": 404,
    "NotAllowed": 403,
    "InvalidSpec": 400,
    "InvalidName": 400,
}
_MOST_PROPERTIES, _PROPERTY_CHARS = 64, 1024
_NAME_CHARS = 200
_GONE = "gone"


class TopicHandlers:
    """Handles topics.

    Args:
        admission: finds topics and asks for rights.
        writes: makes objects for callers.
        waits: lets them wait.
        mappings: where objects are made.
        cache: the objects, with index `BY_PULSAR_NAMESPACE`.
        looks: asks brokers.
        policies: tells the override of a topic.
        namespaces: Kubernetes namespaces that this operator watches; empty for all.
    """

    def __init__(
        self,
        admission: RestAdmission,
        writes: CallerWrites,
        waits: ObjectWaits,
        mappings: Mappings,
        cache: ObjectCache,
        looks: SegmentLooks,
        policies: PolicyHandlers,
        namespaces: Collection[str],
    ) -> None:
        self._admission = admission
        self._writes = writes
        self._waits = waits
        self._mappings = mappings
        self._cache = cache
        self._looks = looks
        self._policies = policies
        self._namespaces = namespaces

    def bound(self) -> list[Bound]:
        """What it answers."""
        return [
            (routes.LIST_TOPICS, self._list),
            (routes.CREATE_TOPIC, self._create),
            (routes.GET_TOPIC, self._record),
            (routes.DELETE_TOPIC, self._delete),
        ]

    async def _list(self, call: Call) -> web.StreamResponse:
        wanted = dict(text.split("=", 1) for text in call.values.all(routes.PROPERTY))
        connection, (right,) = call.values.get(CONNECTION), call.route.rights
        found = self._cache.find(BY_PULSAR_NAMESPACE, call.pulsar_namespace)
        mapped = {mapping.namespace for mapping in self._mappings.all_of(call.pulsar_namespace, connection)}
        shown = await self._shown_namespaces(call, right, mapped | {key.namespace for key, _ in found})
        names = {
            str(TopicName.parse(body["spec"]["topic"]))
            for key, body in found
            if key.namespace in shown
            and connection in (None, _text(connection_of(body)))
            and (body.get("status") or {}).get("layout")
            and wanted.items() <= (body["spec"].get("properties") or {}).items()
        }
        return web.json_response(sorted(names))

    async def _shown_namespaces(self, call: Call, right: Right, namespaces: set[str]) -> set[str]:
        """Those whose topics the caller may see. Raises Refusal: 403 if there are some, and none of these."""
        ordered = sorted(namespaces)
        answers = await asyncio.gather(*(self._admission.allows(call, right, one) for one in ordered))
        shown = {one for one, allowed in zip(ordered, answers, strict=True) if allowed}
        if ordered and not shown:
            await self._admission.require(call, right, ordered[0])
        return shown

    async def _create(self, call: Call) -> web.StreamResponse:
        topic, (right,) = call.topic, call.route.rights
        try:
            validate_scalable_name(topic)
        except LayoutError as error:
            raise Refusal(400, str(error)) from None
        segments = call.values.get(routes.INITIAL_SEGMENTS) or 1
        properties = _properties(await call.json())
        mapping = self._mappings.one_of(call.pulsar_namespace, call.values.get(CONNECTION))
        if mapping is None:
            raise Refusal(
                405,
                f"no connection maps Pulsar namespace {call.pulsar_namespace} to a Kubernetes one "
                "(spec.pulsarNamespaceMappings); apply a ScalableTopic",
                manifest=_yaml(_manifest(topic, _unmapped(call), segments, properties, "a-namespace")),
            )
        manifest = _manifest(topic, mapping.connection, segments, properties, mapping.namespace)
        self._writes.require_enabled(_yaml(manifest))
        await self._admission.require(call, right, mapping.namespace)
        mapping.require_allowed(mapping.namespace, topic)
        self._require_free(topic, mapping)
        self._waits.require_room()
        made = await self._writes.create(call.caller, TOPICS, manifest)
        return await self._until_ready(call, topic, made)

    def _require_free(self, topic: TopicName, mapping: NamespaceMapping) -> None:
        if self._namespaces and mapping.namespace not in self._namespaces:
            raise Refusal(
                409, f"this operator does not watch namespace {mapping.namespace}, which the connection maps to"
            )
        for key, body in self._cache.find(BY_NAME, str(topic)):
            if connection_of(body) == mapping.connection:
                raise Refusal(409, f"{topic} is there already: ScalableTopic {key.namespace}/{key.name} declares it")

    async def _until_ready(self, call: Call, topic: TopicName, made: Body) -> web.StreamResponse:
        """Wait for a topic that was just declared; what cannot be made leaves no object behind."""
        key, uid = key_of(TOPICS, made), made["metadata"]["uid"]

        def became(body: Body | None) -> Body | None:
            if body is None or body["metadata"]["uid"] != uid:
                return None
            status = body.get("status") or {}
            seen = status.get("observedGeneration") == body["metadata"]["generation"]
            return body if seen and (holds(status, "Stalled") or _is_ready(status)) else None

        body = await self._waits.until(key, became)
        if body is None:
            latest = self._waits.latest(key) or made
            return _accepted(f"ScalableTopic {key.namespace}/{key.name} is made, and not ready yet", latest)
        status = body["status"]
        if not holds(status, "Stalled"):
            return web.Response(status=204)
        ready = find_condition(status, "Ready")
        await self._writes.delete(call.caller, TOPICS, body)
        raise Refusal(_STATUSES.get(ready["reason"], 409), f"{topic} cannot be made: {ready['message']}")

    async def _record(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        record = to_pip468(subject.layout, subject.body["spec"].get("properties") or {})
        if override := self._policies.override(subject):
            record["autoScalePolicy"] = override
        return web.json_response(record)

    async def _delete(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        self._writes.require_enabled()
        self._waits.require_room()
        if not subject.body["metadata"].get("deletionTimestamp"):
            self._require_deletable(subject)
            await self._delete_object(call, subject)
        uid = subject.body["metadata"]["uid"]
        gone = await self._waits.until(
            subject.key, lambda body: _GONE if body is None or body["metadata"]["uid"] != uid else None
        )
        if gone is not None:
            return web.Response(status=204)
        return _accepted(f"{subject.topic} is being deleted", self._waits.latest(subject.key) or subject.body)

    def _require_deletable(self, subject: Subject) -> None:
        connection = connection_of(subject.body)
        mappings = self._mappings.all_of(subject.topic.pulsar_namespace, _text(connection))
        if not mappings:
            raise Refusal(
                405,
                f"connection {_text(connection)} does not map Pulsar namespace {subject.topic.pulsar_namespace} to a "
                f"Kubernetes one (spec.pulsarNamespaceMappings); kubectl delete scalabletopic {subject.key.name} "
                f"-n {subject.key.namespace}",
            )
        if subject.body["spec"].get("deletionPolicy", "Retain") != "Delete":
            raise Refusal(
                409,
                f"ScalableTopic {subject.key.name} has deletionPolicy: Retain, so that its data would stay; set it to "
                "Delete first, or kubectl delete it to let go of the topic",
            )
        mappings[0].require_allowed(subject.key.namespace, subject.topic, "Delete")

    async def _delete_object(self, call: Call, subject: Subject) -> None:
        if call.values.get(FORCE):
            await self._writes.annotate(call.caller, TOPICS, subject.body, {FORCE_DELETE_ANNOTATION: "true"})
        elif subject.status.get("layout"):
            looks = await self._looks.all(subject)
            producers = sum(len(look.producers) for look in looks)
            consumers = sum(look.consumers for look in looks)
            if producers or consumers:
                raise Refusal(
                    412,
                    f"{producers} producers and {consumers} consumers are attached to {subject.topic}; stop them, or "
                    "?force=true",
                )
        await self._writes.delete(call.caller, TOPICS, subject.body)


def object_name(local: str) -> str:
    """What the object of a topic is called that REST makes: the topic's own name, where objects may have it."""
    plain = re.sub("[^a-z0-9.]+", "-", local.lower())
    plain = re.sub(r"[-.]*\.[-.]*", ".", plain).strip("-.")[:_NAME_CHARS].strip("-.")
    if plain == local:
        return plain
    digest = hashlib.sha256(local.encode()).hexdigest()[:8]
    return f"{plain}-{digest}" if plain else f"topic-{digest}"


def _manifest(
    topic: TopicName, connection: ObjectKey, segments: int, properties: Mapping[str, str], namespace: str
) -> Body:
    reference = {"name": connection.name}
    if connection.namespace != namespace:
        reference["namespace"] = connection.namespace
    spec: dict[str, Any] = {
        "topic": str(topic),
        "connectionRef": reference,
        "segments": {"initial": segments},
        "deletionPolicy": "Delete",
    }
    if properties:
        spec["properties"] = dict(properties)
    return {
        "apiVersion": TOPICS.api_version,
        "kind": TOPICS.kind,
        "metadata": {
            "namespace": namespace,
            "name": object_name(topic.local),
            "labels": {MADE_BY_LABEL: MADE_BY_REST},
        },
        "spec": spec,
    }


def _unmapped(call: Call) -> ObjectKey:
    namespace, _, name = (call.values.get(CONNECTION) or "its-namespace/the-connection").partition("/")
    return ObjectKey("", namespace, name)


def _properties(body: Any) -> dict[str, str]:
    """The properties in a body; brokers' clients send an empty text for none. Raises Refusal: 400."""
    if body is None or body == "":
        return {}
    if not isinstance(body, dict) or not all(isinstance(value, str) for value in body.values()):
        raise Refusal(400, "the body must be a JSON object of texts: the properties of the topic")
    if len(body) > _MOST_PROPERTIES or any(len(value) > _PROPERTY_CHARS for value in body.values()):
        raise Refusal(400, f"a topic has {_MOST_PROPERTIES} properties of {_PROPERTY_CHARS} characters at most")
    return dict(body)


def _is_ready(status: Mapping[str, Any]) -> bool:
    return holds(status, "Ready") and not holds(status, "Reconciling")


def _accepted(what: str, body: Body) -> web.Response:
    ready = find_condition(body.get("status") or {}, "Ready")
    why = f": {ready['reason']}: {ready['message']}" if ready else ""
    return web.json_response({"reason": what + why}, status=202)


def _text(connection: ObjectKey) -> str:
    return f"{connection.namespace}/{connection.name}"


def _yaml(manifest: Body) -> str:
    return yaml.safe_dump(manifest, sort_keys=False)
