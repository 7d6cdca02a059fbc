"""Operations asked for with a kubeconfig alone: a SegmentOperation each, and what becomes of it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scalable_topics_operator.cli.faults import CliError, Refused, Unreachable
from scalable_topics_operator.cli.tables import plain
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeError, KubeNotFound, KubeUnavailable
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS
from scalable_topics_operator.cluster.segment_operations import FAILED, FINISHED, SUCCEEDED, operation_body

RUNNING, UNKNOWN = "Running", "Unknown"
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 2.0
# A replica that is there takes it up in a moment, even a busy one.
_TAKEN_UP_SECONDS = 5.0
# Long enough for whoever waits for it; a dry run is of no use to anybody afterwards.
_DRY_RUN_TTL_SECONDS = 300

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """An operation to be made.

    Args:
        namespace: of the ScalableTopic, and of the operation.
        topic: name of the ScalableTopic.
        kind: `Split` and so on, as `spec.type` has it.
        block: what the kind needs, as `spec` has it under its own name.
        dry_run: whether nothing is changed.
    """

    namespace: str
    topic: str
    kind: str
    block: Mapping[str, Any]
    dry_run: bool

    def __str__(self) -> str:
        return f"{self.namespace}/{self.topic}"

    def body(self) -> Body:
        """The SegmentOperation, with a name of its own."""
        return operation_body(
            self.namespace,
            self.topic,
            self.kind,
            self.block,
            dry_run=True if self.dry_run else None,
            ttl_seconds=_DRY_RUN_TTL_SECONDS if self.dry_run else None,
        )


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of an operation, or of the dry run of one.

    Args:
        phase: `Succeeded` or `Failed`; `Running` when it had not ended in time, and goes on; `Unknown` where nobody
            knows whether it was begun.
        reason: why it failed, in one CamelCase word.
        message: for people.
        operation: name of the SegmentOperation; empty if none could be made.
        plan: what it comes to, as `status.plan` has it.
    """

    phase: str
    reason: str = ""
    message: str = ""
    operation: str = ""
    plan: Mapping[str, Any] = field(default_factory=dict)

    @property
    def report(self) -> Mapping[str, Any]:
        """Of the dry run of a migration: what that would meet."""
        found: Mapping[str, Any] = self.plan.get("migration") or {}
        return found

    @property
    def obstacles(self) -> tuple[Mapping[str, str], ...]:
        """Why it is not possible as things are; empty if it is, or was done."""
        if self.phase == SUCCEEDED:
            return tuple(self.report.get("obstacles") or ())
        return ({"reason": self.reason or self.phase, "message": self.message},)

    def place(self, namespace: str) -> str | None:
        """The SegmentOperation with the namespace that it was made in; None if none could be made."""
        return f"{namespace}/{self.operation}" if self.operation else None


async def run_operation(kube: KubeClient, wanted: Wanted, *, timeout_seconds: float, tell: Tell) -> Ended:
    """Have an operation done, or only looked at, and wait for the end of it.

    Args:
        kube: the API server.
        wanted: which one.
        timeout_seconds: how long it is waited for; it goes on afterwards.
        tell: told of each step.
    """
    body = wanted.body()
    name = body["metadata"]["name"]
    try:
        await _make(kube, body)
    except KubeUnavailable as error:
        why = f"the Kubernetes API server: {error}; SegmentOperation {name} may have been made all the same"
        return Ended(UNKNOWN, "Unreachable", why)
    except KubeError as error:
        return Ended(FAILED, "NotMade", f"the Kubernetes API server: {error}")
    if not wanted.dry_run:
        tell(f"{wanted}: SegmentOperation {name} is made")
    return await _until_ended(kube, wanted, name, time.monotonic() + timeout_seconds, tell)


def raise_for(ended: Sequence[Ended], beginning: str) -> None:
    """Make the exit code tell scripts that something is in the way, or has not ended. Raises CliError.

    Args:
        ended: what became of each operation.
        beginning: of the message.
    """
    in_the_way = [one for one in ended if one.obstacles]
    if not in_the_way:
        return
    first = in_the_way[0].obstacles[0]
    others = f" (and {len(in_the_way) - 1} more)" if len(in_the_way) > 1 else ""
    kind: type[CliError] = Refused if any(one.phase in FINISHED for one in in_the_way) else Unreachable
    raise kind(f"{beginning}{first['reason']}: {plain(first['message'])}{others}")


async def _make(kube: KubeClient, body: Body) -> None:
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    try:
        await kube.create(SEGMENT_OPERATIONS, namespace, body)
    except KubeUnavailable as error:
        # Its answer may be all that was lost.
        try:
            await kube.get(SEGMENT_OPERATIONS, namespace, name)
        except KubeNotFound:
            raise error from None


async def _until_ended(kube: KubeClient, wanted: Wanted, name: str, deadline: float, tell: Tell) -> Ended:
    stood, pause_seconds = "", _FIRST_PAUSE_SECONDS
    overdue = time.monotonic() + _TAKEN_UP_SECONDS
    while True:
        try:
            found = await kube.get(SEGMENT_OPERATIONS, wanted.namespace, name)
        except KubeUnavailable as error:
            stands = f"{wanted}: the Kubernetes API server: {error}"
        except KubeError as error:
            return Ended(FAILED, "Lost", f"SegmentOperation {name} cannot be read any more: {error}", name)
        else:
            status = found.get("status") or {}
            phase = status.get("phase") or "Pending"
            if phase in FINISHED:
                reason, message = status.get("reason") or "", status.get("message") or ""
                return Ended(phase, reason, message, name, status.get("plan") or {})
            stands = f"{wanted}: {phase}" + _after(status.get("step")) + _after(status.get("message"))
            if not status and time.monotonic() >= overdue:
                stands += ": no replica of the operator has taken it up; stopics doctor says whether one leads"
        if stands != stood:
            tell(stands)
            stood, pause_seconds = stands, _FIRST_PAUSE_SECONDS
        if time.monotonic() >= deadline:
            why = f"not ended in time, and goes on: kubectl describe segmentoperation {name} -n {wanted.namespace}"
            return Ended(RUNNING, "NotEnded", f"{stands.removeprefix(f'{wanted}: ')}; {why}", name)
        await asyncio.sleep(min(pause_seconds, max(0.0, deadline - time.monotonic())) * random.uniform(0.5, 1.0))
        pause_seconds = min(_LONGEST_PAUSE_SECONDS, pause_seconds * 1.5)


def _after(text: str | None) -> str:
    return f": {text}" if text else ""
