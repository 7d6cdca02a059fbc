"""Routes for whoever wants to see at a glance how topics stand, and what may be done with them. Pure."""

from __future__ import annotations

from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.gateway import schemas
from scalable_topics_operator.gateway.common_parameters import FLEET_PATH, OF_TOPIC, TOPIC_PATH
from scalable_topics_operator.gateway.parameters import QUERY, text, whole
from scalable_topics_operator.gateway.route import Payload, Right, Route, Tag

DEFAULT_LIMIT, MOST_LIMIT = 500, 1000

LIMIT = whole("limit", "topics in the answer at most", 1, MOST_LIMIT, default=DEFAULT_LIMIT)
AFTER = text(
    "after",
    "`next` of the answer before, to go on behind it",
    place=QUERY,
    longest=317,
    pattern=r"[-a-z0-9.]+/[-a-z0-9.]+",
)

_GET = (Right("get", TOPICS),)

FLEET = Route(
    name="fleet",
    method="GET",
    path=FLEET_PATH,
    summary="The ScalableTopics of all namespaces, each in a line as it stands",
    tag=Tag.TOPICS,
    rights=(Right("list", TOPICS),),
    parameters=(LIMIT, AFTER),
    answer=Payload("by Kubernetes namespace and name; `next` is null once there are no more", schemas.FLEET),
    details="Those of Kubernetes namespaces are shown in which the caller may list ScalableTopics, whether they have a "
    "layout or not.",
)
TOPIC_STATUS = Route(
    name="topic-status",
    method="GET",
    path=f"{TOPIC_PATH}/status",
    summary="How a topic stands: conditions, the operation under way, the last operations and why they were begun",
    tag=Tag.TOPICS,
    rights=_GET,
    parameters=OF_TOPIC,
    answer=Payload("from its ScalableTopic", schemas.TOPIC_STATUS),
)
TOPIC_RIGHTS = Route(
    name="topic-rights",
    method="GET",
    path=f"{TOPIC_PATH}/rights",
    summary="Who the caller is, and which routes about the topic that one may use",
    tag=Tag.TOPICS,
    rights=_GET,
    parameters=OF_TOPIC,
    answer=Payload("names of routes as in this document", schemas.TOPIC_RIGHTS),
    details="Of routes about one subscription or operation: whether those about any of them may be used. Nothing that "
    "writes is named where REST writes are switched off.",
)

GLANCE_ROUTES = (FLEET, TOPIC_STATUS, TOPIC_RIGHTS)
