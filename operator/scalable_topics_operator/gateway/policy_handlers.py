"""Overrides of the auto-scale policy, kept as SegmentAutoScalePolicies that REST makes and replaces (pip-483, R32)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import yaml
from aiohttp import web

from scalable_topics_operator.autoscale.policy import Knobs, Level
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeError
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_text, key_of
from scalable_topics_operator.cluster.resources import POLICIES
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.parsed_policy import (
    CLUSTER,
    ONE_TOPIC,
    PULSAR_NAMESPACE,
    InvalidKnobs,
    inline_level,
    inline_name,
    policy_name,
)
from scalable_topics_operator.controllers.policy_book import PolicyBook
from scalable_topics_operator.controllers.policy_shelf import Group
from scalable_topics_operator.gateway import policy_routes
from scalable_topics_operator.gateway.acting import CallerWrites
from scalable_topics_operator.gateway.common_parameters import CONNECTION
from scalable_topics_operator.gateway.mappings import Mappings, NamespaceMapping
from scalable_topics_operator.gateway.policy_fields import (
    InvalidField,
    knobs_of_override,
    manifest_of_knobs,
    override_of_knobs,
)
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import Bound, Call, RestAdmission, Subject
from scalable_topics_operator.gateway.waiting import ObjectWaits

MADE_BY_LABEL = "scalabletopics.io/made-by"
MADE_BY_REST = "rest"

_NAME_CHARS = 200
_THIS = "this override"


@dataclass(frozen=True, slots=True)
class _Place:
    """What an override is for, and where it is kept.

    Args:
        namespace: of Kubernetes.
        target: of the policy.
        name: how the policies' names begin.
    """

    namespace: str
    target: Mapping[str, Any]
    name: str

    def is_of(self, body: Body) -> bool:
        """Whether a policy is an override that REST made for this."""
        labels = body["metadata"].get("labels") or {}
        return labels.get(MADE_BY_LABEL) == MADE_BY_REST and body["spec"].get("target") == self.target

    def manifest(self, knobs: Knobs) -> Body:
        """The policy that sets these knobs."""
        return {
            "apiVersion": POLICIES.api_version,
            "kind": POLICIES.kind,
            "metadata": {
                "namespace": self.namespace,
                "name": f"{self.name[:_NAME_CHARS].rstrip('-.')}-rest-{uuid.uuid4().hex[:8]}",
                "labels": {MADE_BY_LABEL: MADE_BY_REST},
            },
            "spec": {"target": dict(self.target), **manifest_of_knobs(knobs)},
        }


class PolicyHandlers:
    """Handles overrides. One that is set anew is another object: no spec is ever edited.

    Args:
        admission: finds topics and asks for rights.
        writes: makes objects for callers.
        waits: lets them wait.
        mappings: where objects are made.
        cache: the objects.
        book: what applies to which topic.
        kube: tells which overrides there are now.
    """

    def __init__(
        self,
        admission: RestAdmission,
        writes: CallerWrites,
        waits: ObjectWaits,
        mappings: Mappings,
        cache: ObjectCache,
        book: PolicyBook,
        kube: KubeClient,
    ) -> None:
        self._admission = admission
        self._writes = writes
        self._waits = waits
        self._mappings = mappings
        self._cache = cache
        self._book = book
        self._kube = kube

    def bound(self) -> list[Bound]:
        """What it answers."""
        return [
            (policy_routes.GET_POLICY, self._get),
            (policy_routes.SET_POLICY, self._set),
            (policy_routes.DELETE_POLICY, self._delete),
            (policy_routes.GET_NAMESPACE_POLICY, self._get_of_namespace),
            (policy_routes.SET_NAMESPACE_POLICY, self._set_of_namespace),
            (policy_routes.DELETE_NAMESPACE_POLICY, self._delete_of_namespace),
        ]

    def override(self, subject: Subject) -> dict[str, Any]:
        """What is set for one topic alone: by policies of scope Topic, and over them by its own spec."""
        return override_of_knobs({**_merged(self._of_topic(subject)), **_inline_knobs(subject)})

    async def _get(self, call: Call) -> web.StreamResponse:
        return _answer(self.override(await self._admission.topic(call)))

    async def _set(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        place, knobs = _place_of(subject), await _knobs(call)
        manifest = place.manifest(knobs)
        self._writes.require_enabled(_yaml(manifest))
        self._require_mapped(subject, manifest)
        inline = Level(inline_name(subject.key), _inline_knobs(subject))
        self._require_free(place, self._of_topic(subject), knobs)
        if own := sorted(inline.knobs.keys() & knobs.keys()):
            why = f"{inline.origin} sets {', '.join(own)} in spec.autoScale, which goes before; change it there"
            raise Refusal(409, why)
        wider = [one.level for one in self._book.applied(subject.key, subject.body) if one.scope != ONE_TOPIC]
        self._require_sound([*wider, Level(_THIS, knobs), inline])
        await self._replace(call, place, manifest)
        return web.Response(status=204)

    async def _delete(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        self._writes.require_enabled()
        place = _place_of(subject)
        self._require_mapped(subject)
        self._require_free(place, self._of_topic(subject))
        if _inline_knobs(subject):
            raise Refusal(409, f"{inline_name(subject.key)} has knobs in spec.autoScale; remove them there")
        await self._drop(call, await self._listed(place))
        return web.Response(status=204)

    async def _get_of_namespace(self, call: Call) -> web.StreamResponse:
        mapping = await self._mapping(call)
        return _answer(override_of_knobs(_merged(self._of_namespace(mapping))))

    async def _set_of_namespace(self, call: Call) -> web.StreamResponse:
        knobs = await _knobs(call)
        unmapped = _place_unmapped(call).manifest(knobs)
        self._writes.require_enabled(_yaml(unmapped))
        mapping = await self._mapping(call, unmapped)
        place = _place_in(mapping)
        self._require_free(place, self._of_namespace(mapping), knobs)
        wider = [
            one.level
            for one in self._book.policies_in(place.namespace)
            if one.scope == CLUSTER and one.connection == mapping.connection
        ]
        self._require_sound([*wider, Level(_THIS, knobs)])
        await self._replace(call, place, place.manifest(knobs))
        return web.Response(status=204)

    async def _delete_of_namespace(self, call: Call) -> web.StreamResponse:
        self._writes.require_enabled()
        mapping = await self._mapping(call)
        place = _place_in(mapping)
        self._require_free(place, self._of_namespace(mapping))
        await self._drop(call, await self._listed(place))
        return web.Response(status=204)

    async def _mapping(self, call: Call, manifest: Body | None = None) -> NamespaceMapping:
        """The mapping of the path's Pulsar namespace, for a caller with the rights. Raises Refusal."""
        mapping = self._mappings.one_of(call.pulsar_namespace, call.values.get(CONNECTION))
        if mapping is None:
            raise Refusal(
                405 if call.route.writes else 404,
                f"no connection maps Pulsar namespace {call.pulsar_namespace} to a Kubernetes one "
                "(spec.pulsarNamespaceMappings); see to the SegmentAutoScalePolicy in the connection's namespace",
                manifest=_yaml(manifest),
            )
        for right in call.route.rights:
            await self._admission.require(call, right, mapping.connection.namespace)
        return mapping

    def _require_mapped(self, subject: Subject, manifest: Body | None = None) -> None:
        connection = connection_text(subject.body)
        if not self._mappings.all_of(subject.topic.pulsar_namespace, connection):
            raise Refusal(
                405,
                f"connection {connection} does not map Pulsar namespace {subject.topic.pulsar_namespace} to a "
                "Kubernetes one (spec.pulsarNamespaceMappings); apply or delete the SegmentAutoScalePolicy itself",
                manifest=_yaml(manifest),
            )

    def _require_free(self, place: _Place, group: Group, knobs: Knobs | None = None) -> None:
        """Raises Refusal: 409 where policies that REST has not made set these knobs, or any, for the same."""
        for policy in group:
            body = self._cache.get(policy.key)
            if body is None or place.is_of(body):
                continue
            sets = sorted(policy.level.knobs if knobs is None else policy.level.knobs.keys() & knobs.keys())
            if sets:
                raise Refusal(409, f"{policy_name(policy.key)} sets {', '.join(sets)} already; change or delete that")

    def _require_sound(self, levels: list[Level]) -> None:
        """Raises Refusal: 412 for knobs that contradict each other once all levels are laid over each other."""
        problem = self._book.resolved(levels).problem
        if problem:
            raise Refusal(412, f"the policy that would come out contradicts itself: {problem}")

    def _of_topic(self, subject: Subject) -> Group:
        return tuple(one for one in self._book.applied(subject.key, subject.body) if one.scope == ONE_TOPIC)

    def _of_namespace(self, mapping: NamespaceMapping) -> Group:
        return tuple(
            one
            for one in self._book.policies_in(mapping.connection.namespace)
            if one.connection == mapping.connection and one.pulsar_namespace == mapping.pulsar_namespace
        )

    async def _replace(self, call: Call, place: _Place, manifest: Body) -> None:
        """Make the new override, then delete those before it, so that there is one all the time.

        Of two that are made at the same time the older one stays, as it would win anyway.
        """
        self._waits.require_room()
        former = await self._listed(place)
        made = await self._writes.create(call.caller, POLICIES, manifest)
        known = {body["metadata"]["uid"] for body in (*former, made)}
        rivals = [body for body in await self._listed(place) if body["metadata"]["uid"] not in known]
        if any(_age(rival) < _age(made) for rival in rivals):
            await self._writes.delete(call.caller, POLICIES, made)
            raise Refusal(409, "somebody else has just set the same override; look at it and try again")
        await self._drop(call, former)
        await self._waits.until(key_of(POLICIES, made), lambda body: True if body is not None else None)

    async def _drop(self, call: Call, bodies: list[Body]) -> None:
        for body in bodies:
            await self._writes.delete(call.caller, POLICIES, body)
            await self._waits.until(key_of(POLICIES, body), partial(_gone, body["metadata"]["uid"]))

    async def _listed(self, place: _Place) -> list[Body]:
        """The overrides there are now, whatever this replica has seen. Raises Refusal: 503."""
        try:
            selector = f"{MADE_BY_LABEL}={MADE_BY_REST}"
            pages = self._kube.list_pages(POLICIES, place.namespace, label_selector=selector)
            return [body async for page, _ in pages for body in page if place.is_of(body)]
        except KubeError:
            raise Refusal(503, "the Kubernetes API server does not tell which overrides there are; try again") from None


