"""The OpenAPI document and the table of the reference, made of the descriptions that serve requests. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scalable_topics_operator.cluster.reviews import AUDIENCE
from scalable_topics_operator.gateway import schemas
from scalable_topics_operator.gateway.parameters import MOST_REPEATS, PATH, Parameter
from scalable_topics_operator.gateway.route import Payload, Route, Tag, Who
from scalable_topics_operator.gateway.route_table import ROUTES

OPENAPI_FILE = "openapi.json"
REST_PAGE = "rest.md"

_USER, _REPLICA = "kubernetesToken", "replicaToken"
_TAGS: Mapping[Tag, str] = {
    Tag.TOPICS: "Scalable topics (pip-468)",
    Tag.SUBSCRIPTIONS: "Their subscriptions",
    Tag.OPERATIONS: "What is done to segments by hand",
    Tag.POLICIES: "Automatic splits and merges (pip-483)",
    Tag.SEGMENTS: "Single segments",
    Tag.OTHER: "What is about no topic",
}
_UNCHANGED = "as it was when its `ETag` was the one in `If-None-Match`"
_BAD_INPUT = "bad input: the reason says what, where, and what to do"
_UNKNOWN = "no token, one that is not valid, or one for another audience"
_NO_RIGHT = "a right is lacking; the reason names it"
_NOT_FOUND = "no ScalableTopic declares the topic, or what is asked for is not there"
_TOO_LARGE = "the body is too large"
_TOO_MANY = "too many requests are waiting here; come again after `Retry-After` seconds"
_COME_AGAIN = "come again after `Retry-After` seconds; the reason says why"
_UNEXPECTED = "unexpected; the operator's log says more"
_WRITES_OFF = "REST writes are switched off"
_IN_THE_WAY = "the reason says what is in the way"

_INTRODUCTION = """\
# The admin REST

What the [gateway](../gateway.md) serves. This page is generated from the table of routes that serves requests, and so
is [openapi.json](openapi.json), which each replica shows at `/openapi.json`.

Rights are verbs on kinds of group `scalabletopics.io` in the namespace of the ScalableTopic, or of what is made.

| every route may answer | |
|---|---|
"""


def answers_of(route: Route) -> dict[int, str]:
    """Every status a route may answer with, and what it means there."""
    answers: dict[int, str] = {}
    if route.answer is not None:
        answers[200] = route.answer.meaning
        if route.method == "GET":
            answers[304] = _UNCHANGED
    answers[400] = _BAD_INPUT
    if route.who is not Who.ANYBODY:
        answers[401] = _UNKNOWN
        answers[503] = _COME_AGAIN
    if route.rights:
        answers[403] = _NO_RIGHT
    if "{topic}" in route.path or route.who is Who.REPLICA:
        answers[404] = _NOT_FOUND
    if route.writes and route.rights:
        answers |= {405: _WRITES_OFF, 409: _IN_THE_WAY, 429: _TOO_MANY}
    if route.body is not None:
        answers[413] = _TOO_LARGE
    return dict(sorted({**answers, 500: _UNEXPECTED, **route.answers}.items()))


def document(version: str, routes: Sequence[Route] = ROUTES) -> dict[str, Any]:
    """The OpenAPI 3.1 document.

    Args:
        version: of the operator.
        routes: what it describes.
    """
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Scalable topics",
            "version": version,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "Admin REST of the operator's gateway. Every replica answers for all topics.",
        },
        "tags": [{"name": tag.value, "description": meaning} for tag, meaning in _TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": {"Refusal": schemas.REFUSAL, "Accepted": schemas.ACCEPTED},
            "securitySchemes": {
                _USER: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": f"A Kubernetes token made for audience `{AUDIENCE}`",
                },
                _REPLICA: {"type": "http", "scheme": "bearer", "description": "The token that replicas share"},
            },
        },
    }


def openapi_text(version: str) -> str:
    """The document as a file; the same on every run."""
    return json.dumps(document(version), indent=1) + "\n"


_COMMON = {
    304: f"to `GET`: {_UNCHANGED}",
    400: _BAD_INPUT,
    401: _UNKNOWN,
    403: _NO_RIGHT,
    404: _NOT_FOUND,
    405: f"of writes: {_WRITES_OFF}",
    409: f"of writes: {_IN_THE_WAY}",
    413: _TOO_LARGE,
    429: f"of writes: {_TOO_MANY}",
    500: _UNEXPECTED,
    503: _COME_AGAIN,
}


def rest_page(routes: Sequence[Route] = ROUTES) -> str:
    """The table of the reference as Markdown; the same on every run."""
    parts = [_INTRODUCTION + "".join(f"| {status} | {meaning} |\n" for status, meaning in _COMMON.items())]
    for tag, meaning in _TAGS.items():
        rows = [_row(route) for route in routes if route.tag is tag]
        head = "| request | does | rights | answers |\n|---|---|---|---|\n"
        parts.append(f"## {meaning}\n{head}" + "".join(rows))
    return "\n".join(parts)


def _row(route: Route) -> str:
    cells = (
        f"`{route.method} {route.path}`{_query(route.parameters)}",
        ". ".join(part.rstrip(".") for part in (route.summary, route.details) if part),
        _rights(route),
        "; ".join(
            f"{status}: {meaning}"
            for status, meaning in answers_of(route).items()
            if status in route.answers or status not in _COMMON
        ),
    )
    return f"| {' | '.join(cells)} |\n"


def _query(parameters: Iterable[Parameter[Any]]) -> str:
    names = [parameter.name for parameter in parameters if parameter.place != PATH]
    return f" {' '.join(f'`?{name}=`' for name in names)}" if names else ""


def _rights(route: Route) -> str:
    if route.who is not Who.USER:
        return {Who.REPLICA: "the replicas' token", Who.ANYBODY: "none, no token"}[route.who]
    return ", ".join(f"`{right}`" for right in route.rights) or "none"


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.tag.value],
        "parameters": [_parameter(parameter) for parameter in route.parameters],
        "responses": {str(status): _response(route, status, meaning) for status, meaning in answers_of(route).items()},
        "security": {Who.USER: [{_USER: []}], Who.REPLICA: [{_REPLICA: []}], Who.ANYBODY: []}[route.who],
    }
    rights = f"Needs the right to {' and '.join(map(str, route.rights))}." if route.rights else ""
    if description := " ".join(part for part in (route.details, rights) if part):
        operation["description"] = description
    if route.rights:
        operation["x-rights"] = [
            {"verb": right.verb, "group": right.resource.group, "resource": right.resource.plural}
            for right in route.rights
        ]
    if route.body is not None:
        operation["requestBody"] = {
            "description": route.body.meaning,
            "required": route.body.required,
            "content": _content(route.body),
        }
    return operation


def _parameter(parameter: Parameter[Any]) -> dict[str, Any]:
    schema = dict(parameter.schema)
    if parameter.repeated:
        schema = {"type": "array", "items": schema, "maxItems": MOST_REPEATS}
    return {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.meaning,
        "required": parameter.required or parameter.place == PATH,
        "schema": schema,
    }


def _response(route: Route, status: int, meaning: str) -> dict[str, Any]:
    response: dict[str, Any] = {"description": meaning}
    if status == 200 and isinstance(route.answer, Payload):
        response["content"] = _content(route.answer)
    elif status == 202:
        response["content"] = _json({"$ref": "#/components/schemas/Accepted"})
    elif status >= 400:
        response["content"] = _json({"$ref": "#/components/schemas/Refusal"})
    return response


def _content(payload: Payload) -> dict[str, Any]:
    return {payload.media: {"schema": payload.schema}}


def _json(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
