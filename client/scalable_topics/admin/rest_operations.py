"""The operations of the gateway's REST that this client uses, as docs/reference/openapi.json lists them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

_NAMESPACE = "/admin/v2/scalable/{tenant}/{namespace}"
_TOPIC = f"{_NAMESPACE}/{{topic}}"
_SUBSCRIPTION = f"{_TOPIC}/subscriptions/{{subscription}}"
_SEGMENT = "/admin/v2/segments/{tenant}/{namespace}/{topic}/{descriptor}"
_TOPIC_POLICY = f"{_TOPIC}/autoScalePolicy"
_NAMESPACE_POLICY = "/admin/v2/namespaces/{tenant}/{namespace}/scalableTopicAutoScalePolicy"


@dataclass(frozen=True, slots=True)
class RestOperation:
    """One operation.

    Args:
        method: of HTTP.
        path: with its parameters in braces.
    """

    method: str
    path: str

    @property
    def reads(self) -> bool:
        """Whether it changes nothing, so that it may be repeated."""
        return self.method == "GET"


LIST_TOPICS = RestOperation("GET", _NAMESPACE)
CREATE_TOPIC = RestOperation("PUT", _TOPIC)
GET_TOPIC = RestOperation("GET", _TOPIC)
DELETE_TOPIC = RestOperation("DELETE", _TOPIC)
GET_STATS = RestOperation("GET", f"{_TOPIC}/stats")
EXPLAIN = RestOperation("GET", f"{_TOPIC}/autoScale/explain")

LIST_SUBSCRIPTIONS = RestOperation("GET", f"{_TOPIC}/subscriptions")
GET_SUBSCRIPTION = RestOperation("GET", _SUBSCRIPTION)
CREATE_SUBSCRIPTION = RestOperation("PUT", _SUBSCRIPTION)
DELETE_SUBSCRIPTION = RestOperation("DELETE", _SUBSCRIPTION)
SEEK = RestOperation("POST", f"{_SUBSCRIPTION}/seek")
SKIP_ALL = RestOperation("POST", f"{_SUBSCRIPTION}/skip-all")
RESTORE = RestOperation("POST", f"{_SUBSCRIPTION}/restore")

SPLIT = RestOperation("POST", f"{_TOPIC}/split/{{segmentId}}")
MERGE = RestOperation("POST", f"{_TOPIC}/merge/{{segmentId1}}/{{segmentId2}}")
REBUCKET = RestOperation("POST", f"{_TOPIC}/rebucket/{{segmentId}}")
MIGRATE = RestOperation("POST", f"{_TOPIC}/migrate")
GET_OPERATION = RestOperation("GET", f"{_TOPIC}/operations/{{operation}}")

GET_EFFECTIVE_POLICY = RestOperation("GET", f"{_TOPIC_POLICY}/effective")
GET_TOPIC_POLICY = RestOperation("GET", _TOPIC_POLICY)
SET_TOPIC_POLICY = RestOperation("POST", _TOPIC_POLICY)
REMOVE_TOPIC_POLICY = RestOperation("DELETE", _TOPIC_POLICY)
GET_NAMESPACE_POLICY = RestOperation("GET", _NAMESPACE_POLICY)
SET_NAMESPACE_POLICY = RestOperation("POST", _NAMESPACE_POLICY)
REMOVE_NAMESPACE_POLICY = RestOperation("DELETE", _NAMESPACE_POLICY)

GET_SEGMENT = RestOperation("GET", _SEGMENT)
GET_SEGMENT_SUBSCRIPTIONS = RestOperation("GET", f"{_SEGMENT}/subscriptions")
GET_SEGMENT_BACKLOG = RestOperation("GET", f"{_SEGMENT}/subscription/{{subscription}}/backlog")
CREATE_SEGMENT = RestOperation("PUT", _SEGMENT)
TERMINATE_SEGMENT = RestOperation("POST", f"{_SEGMENT}/terminate")
DELETE_SEGMENT = RestOperation("DELETE", _SEGMENT)
