"""Who may use a connection for what (R3)."""

from __future__ import annotations

import pytest

from scalable_topics.layout import TopicName
from scalable_topics_operator.api.connection import Allow
from scalable_topics_operator.controllers.connection_access import why_not_allowed


def why(allow: Allow, namespace: str, topic: str = "team/apps/orders", operation: str | None = None) -> str:
    return why_not_allowed(
        allow,
        connection_namespace="platform",
        topic_namespace=namespace,
        topic=TopicName.parse(topic),
        operation=operation,
    )


@pytest.mark.parametrize("operation", [None, "Adopt", "Migrate", "Delete"])
def test_its_own_namespace_may_do_everything(operation: str | None) -> None:
    assert why(Allow(), "platform", operation=operation) == ""


def test_empty_means_its_own_namespace_only() -> None:
    assert "spec.allow.namespaces" in why(Allow(), "team-a")


def test_namespaces_are_patterns() -> None:
    allow = Allow(namespaces=("team-*",))
    assert why(allow, "team-a") == ""
    assert why(allow, "teams") != ""


def test_pulsar_namespaces_bind_everybody() -> None:
    allow = Allow(namespaces=("team-a",), pulsar_namespaces=("team/*",))
    assert why(allow, "team-a") == ""
    assert "spec.allow.pulsarNamespaces" in why(allow, "team-a", "public/default/orders")
    assert why(allow, "platform", "public/default/orders") != ""


def test_other_namespaces_need_special_operations_apart() -> None:
    assert "add Delete" in why(Allow(namespaces=("team-a",)), "team-a", operation="Delete")
    allow = Allow(namespaces=("team-a",), operations=("Delete",))
    assert why(allow, "team-a", operation="Delete") == ""
    assert why(allow, "team-a", operation="Adopt") != ""
