"""Routes of scalable topics: list, create, record, delete, and what their leaders tell of them. Pure."""

from __future__ import annotations

from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.gateway import schemas
from scalable_topics_operator.gateway.common_parameters import (
    CONNECTION,
    FORCE,
    IN_NAMESPACE,
    NAMESPACE_PATH,
    OF_TOPIC,
    TOPIC_PATH,
)
from scalable_topics_operator.gateway.domains import DOMAIN
from scalable_topics_operator.gateway.parameters import QUERY, text, whole
from scalable_topics_operator.gateway.route import Payload, Right, Route, Tag

MOST_INITIAL_SEGMENTS = 256

PROPERTY = text(
    "property",
    "only topics that have this property, as `key=value`; several must all be there",
    place=QUERY,
    longest=1024,
    pattern=r"[^=]+=.+",
    repeated=True,
)
INITIAL_SEGMENTS = whole("numInitialSegments", "segments it is created with", 1, MOST_INITIAL_SEGMENTS, default=1)

_GET = (Right("get", TOPICS),)

LIST_TOPICS = Route(
    name="list-topics",
    method="GET",
    path=NAMESPACE_PATH,
    summary="List the scalable topics of a Pulsar namespace",
    tag=Tag.TOPICS,
    rights=(Right("list", TOPICS),),
    parameters=(*IN_NAMESPACE, CONNECTION, PROPERTY),
    answer=Payload("their full names, sorted", schemas.listed(schemas.TEXT)),
    details="Those of Kubernetes namespaces are shown in which the caller may list ScalableTopics.",
)
CREATE_TOPIC = Route(
    name="create-topic",
    method="PUT",
    path=TOPIC_PATH,
    summary="Create a scalable topic",
    tag=Tag.TOPICS,
    rights=(Right("create", TOPICS),),
    parameters=(*OF_TOPIC, INITIAL_SEGMENTS),
    body=Payload("properties of the topic", schemas.PROPERTIES, required=False),
    answers={
        204: "it is there and ready",
        202: "its ScalableTopic is made, and not ready within 30 s",
        405: "no connection maps the Pulsar namespace to a Kubernetes one, or REST writes are switched off; `manifest` "
        "is what to apply instead",
        409: "there is a topic of this name, or an object of the name that this one would have",
        412: "the Pulsar namespace uses what scalable topics do not work with",
    },
    details="Makes a ScalableTopic with `deletionPolicy: Delete`.",
    writes=True,
)
GET_TOPIC = Route(
    name="get-topic",
    method="GET",
    path=TOPIC_PATH,
    summary="The record of a topic: its segments, properties and policy override",
    tag=Tag.TOPICS,
    rights=_GET,
    parameters=(*OF_TOPIC, DOMAIN),
    answer=Payload("as pip-468 and pip-483 write it", schemas.RECORD),
)
DELETE_TOPIC = Route(
    name="delete-topic",
    method="DELETE",
    path=TOPIC_PATH,
    summary="Delete a topic with all its segments",
    tag=Tag.TOPICS,
    rights=(Right("delete", TOPICS),),
    parameters=(*OF_TOPIC, FORCE),
    answers={
        204: "it is gone",
        202: "its ScalableTopic is being deleted, and not gone within 30 s",
        405: "no connection maps the Pulsar namespace to a Kubernetes one, or REST writes are switched off",
        409: "`spec.deletionPolicy` is Retain: deleting the object would leave the data",
        412: "clients are attached, and `force` is not true",
    },
    details="With `force` the right to `patch` the ScalableTopic is needed, too.",
    writes=True,
)
STATS = Route(
    name="stats",
    method="GET",
    path=f"{TOPIC_PATH}/stats",
    summary="Rates, storage and backlogs of a topic and its segments",
    tag=Tag.TOPICS,
    rights=_GET,
    parameters=OF_TOPIC,
    answer=Payload("as of the leader's last sample", schemas.STATS),
)
EXPLAIN = Route(
    name="explain",
    method="GET",
    path=f"{TOPIC_PATH}/autoScale/explain",
    summary="The last automatic decision, and what each rule found",
    tag=Tag.POLICIES,
    rights=_GET,
    parameters=OF_TOPIC,
    answer=Payload("with the load and the clocks it was made from", schemas.EXPLANATION),
)
EFFECTIVE_POLICY = Route(
    name="policy",
    method="GET",
    path=f"{TOPIC_PATH}/autoScalePolicy/effective",
    summary="Every knob that applies to a topic, and the level that gave it",
    tag=Tag.POLICIES,
    rights=_GET,
    parameters=OF_TOPIC,
    answer=Payload("all knobs", schemas.EFFECTIVE_POLICY),
)

TOPIC_ROUTES = (LIST_TOPICS, CREATE_TOPIC, GET_TOPIC, DELETE_TOPIC, STATS, EXPLAIN, EFFECTIVE_POLICY)
