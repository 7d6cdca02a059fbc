"""Routes of what is done to segments by hand: split, merge, rebucket, migrate. Pure."""

from __future__ import annotations

from scalable_topics_operator.api.common import MOST_WHOLE
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from scalable_topics_operator.gateway import schemas
from scalable_topics_operator.gateway.common_parameters import (
    DRY_RUN,
    FORCE,
    OF_TOPIC,
    OPERATION,
    SEGMENT_ID,
    TOPIC_PATH,
    TTL_SECONDS,
)
from scalable_topics_operator.gateway.parameters import PATH, whole
from scalable_topics_operator.gateway.route import Payload, Right, Route, Tag

AT = whole("at", "first hash of the second part; the middle if left out", 1, 65535)
INTO = whole("into", "how many equal parts", 2, 64, default=2)
SEGMENT_ID_1 = whole("segmentId1", "id of a segment", 0, MOST_WHOLE, place=PATH)
SEGMENT_ID_2 = whole("segmentId2", "id of another", 0, MOST_WHOLE, place=PATH)
ALSO = whole("segmentId", "further segments to merge, each given once more", 0, MOST_WHOLE, repeated=True)
BUCKETS = whole("buckets", "entry buckets of its successor", 1, 1024)
BUCKET_COUNT = whole("bucketCount", "the same, by brokers' name", 1, 1024)

OPERATION_ANSWERS = {
    204: "done; header X-Scalable-Topics-Operation names the SegmentOperation",
    202: "the SegmentOperation is made, and not ended within 30 s",
    409: "brokers or the state of the topic are in the way",
    412: "the segments or the subscription are not in a state for it, or the topic is an ordinary one",
}
PLANNED = Payload("of a dry run: what would be done", schemas.PLAN)

_OPERATES = (Right("create", SEGMENT_OPERATIONS),)

SPLIT = Route(
    name="split",
    method="POST",
    path=f"{TOPIC_PATH}/split/{{segmentId}}",
    summary="Split a segment",
    tag=Tag.OPERATIONS,
    rights=_OPERATES,
    parameters=(*OF_TOPIC, SEGMENT_ID, AT, INTO, DRY_RUN, TTL_SECONDS),
    answers=OPERATION_ANSWERS,
    answer=PLANNED,
    details="Makes a SegmentOperation.",
    writes=True,
)
MERGE = Route(
    name="merge",
    method="POST",
    path=f"{TOPIC_PATH}/merge/{{segmentId1}}/{{segmentId2}}",
    summary="Merge two or more neighbouring segments",
    tag=Tag.OPERATIONS,
    rights=_OPERATES,
    parameters=(*OF_TOPIC, SEGMENT_ID_1, SEGMENT_ID_2, ALSO, DRY_RUN, TTL_SECONDS),
    answers=OPERATION_ANSWERS,
    answer=PLANNED,
    details="Makes a SegmentOperation.",
    writes=True,
)
REBUCKET = Route(
    name="rebucket",
    method="POST",
    path=f"{TOPIC_PATH}/rebucket/{{segmentId}}",
    summary="Roll a segment over to one of the same range with another number of entry buckets",
    tag=Tag.OPERATIONS,
    rights=_OPERATES,
    parameters=(*OF_TOPIC, SEGMENT_ID, BUCKETS, BUCKET_COUNT, DRY_RUN, TTL_SECONDS),
    answers=OPERATION_ANSWERS,
    answer=PLANNED,
    details="Makes a SegmentOperation. One of `buckets` and `bucketCount` is needed.",
    writes=True,
)
MIGRATE = Route(
    name="migrate",
    method="POST",
    path=f"{TOPIC_PATH}/migrate",
    summary="Make an ordinary topic, partitioned or not, a scalable one",
    tag=Tag.OPERATIONS,
    rights=(Right("produce", TOPICS), *_OPERATES),
    parameters=(*OF_TOPIC, FORCE, DRY_RUN, TTL_SECONDS),
    answers={
        **OPERATION_ANSWERS,
        202: "the SegmentOperation or the ScalableTopic is made, and it is not decided within 30 s",
        404: "there is no such topic",
        405: "no ScalableTopic declares the topic, and no connection maps the Pulsar namespace to a Kubernetes one, or "
        "REST writes are switched off; `manifest` is what to apply instead",
        409: "it is scalable already, or clients are attached that do not know scalable topics and `force` is false",
        412: "the topic is sealed, or uses what scalable topics do not work with, or migrations are switched off",
    },
    answer=PLANNED,
    details="Makes a SegmentOperation where a ScalableTopic declares the topic; else a ScalableTopic with "
    "`deletionPolicy: Retain`, which takes the right to `create` ScalableTopics in place of SegmentOperations. What is "
    "refused leaves no ScalableTopic behind.",
    writes=True,
)

GET_OPERATION = Route(
    name="get-operation",
    method="GET",
    path=f"{TOPIC_PATH}/operations/{{operation}}",
    summary="A SegmentOperation of a topic, as it stands",
    tag=Tag.OPERATIONS,
    rights=(Right("get", SEGMENT_OPERATIONS),),
    parameters=(*OF_TOPIC, OPERATION),
    answer=Payload("phase `Succeeded` or `Failed` once it has ended", schemas.OPERATION),
    details="For whoever was answered 202.",
)

OPERATION_ROUTES = (SPLIT, MERGE, REBUCKET, MIGRATE, GET_OPERATION)
