"""Routes that are WebSockets (docs/sessions.md). Pure."""

from __future__ import annotations

from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.gateway.common_parameters import OF_SUBSCRIPTION, SUBSCRIPTION_PATH
from scalable_topics_operator.gateway.route import Right, Route, Tag

_ANSWERS = {101: "the session begins", 429: "too many sessions; come again"}

CONSUMER_SESSION = Route(
    name="consumer-session",
    method="GET",
    path=f"{SUBSCRIPTION_PATH}/session",
    summary="A WebSocket of one ordered consumer with the leader of its topic",
    tag=Tag.SUBSCRIPTIONS,
    rights=(Right("consume", TOPICS),),
    parameters=OF_SUBSCRIPTION,
    answers=_ANSWERS,
    details="A token of the topic's Pulsar cluster will do, too, as `Authorization: Pulsar`.",
)

SESSION_ROUTES = (CONSUMER_SESSION,)
