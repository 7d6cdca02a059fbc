"""What a route of the gateway is: how it is asked, which right it needs, what it answers. Pure.

One description serves requests, makes the OpenAPI document and the table of the documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from scalable_topics_operator.cluster.kube_client import Resource
from scalable_topics_operator.gateway.parameters import Parameter


class Tag(StrEnum):
    """Groups of routes."""

    TOPICS = "topics"
    SUBSCRIPTIONS = "subscriptions"
    OPERATIONS = "operations"
    POLICIES = "policies"
    SEGMENTS = "segments"
    OTHER = "other"


class Who(StrEnum):
    """Who may ask."""

    USER = "user"
    """With a Kubernetes token, and a right."""
    REPLICA = "replica"
    """Another replica, with the installation's own token."""
    ANYBODY = "anybody"


@dataclass(frozen=True, slots=True)
class Right:
    """A right in Kubernetes, in the namespace of what is asked about.

    Args:
        verb: such as `get`.
        resource: the kind.
    """

    verb: str
    resource: Resource

    def __str__(self) -> str:
        return f"{self.verb} {self.resource.plural}"


@dataclass(frozen=True, slots=True)
class Payload:
    """A text, of JSON if nothing else is said.

    Args:
        meaning: what it is.
        schema: of it, as JSON Schema.
        required: whether a request must have it.
        media: its media type, or a range of them.
    """

    meaning: str
    schema: Mapping[str, Any]
    required: bool = True
    media: str = "application/json"


@dataclass(frozen=True, slots=True)
class Route:
    """One thing the gateway does.

    Args:
        name: unique; operationId of the document and label of the metrics.
        method: of HTTP.
        path: with `{parameter}` for what varies.
        summary: what it does, in a few words.
        tag: its group.
        rights: all that the caller needs; a token is enough if there are none.
        parameters: of path and query.
        answers: status to what it means, where that is not the same for all routes.
        body: of the request.
        answer: the text with status 200.
        details: what else is to be known.
        writes: whether it changes anything.
        who: who may ask.
    """

    name: str
    method: str
    path: str
    summary: str
    tag: Tag
    rights: tuple[Right, ...] = ()
    parameters: tuple[Parameter[Any], ...] = ()
    answers: Mapping[int, str] = field(default_factory=dict)
    body: Payload | None = None
    answer: Payload | None = None
    details: str = ""
    writes: bool = False
    who: Who = Who.USER
