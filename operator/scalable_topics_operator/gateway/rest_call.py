"""A request of the admin REST, from its arrival to the handler that answers it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from scalable_topics.layout import LayoutError, SegmentLayout, TopicName, from_record
from scalable_topics.layout.json_fields import parse_json
from scalable_topics_operator.cluster.caller import Caller
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, SUBSCRIPTIONS, TOPICS
from scalable_topics_operator.controllers.conditions import find_condition
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.ordered_subscriptions import subscription_object_name
from scalable_topics_operator.gateway.access import NAMESPACES_AT_A_TIME, Access, lacking
from scalable_topics_operator.gateway.common_parameters import (
    CONNECTION,
    NAMESPACE,
    OPERATION,
    SUBSCRIPTION,
    TENANT,
    TOPIC,
)
from scalable_topics_operator.gateway.parameters import Values, read_values
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.route import Right, Route
from scalable_topics_operator.gateway.topic_directory import TopicDirectory

BODY_BYTES = 256 * 1024
"""Larger bodies are refused: 64 properties of 1,024 characters fit, however they are written."""

NAMED_VERBS = frozenset({"get", "delete", "produce"})
"""Verbs that are asked for on one object by its name."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request whose caller is known.

    Args:
        request: as it came.
        route: what is asked.
        values: its parameters.
        caller: who asks.
        authorization: the header, by which a leader judges again.
    """

    request: web.Request
    route: Route
    values: Values
    caller: Caller
    authorization: str = field(repr=False)

    @property
    def pulsar_namespace(self) -> str:
        """`tenant/namespace` of the path."""
        return f"{self.values.need(TENANT)}/{self.values.need(NAMESPACE)}"

    @property
    def topic(self) -> TopicName:
        """The topic of the path."""
        return TopicName(self.values.need(TENANT), self.values.need(NAMESPACE), self.values.need(TOPIC))

    async def json(self) -> Any:
        """The body; None if there is none. Raises Refusal: 400 for what is no JSON."""
        try:
            text = (await self.request.read()).decode()
            return parse_json(text) if text.strip() else None
        except ValueError as error:
            raise Refusal(400, f"the body is no JSON: {error}") from None


@dataclass(frozen=True, slots=True)
class Subject:
    """The topic that a request is about.

    Args:
        topic: its name.
        key: of its object.
        body: the object.
    """

    topic: TopicName
    key: ObjectKey
    body: Body

    @property
    def status(self) -> Mapping[str, Any]:
        """Of the object."""
        status: Mapping[str, Any] = self.body.get("status") or {}
        return status

    @property
    def layout(self) -> SegmentLayout:
        """Its segments. Raises Refusal: 503 while it has none, or none that can be read."""
        record = self.status.get("layout")
        try:
            if record:
                return from_record(record)
            ready = find_condition(self.status, "Ready")
            why = f"{ready.get('reason')}: {ready.get('message')}" if ready else "the operator has not looked at it yet"
            raise Refusal(503, f"{self.topic} is not made yet: {why}")
        except LayoutError as error:
            raise Refusal(503, f"the record of {self.topic} cannot be read: {error}") from None

    def require_changeable(self) -> None:
        """Raises Refusal: 409 where the operator does nothing with the topic."""
        if self.body["metadata"].get("deletionTimestamp"):
            raise Refusal(409, f"{self.topic} is being deleted")
        if self.body["spec"].get("paused"):
            raise Refusal(409, f"ScalableTopic {self.key.name} is paused: set spec.paused to false first")


Handler = Callable[[Call], Awaitable[web.StreamResponse]]
Bound = tuple[Route, Handler]
"""A route and what answers it."""


class RestAdmission:
    """Knows callers, finds topics, and asks for rights.

    Args:
        access: judges callers.
        directory: finds topics.
        cache: the objects.
    """

    def __init__(self, access: Access, directory: TopicDirectory, cache: ObjectCache) -> None:
        self._access = access
        self._directory = directory
        self._cache = cache

    async def call(self, route: Route, request: web.Request) -> Call:
        """A request as its handler takes it. Raises Refusal: 401 before anything else, 400, 503."""
        authorization = request.headers.get("Authorization")
        await self._access.recognize(authorization, route.rights[0].verb if route.rights else "get")
        caller = await self._access.caller(authorization)
        values = read_values(route.parameters, request.match_info, request.query)
        return Call(request, route, values, caller, authorization or "")

    async def topic(self, call: Call) -> Subject:
        """The topic of a call whose caller has all rights that its route needs. Raises Refusal: 400, 403, 404, 503."""
        key = self._directory.find(call.topic, call.values.get(CONNECTION))
        for right in call.route.rights:
            await self.require(call, right, key.namespace, _object_name(call, right, key))
        body = self._cache.get(key)
        if body is None:
            raise Refusal(404, f"no ScalableTopic declares {call.topic} any more")
        return Subject(call.topic, key, body)

    async def require(self, call: Call, right: Right, namespace: str, name: str = "") -> None:
        """Ask for one right in a namespace. Raises Refusal: 403, 503."""
        await self._access.require(call.authorization, right.verb, ObjectKey(right.resource.plural, namespace, name))

    async def allows(self, call: Call, right: Right, namespace: str, name: str = "") -> bool:
        """Whether a caller has a right in a namespace, or in all of them if it is empty. Raises Refusal: 503."""
        return await self._access.allows(
            call.authorization, right.verb, ObjectKey(right.resource.plural, namespace, name)
        )

    async def shown_namespaces(
        self,
        call: Call,
        right: Right,
        namespaces: Sequence[str],
        enough: Callable[[Collection[str]], bool] = lambda shown: False,
    ) -> set[str]:
        """Those in which the caller has a right.

        Of several, answers are kept for a minute either way; whether one alone is shown is asked as for any request.

        Args:
            call: whose.
            right: the right.
            namespaces: in the order in which they are asked about, a few at a time.
            enough: tells of those found whether more are needed.

        Raises Refusal: 403 if there are namespaces, and none is shown; 503.
        """

        def key(namespace: str) -> ObjectKey:
            return ObjectKey(right.resource.plural, namespace, "")

        asks = self._access.allows if len(namespaces) == 1 else self._access.shows
        shown: set[str] = set()
        for begin in range(0, len(namespaces), NAMESPACES_AT_A_TIME):
            some = namespaces[begin : begin + NAMESPACES_AT_A_TIME]
            answers = await asyncio.gather(*(asks(call.authorization, right.verb, key(one)) for one in some))
            shown.update(one for one, allowed in zip(some, answers, strict=True) if allowed)
            if enough(shown):
                break
        if namespaces and not shown:
            # By the answers above: asked again, the API server might have changed its mind.
            raise lacking(call.caller, right.verb, key(namespaces[0]))
        return shown


def serve(bound: Iterable[Bound], admission: RestAdmission) -> Iterable[web.RouteDef]:
    """Routes for callers with a token."""
    for route, handler in bound:
        yield route_def(route, _served(route, handler, admission))


def route_def(route: Route, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.RouteDef:
    """What the application serves of a route; nothing else than its own method."""
    options = {"allow_head": False} if route.method == "GET" else {}
    return web.route(route.method, route.path, handler, name=route.name, **options)


def _served(
    route: Route, handler: Handler, admission: RestAdmission
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        return await handler(await admission.call(route, request))

    return handle


def _object_name(call: Call, right: Right, topic: ObjectKey) -> str:
    """Of the object that a right is needed on; empty where it is not known before it is made, or is one of many."""
    if right.verb not in NAMED_VERBS:
        return ""
    if right.resource == TOPICS:
        return topic.name
    if right.resource == SUBSCRIPTIONS:
        return subscription_object_name(topic.name, call.values.need(SUBSCRIPTION))
    if right.resource == SEGMENT_OPERATIONS:
        return call.values.need(OPERATION)
    return ""
