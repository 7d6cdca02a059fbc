"""Every route of the gateway. Pure."""

from __future__ import annotations

from scalable_topics_operator.gateway.console_routes import CONSOLE_ROUTES
from scalable_topics_operator.gateway.glance_routes import GLANCE_ROUTES
from scalable_topics_operator.gateway.operation_routes import OPERATION_ROUTES
from scalable_topics_operator.gateway.other_routes import OTHER_ROUTES
from scalable_topics_operator.gateway.policy_routes import POLICY_ROUTES
from scalable_topics_operator.gateway.route import Route
from scalable_topics_operator.gateway.segment_routes import SEGMENT_ROUTES
from scalable_topics_operator.gateway.session_routes import SESSION_ROUTES
from scalable_topics_operator.gateway.subscription_routes import SUBSCRIPTION_ROUTES
from scalable_topics_operator.gateway.topic_routes import TOPIC_ROUTES

ROUTES: tuple[Route, ...] = (
    *TOPIC_ROUTES,
    *GLANCE_ROUTES,
    *SUBSCRIPTION_ROUTES,
    *OPERATION_ROUTES,
    *POLICY_ROUTES,
    *SEGMENT_ROUTES,
    *SESSION_ROUTES,
    *OTHER_ROUTES,
    *CONSOLE_ROUTES,
)
"""All of them, in the order people see them."""
