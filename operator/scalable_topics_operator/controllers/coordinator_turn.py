"""What a coordinator finds each time it looks at an ordered subscription. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scalable_topics.layout import TopicName
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.subscription_status import Phase, Situation


@dataclass(frozen=True, slots=True)
class Turn:
    """One subscription as it is found.

    Args:
        key: of its object.
        topic_key: of its topic's.
        topic: that object; None if there is none.
        body: its object.
        situation: what it finds.
        term: leadership term.
    """

    key: ObjectKey
    topic_key: ObjectKey
    topic: Body | None
    body: Body
    situation: Situation
    term: int

    @property
    def removes(self) -> bool:
        """Whether consumers that stay away are removed."""
        return self.situation.layout is not None and self.situation.phase in (Phase.ACTIVE, Phase.SEEKING)

    @property
    def status(self) -> Mapping[str, Any]:
        """What is recorded."""
        status: Mapping[str, Any] = self.body.get("status") or {}
        return status

    @property
    def was_seeking(self) -> bool:
        """Whether its cursors were being moved when it was recorded last."""
        return self.status.get("phase") == Phase.SEEKING.value

    @property
    def subscription(self) -> str:
        """Its name."""
        return str(self.body["spec"]["subscription"])

    @property
    def topic_name(self) -> TopicName:
        """Name of its topic, which there is."""
        assert self.topic is not None
        return TopicName.parse(self.topic["spec"]["topic"])
