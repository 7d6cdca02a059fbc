"""What a topic's reconcile needs of whoever knows how its layout is changed: the one protocol of both backends (R2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from scalable_topics_operator.controllers.conditions import Aspect, Standing
from scalable_topics_operator.controllers.topic_work import AnyWork, ClassicWork, NativeWork, WorkT_contra
from scalable_topics_operator.operations.drift import Managed


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is to be told of a topic that was brought forward.

    Args:
        problem: what a person must see to; None where all is well.
        managed: what may be set on the brokers for the spec now; None where that has not changed.
        aspects: conditions besides the standing.
    """

    problem: Standing | None = None
    managed: Managed | None = None
    aspects: tuple[Aspect, ...] = ()


class TopicCourse(Protocol[WorkT_contra]):
    """Brings topics of one backend forward."""

    async def require_same_cluster(self, work: WorkT_contra) -> None:
        """Make sure that the topic is where its connection leads to. Raises Stuck, BackendError."""

    async def advance(self, work: WorkT_contra) -> Outcome:
        """Bring spec, record and brokers to agree, one operation after the other.

        Raises Stuck, NotYet, BackendError, LayoutError, StaleStatus, KubeError.
        """

    async def release(self, work: WorkT_contra) -> None:
        """Let go of a topic and leave its data. Raises BackendError."""

    async def delete(self, work: WorkT_contra, *, force: bool) -> None:
        """Delete a topic with its data. Raises ClientsAttached, BackendError."""


class Courses:
    """The courses of both backends: each topic goes the one of its own (R2).

    Args:
        classic: for topics whose layout the operator owns.
        native: for those whose layout the brokers own.
    """

    def __init__(self, classic: TopicCourse[ClassicWork], native: TopicCourse[NativeWork]) -> None:
        self._classic = classic
        self._native = native

    async def require_same_cluster(self, work: AnyWork) -> None:
        """See `TopicCourse.require_same_cluster`."""
        await self._of(work).require_same_cluster(work)

    async def advance(self, work: AnyWork) -> Outcome:
        """See `TopicCourse.advance`."""
        return await self._of(work).advance(work)

    async def release(self, work: AnyWork) -> None:
        """See `TopicCourse.release`."""
        await self._of(work).release(work)

    async def delete(self, work: AnyWork, *, force: bool) -> None:
        """See `TopicCourse.delete`."""
        await self._of(work).delete(work, force=force)

    def _of(self, work: AnyWork) -> TopicCourse[Any]:
        return self._native if isinstance(work, NativeWork) else self._classic
