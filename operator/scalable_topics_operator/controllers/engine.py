"""Who splits and merges a topic's segments by itself: the brokers or the operator, one at a time (DESIGN §8)."""

from __future__ import annotations

from enum import StrEnum

from scalable_topics_operator.api.scalable_topic import ScalableTopicSpec
from scalable_topics_operator.controllers.connections import NATIVE


class Engine(StrEnum):
    """Whose decisions they are."""

    BROKER = "Broker"
    OPERATOR = "Operator"


def engine_of(spec: ScalableTopicSpec, backend: str) -> Engine:
    """Who decides on a topic: on Native the brokers unless the spec says otherwise, on Classic always the operator."""
    if backend != NATIVE:
        return Engine.OPERATOR
    chosen = spec.auto_scale.engine if spec.auto_scale is not None else None
    return Engine(chosen) if chosen is not None else Engine.BROKER
