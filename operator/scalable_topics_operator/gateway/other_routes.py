"""Routes that are about no topic: the document of all of them, and what replicas ask each other. Pure."""

from __future__ import annotations

from scalable_topics_operator.gateway.parameters import text
from scalable_topics_operator.gateway.peer_client import LOAD_PATH
from scalable_topics_operator.gateway.route import Payload, Route, Tag, Who

OBJECT_NAMESPACE = text("namespace", "Kubernetes namespace of the connection")
OBJECT_NAME = text("connection", "name of the connection")

OPENAPI = Route(
    name="openapi",
    method="GET",
    path="/openapi.json",
    summary="This document",
    tag=Tag.OTHER,
    answer=Payload("OpenAPI 3.1", {"type": "object"}),
    who=Who.ANYBODY,
)
LOAD = Route(
    name="load",
    method="GET",
    path=f"{LOAD_PATH}/{{namespace}}/{{connection}}",
    summary="For replicas only: the newest load samples of a connection",
    tag=Tag.OTHER,
    parameters=(OBJECT_NAMESPACE, OBJECT_NAME),
    answer=Payload("of the replica that samples it", {"type": "object"}),
    who=Who.REPLICA,
)

OTHER_ROUTES = (OPENAPI, LOAD)
