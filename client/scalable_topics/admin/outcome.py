"""What became of a write: done, still going on, or only planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from scalable_topics.layout import TopicName


class OutcomeState(StrEnum):
    """How far it is."""

    DONE = "done"
    RUNNING = "running"
    PLANNED = "planned"


class Awaited(StrEnum):
    """What ends a write that is still going on."""

    TOPIC_READY = "topic ready"
    TOPIC_GONE = "topic gone"
    SUBSCRIPTION_ACTIVE = "subscription active"
    SUBSCRIPTION_GONE = "subscription gone"
    OPERATION_ENDED = "operation ended"


@dataclass(frozen=True, slots=True)
class OperationName:
    """A SegmentOperation: `kubectl describe segmentoperation NAME -n NAMESPACE`.

    Args:
        namespace: of Kubernetes.
        name: of the object.
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class SegmentOperation:
    """A SegmentOperation as it stands.

    Args:
        operation: which one.
        type: like `Split`.
        phase: like `Running`; `Succeeded` and `Failed` are the last ones.
        reason: why it failed, as a code; empty otherwise.
        message: the same for people, or what it does.
    """

    operation: OperationName
    type: str
    phase: str
    reason: str = ""
    message: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing more becomes of it."""
        return self.phase in {"Succeeded", "Failed"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a dry run found.

    Args:
        message: what would be done, for people.
        steps: the same as the operation's `status.plan` has it.
    """

    message: str
    steps: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", MappingProxyType(dict(self.steps)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a write. `AdminClient.wait` waits for one that is still running.

    Args:
        topic: what it was about.
        awaited: what ends it.
        state: done, running, or planned (of a dry run).
        subscription: what it was about, if it was one.
        operation: the SegmentOperation that does it, if there is one.
        reason: where it stood when the gateway stopped waiting for it; empty unless it is running.
        plan: of a dry run.
    """

    topic: TopicName
    awaited: Awaited
    state: OutcomeState
    subscription: str | None = None
    operation: OperationName | None = None
    reason: str = ""
    plan: Plan | None = None

    @property
    def done(self) -> bool:
        """Whether it is done, and not still running or only planned."""
        return self.state is OutcomeState.DONE
