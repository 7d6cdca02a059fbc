"""Routes that are WebSockets (docs/sessions.md). Pure."""

from __future__ import annotations

from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.gateway.common_parameters import OF_SUBSCRIPTION, OF_TOPIC, SUBSCRIPTION_PATH, TOPIC_PATH
from scalable_topics_operator.gateway.domains import DOMAIN
from scalable_topics_operator.gateway.parameters import QUERY, switch, text
from scalable_topics_operator.gateway.route import Right, Route, Tag

_ANSWERS = {101: "the session begins", 429: "too many sessions; come again"}
_PULSAR = "A token of the topic's Pulsar cluster will do, too, as `Authorization: Pulsar`."

CONSUMER_SESSION = Route(
    name="consumer-session",
    method="GET",
    path=f"{SUBSCRIPTION_PATH}/session",
    summary="A WebSocket of one ordered consumer with the leader of its topic",
    tag=Tag.SUBSCRIPTIONS,
    rights=(Right("consume", TOPICS),),
    parameters=OF_SUBSCRIPTION,
    answers=_ANSWERS,
    details=_PULSAR,
)
WATCH_SESSION = Route(
    name="watch",
    method="GET",
    path=f"{TOPIC_PATH}/watch",
    summary="A WebSocket with the topic's layout and every change of it, of whichever replica is asked",
    tag=Tag.TOPICS,
    rights=(Right("lookup", TOPICS),),
    parameters=(
        *OF_TOPIC,
        text("since", "position that the watcher has seen last", place=QUERY),
        switch("owners", "say, too, which brokers serve the active segments"),
        DOMAIN,
    ),
    answers=_ANSWERS,
    details=_PULSAR,
)

SESSION_ROUTES = (CONSUMER_SESSION, WATCH_SESSION)
