"""Routes of single segments: they are read here, and written by the operator alone (R32). Pure."""

from __future__ import annotations

from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.gateway import schemas
from scalable_topics_operator.gateway.common_parameters import OF_SEGMENT, SEGMENT_PATH, SUBSCRIPTION
from scalable_topics_operator.gateway.route import Payload, Right, Route, Tag

_GET = (Right("get", TOPICS),)
_CURSOR_PATH = f"{SEGMENT_PATH}/subscription/{{subscription}}"
_OF_CURSOR = (*OF_SEGMENT, SUBSCRIPTION)

GET_SEGMENT = Route(
    name="get-segment",
    method="GET",
    path=SEGMENT_PATH,
    summary="The record of a segment",
    tag=Tag.SEGMENTS,
    rights=_GET,
    parameters=OF_SEGMENT,
    answer=Payload("as in the record of its topic", schemas.SEGMENT),
)
SEGMENT_SUBSCRIPTIONS = Route(
    name="segment-subscriptions",
    method="GET",
    path=f"{SEGMENT_PATH}/subscriptions",
    summary="The cursors of a segment, as its broker shows them now",
    tag=Tag.SEGMENTS,
    rights=_GET,
    parameters=OF_SEGMENT,
    answer=Payload("by subscription", {"type": "object", "additionalProperties": schemas.SEGMENT_SUBSCRIPTION}),
)
SEGMENT_BACKLOG = Route(
    name="segment-backlog",
    method="GET",
    path=f"{_CURSOR_PATH}/backlog",
    summary="Entries of a segment that a subscription has not acknowledged",
    tag=Tag.SEGMENTS,
    rights=_GET,
    parameters=_OF_CURSOR,
    answer=Payload("their number", schemas.WHOLE),
)
SEGMENT_READS = (GET_SEGMENT, SEGMENT_SUBSCRIPTIONS, SEGMENT_BACKLOG)

SEGMENT_WRITES = tuple(
    Route(
        name=name,
        method=method,
        path=path,
        summary=f"Not served: {what} is the operator's",
        tag=Tag.SEGMENTS,
        parameters=_OF_CURSOR if path.startswith(_CURSOR_PATH) else OF_SEGMENT,
        answers={405: "always: the reason says how it is asked for"},
        writes=True,
    )
    for name, method, path, what in (
        ("create-segment", "PUT", SEGMENT_PATH, "creating a segment"),
        ("delete-segment", "DELETE", SEGMENT_PATH, "deleting a segment"),
        ("terminate-segment", "POST", f"{SEGMENT_PATH}/terminate", "sealing a segment"),
        ("create-cursor", "PUT", _CURSOR_PATH, "making a cursor"),
        ("delete-cursor", "DELETE", _CURSOR_PATH, "deleting a cursor"),
        ("seek-cursor", "POST", f"{_CURSOR_PATH}/seek", "moving a cursor"),
        ("skip-all-cursor", "POST", f"{_CURSOR_PATH}/skip-all", "moving a cursor"),
    )
)

SEGMENT_ROUTES = (*SEGMENT_READS, *SEGMENT_WRITES)
