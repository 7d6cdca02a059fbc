"""Scalable topics: listed, created, shown and deleted; what only their leaders know is asked of these."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from scalable_topics.layout import LayoutError, TopicName, synthetic_layout, to_pip468, validate_scalable_name
from scalable_topics_operator.cluster.object_key import connection_of, connection_text
from scalable_topics_operator.cluster.resources import FORCE_DELETE_ANNOTATION, TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.topic_work import BY_PULSAR_NAMESPACE
from scalable_topics_operator.gateway import topic_routes as routes
from scalable_topics_operator.gateway.acting import CallerWrites
from scalable_topics_operator.gateway.common_parameters import CONNECTION, FORCE
from scalable_topics_operator.gateway.declaring import TopicDeclarations, accepted, as_yaml, topic_manifest
from scalable_topics_operator.gateway.domains import DOMAIN, is_resolved
from scalable_topics_operator.gateway.looks import SegmentLooks
from scalable_topics_operator.gateway.mappings import Mappings
from scalable_topics_operator.gateway.object_names import object_name
from scalable_topics_operator.gateway.ordinary_topics import OrdinaryTopics
from scalable_topics_operator.gateway.policy_handlers import PolicyHandlers
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import Bound, Call, RestAdmission, Subject
from scalable_topics_operator.gateway.topic_directory import Unfound
from scalable_topics_operator.gateway.waiting import ObjectWaits
from scalable_topics_operator.operations.legacy_survey import LegacySurvey

_MOST_PROPERTIES, _PROPERTY_CHARS = 64, 1024
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
        declarations: makes topics.
        ordinary: knows topics that are not scalable yet.
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
        declarations: TopicDeclarations,
        ordinary: OrdinaryTopics,
    ) -> None:
        self._admission = admission
        self._writes = writes
        self._waits = waits
        self._mappings = mappings
        self._cache = cache
        self._looks = looks
        self._policies = policies
        self._declarations = declarations
        self._ordinary = ordinary

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
        namespaces = sorted(mapped | {key.namespace for key, _ in found})
        shown = await self._admission.shown_namespaces(call, right, namespaces)
        names = {
            str(TopicName.parse(body["spec"]["topic"]))
            for key, body in found
            if key.namespace in shown
            and connection in (None, connection_text(body))
            and (body.get("status") or {}).get("layout")
            and wanted.items() <= (body["spec"].get("properties") or {}).items()
        }
        return web.json_response(sorted(names))

    async def _create(self, call: Call) -> web.StreamResponse:
        topic, (right,) = call.topic, call.route.rights
        try:
            validate_scalable_name(topic)
        except LayoutError as error:
            raise Refusal(400, str(error)) from None
        segments, properties = call.values.get(routes.INITIAL_SEGMENTS) or 1, _properties(await call.json())
        spec: dict[str, Any] = {"segments": {"initial": segments}, "deletionPolicy": "Delete"}
        if properties:
            spec["properties"] = properties
        mapping = self._declarations.mapping_of(call, spec)
        manifest = topic_manifest(topic, mapping.connection, mapping.namespace, spec)
        self._writes.require_enabled(as_yaml(manifest))
        await self._admission.require(call, right, mapping.namespace)
        mapping.require_allowed(mapping.namespace, topic)
        self._declarations.require_free(topic, mapping)
        return await self._declarations.make(call, manifest, "cannot be made")

    async def _record(self, call: Call) -> web.StreamResponse:
        resolved = is_resolved(call.values.get(DOMAIN))
        try:
            subject = await self._admission.topic(call)
        except Unfound as unfound:
            if not resolved or unfound.status != 404:
                raise
            return await self._ordinary_record(call, unfound)
        if resolved and not subject.status.get("layout"):
            survey = await self._ordinary.survey(subject.topic, connection_of(subject.body))
            if survey is not None:
                return web.json_response(_modelled(subject.topic, survey))
        record = to_pip468(subject.layout, subject.body["spec"].get("properties") or {})
        if override := self._policies.override(subject):
            record["autoScalePolicy"] = override
        return web.json_response(record)

    async def _ordinary_record(self, call: Call, unfound: Unfound) -> web.StreamResponse:
        mapping = self._ordinary.mapping_of(call.topic, call.values.get(CONNECTION))
        if mapping is None:
            raise unfound
        for right in call.route.rights:
            await self._admission.require(call, right, mapping.namespace, object_name(call.topic.local))
        survey = await self._ordinary.survey(call.topic, mapping.connection)
        if survey is None:
            raise unfound
        return web.json_response(_modelled(call.topic, survey))

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
        return accepted(f"{subject.topic} is being deleted", self._waits.latest(subject.key) or subject.body)

    def _require_deletable(self, subject: Subject) -> None:
        connection = connection_text(subject.body)
        mappings = self._mappings.all_of(subject.topic.pulsar_namespace, connection)
        if not mappings:
            raise Refusal(
                405,
                f"connection {connection} does not map Pulsar namespace {subject.topic.pulsar_namespace} to a "
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
            attached = await self._looks.attached(subject)
            consumers = sum(attached.consumers.values())
            if attached.producers or consumers:
                raise Refusal(
                    412,
                    f"{attached.producers} producers and {consumers} consumers are attached to {subject.topic}; stop "
                    "them, or ?force=true",
                )
        await self._writes.delete(call.caller, TOPICS, subject.body)


def _properties(body: Any) -> dict[str, str]:
    """The properties in a body; brokers' clients send an empty text for none. Raises Refusal: 400."""
    if body is None or body == "":
        return {}
    if not isinstance(body, dict) or not all(isinstance(value, str) for value in body.values()):
        raise Refusal(400, "the body must be a JSON object of texts: the properties of the topic")
    if len(body) > _MOST_PROPERTIES or any(len(value) > _PROPERTY_CHARS for value in body.values()):
        raise Refusal(400, f"a topic has {_MOST_PROPERTIES} properties of {_PROPERTY_CHARS} characters at most")
    return dict(body)


def _modelled(topic: TopicName, survey: LegacySurvey) -> dict[str, Any]:
    """The record that models an ordinary topic."""
    record = to_pip468(synthetic_layout(topic, survey.partitions), survey.properties)
    return {**record, "routing": "Modulo"}