def _place_of(subject: Subject) -> _Place:
    return _Place(subject.key.namespace, {"scope": ONE_TOPIC, "topicRef": {"name": subject.key.name}}, subject.key.name)


def _place_in(mapping: NamespaceMapping) -> _Place:
    return _namespace_place(mapping.connection, mapping.pulsar_namespace)


def _place_unmapped(call: Call) -> _Place:
    namespace, _, name = (call.values.get(CONNECTION) or "its-namespace/the-connection").partition("/")
    return _namespace_place(ObjectKey("", namespace, name), call.pulsar_namespace)


def _namespace_place(connection: ObjectKey, pulsar_namespace: str) -> _Place:
    target = {
        "scope": PULSAR_NAMESPACE,
        "connectionRef": {"name": connection.name},
        "pulsarNamespace": pulsar_namespace,
    }
    return _Place(connection.namespace, target, connection.name)


def _inline_knobs(subject: Subject) -> dict[str, Any]:
    try:
        inline = inline_level(subject.key, subject.body)
    except InvalidKnobs as error:
        raise Refusal(409, f"{inline_name(subject.key)}: {error}; correct it first") from None
    return dict(inline.knobs) if inline is not None else {}


async def _knobs(call: Call) -> Knobs:
    """The knobs that the body sets. Raises Refusal: 400, 412 as brokers answer to values that cannot be."""
    body = await call.json()
    if not isinstance(body, dict):
        raise Refusal(400, "the body must be a JSON object with the fields to set")
    try:
        return knobs_of_override(body)
    except InvalidField as error:
        raise Refusal(400, str(error)) from None


def _answer(override: Mapping[str, Any]) -> web.Response:
    return web.json_response(override) if override else web.Response(status=204)


def _merged(group: Group) -> Knobs:
    return {path: value for policy in group for path, value in policy.level.knobs.items()}


def _age(body: Body) -> tuple[str, str]:
    return body["metadata"]["creationTimestamp"], body["metadata"]["uid"]


def _gone(uid: str, body: Body | None) -> bool | None:
    return True if body is None or body["metadata"]["uid"] != uid else None


def _yaml(manifest: Body | None) -> str:
    return yaml.safe_dump(manifest, sort_keys=False) if manifest else ""
