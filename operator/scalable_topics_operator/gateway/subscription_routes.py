"""Routes of the subscriptions of a topic. Pure."""

from __future__ import annotations

from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, SUBSCRIPTIONS
from scalable_topics_operator.gateway import schemas
from scalable_topics_operator.gateway.common_parameters import (
    DRY_RUN,
    FORCE,
    OF_SUBSCRIPTION,
    OF_TOPIC,
    SUBSCRIPTION_PATH,
    TOPIC_PATH,
    TTL_SECONDS,
)
from scalable_topics_operator.gateway.operation_routes import OPERATION_ANSWERS, PLANNED
from scalable_topics_operator.gateway.parameters import choice, switch, whole
from scalable_topics_operator.gateway.route import Payload, Right, Route, Tag

STREAM, QUEUE, CHECKPOINT = "STREAM", "QUEUE", "CHECKPOINT"
EARLIEST, LATEST = "earliest", "latest"
# The last millisecond of the year 9999: what can be written as a time.
_LAST_MS = 253_402_300_799_999

KIND = choice("type", "ordered (STREAM, CHECKPOINT) or shared (QUEUE)", (STREAM, QUEUE, CHECKPOINT), STREAM)
INITIAL_POSITION = choice("initialPosition", "where it starts", (EARLIEST, LATEST), EARLIEST)
ALLOW_GAPS = switch("allowGaps", "go on where messages behind a position may be gone; refused with 412 otherwise")
TIMESTAMP = whole("timestamp", "milliseconds since 1970", 0, _LAST_MS, required=True)

_OPERATES = (Right("create", SEGMENT_OPERATIONS),)

LIST_SUBSCRIPTIONS = Route(
    name="list-subscriptions",
    method="GET",
    path=f"{TOPIC_PATH}/subscriptions",
    summary="The subscriptions of a topic that are declared or asked for",
    tag=Tag.SUBSCRIPTIONS,
    rights=(Right("list", SUBSCRIPTIONS),),
    parameters=OF_TOPIC,
    answer=Payload("by name", schemas.listed(schemas.SUBSCRIPTION)),
    details="Those that consumers have made without being declared are in the topic's stats; of the Native backend "
    "they are listed, too, as its brokers tell of them.",
)
GET_SUBSCRIPTION = Route(
    name="get-subscription",
    method="GET",
    path=SUBSCRIPTION_PATH,
    summary="One subscription; of an ordered one who reads what",
    tag=Tag.SUBSCRIPTIONS,
    rights=(Right("get", SUBSCRIPTIONS),),
    parameters=OF_SUBSCRIPTION,
    answer=Payload("with its assignment, if it is ordered", schemas.SUBSCRIPTION),
)
CREATE_SUBSCRIPTION = Route(
    name="create-subscription",
    method="PUT",
    path=SUBSCRIPTION_PATH,
    summary="Create a subscription with a cursor on every segment",
    tag=Tag.SUBSCRIPTIONS,
    rights=(Right("create", SUBSCRIPTIONS),),
    parameters=(*OF_SUBSCRIPTION, KIND, INITIAL_POSITION),
    answers={
        204: "it is there, or was already",
        202: "it is recorded, and its cursors are not all made within 30 s",
    },
    details="An ordered one becomes a ScalableTopicSubscription; a shared one is recorded in the topic's status. At "
    "the earliest message it has cursors on sealed segments, too; at the latest on active ones only. On the Native "
    "backend both are made by the brokers, who decide who reads what; CHECKPOINT is refused there with 412.",
    writes=True,
)
DELETE_SUBSCRIPTION = Route(
    name="delete-subscription",
    method="DELETE",
    path=SUBSCRIPTION_PATH,
    summary="Delete a subscription with its cursors on all segments",
    tag=Tag.SUBSCRIPTIONS,
    rights=(Right("delete", SUBSCRIPTIONS),),
    parameters=(*OF_SUBSCRIPTION, FORCE),
    answers={
        204: "it is gone",
        202: "it is recorded as being deleted, and not gone within 30 s",
        412: "clients are attached, and `force` is not true",
    },
    writes=True,
)
SEEK = Route(
    name="seek",
    method="POST",
    path=f"{SUBSCRIPTION_PATH}/seek",
    summary="Move a subscription to a time, on every segment",
    tag=Tag.SUBSCRIPTIONS,
    rights=_OPERATES,
    parameters=(*OF_SUBSCRIPTION, TIMESTAMP, DRY_RUN, TTL_SECONDS),
    answers=OPERATION_ANSWERS,
    answer=PLANNED,
    details="Makes a SegmentOperation. Consumers of an ordered subscription let go of their segments first.",
    writes=True,
)
SKIP_ALL = Route(
    name="skip-all",
    method="POST",
    path=f"{SUBSCRIPTION_PATH}/skip-all",
    summary="Skip everything a subscription has not acknowledged, on every segment",
    tag=Tag.SUBSCRIPTIONS,
    rights=_OPERATES,
    parameters=(*OF_SUBSCRIPTION, DRY_RUN, TTL_SECONDS),
    answers=OPERATION_ANSWERS,
    answer=PLANNED,
    details="Makes a SegmentOperation. Consumers of an ordered subscription let go of their segments first.",
    writes=True,
)

RESTORE = Route(
    name="restore",
    method="POST",
    path=f"{SUBSCRIPTION_PATH}/restore",
    summary="Move a checkpoint group to where a checkpoint was taken, on every segment",
    tag=Tag.SUBSCRIPTIONS,
    rights=_OPERATES,
    parameters=(*OF_SUBSCRIPTION, ALLOW_GAPS, DRY_RUN, TTL_SECONDS),
    answers=OPERATION_ANSWERS,
    body=Payload("the last message received of each segment; of all consumers of the group", schemas.POSITIONS),
    answer=PLANNED,
    details="Makes a SegmentOperation. Consumers let go of their segments first. What came before the segments named "
    "counts as read, what follows them as not read; cursors of other segments stay.",
    writes=True,
)

SUBSCRIPTION_ROUTES = (
    LIST_SUBSCRIPTIONS,
    GET_SUBSCRIPTION,
    CREATE_SUBSCRIPTION,
    DELETE_SUBSCRIPTION,
    SEEK,
    SKIP_ALL,
    RESTORE,
)
