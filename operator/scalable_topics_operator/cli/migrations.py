"""Migrations asked for with a kubeconfig alone: one SegmentOperation each, and what becomes of it (pip-475)."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scalable_topics.layout import LayoutError, TopicName
from scalable_topics_operator.cli.faults import BadUsage, Refused
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeError, KubeNotFound, KubeUnavailable
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS

SUCCEEDED, FAILED, RUNNING, UNKNOWN = "Succeeded", "Failed", "Running", "Unknown"
_TOPIC_CHARS = 200
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 2.0
# Long enough for whoever waits for it; a dry run is of no use to anybody afterwards.
_DRY_RUN_TTL_SECONDS = 300

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, order=True)
class DeclaredTopic:
    """A ScalableTopic.

    Args:
        namespace: of the object.
        name: of the object.
        topic: as its spec has it.
        is_scalable: whether it has a layout.
    """

    namespace: str
    name: str
    topic: str
    is_scalable: bool

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a migration, or of the dry run of one.

    Args:
        phase: `Succeeded` or `Failed`; `Running` when it had not ended in time, and goes on; `Unknown` where nobody
            knows whether it was begun.
        reason: why it failed, in one CamelCase word.
        message: for people.
        operation: name of the SegmentOperation; empty if none could be made.
        report: of a dry run: what the migration would meet, as `status.plan.migration` has it.
    """

    phase: str
    reason: str = ""
    message: str = ""
    operation: str = ""
    report: Mapping[str, Any] = field(default_factory=dict)

    @property
    def obstacles(self) -> tuple[Mapping[str, str], ...]:
        """Why it is not possible as things are; empty if it is, or was done."""
        if self.phase == SUCCEEDED:
            return tuple(self.report.get("obstacles") or ())
        return ({"reason": self.reason or self.phase, "message": self.message},)


async def find_declared(kube: KubeClient, name: str, namespace: str) -> DeclaredTopic:
    """The ScalableTopic that a user means. Raises CliError, KubeError.

    Args:
        kube: the API server.
        name: of the object, or of its topic.
        namespace: of the object.
    """
    if "/" not in name:
        return _declared(await kube.get(TOPICS, namespace, name))
    try:
        wanted = TopicName.parse(name)
    except LayoutError as error:
        raise BadUsage(str(error)) from None
    found = [one for one in await list_declared(kube, namespace, "") if _is_named(one, wanted)]
    if len(found) != 1:
        several = ", ".join(map(str, found))
        raise Refused(
            f"ScalableTopics {several} declare {wanted}; name one of them"
            if found
            else f"no ScalableTopic in namespace {namespace} declares {wanted}; apply one, with spec.migrateFrom if it "
            "is to be migrated at once"
        )
    return found[0]


async def list_declared(kube: KubeClient, namespace: str | None, selector: str) -> list[DeclaredTopic]:
    """The ScalableTopics of a namespace, or of all, that have labels; sorted. Raises KubeError."""
    pages = kube.list_pages(TOPICS, namespace, label_selector=selector)
    return sorted([_declared(body) async for page, _ in pages for body in page])


async def run_migration(
    kube: KubeClient, topic: DeclaredTopic, *, force: bool, dry_run: bool, timeout_seconds: float, tell: Tell
) -> Ended:
    """Have a topic migrated, or only looked at, and wait for the end of it.

    Args:
        kube: the API server.
        topic: which one.
        force: whether clients that do not know scalable topics are cut off.
        dry_run: whether nothing is changed.
        timeout_seconds: how long it is waited for; it goes on afterwards.
        tell: told of each step.
    """
    name = f"{topic.name[:_TOPIC_CHARS].rstrip('-.')}-migrate-{uuid.uuid4().hex[:8]}"
    spec: dict[str, Any] = {"scalableTopic": topic.name, "type": "Migrate", "migrate": {"force": force}}
    if dry_run:
        spec |= {"dryRun": True, "ttlSecondsAfterFinished": _DRY_RUN_TTL_SECONDS}
    body = {
        "apiVersion": SEGMENT_OPERATIONS.api_version,
        "kind": SEGMENT_OPERATIONS.kind,
        "metadata": {"namespace": topic.namespace, "name": name},
        "spec": spec,
    }
    try:
        await _make(kube, body)
    except KubeUnavailable as error:
        why = f"the Kubernetes API server: {error}; SegmentOperation {name} may have been made all the same"
        return Ended(UNKNOWN, "Unreachable", why)
    except KubeError as error:
        return Ended(FAILED, "NotMade", f"the Kubernetes API server: {error}")
    if not dry_run:
        tell(f"{topic}: SegmentOperation {name} is made")
    return await _until_ended(kube, topic, name, time.monotonic() + timeout_seconds, tell)


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


async def _until_ended(kube: KubeClient, topic: DeclaredTopic, name: str, deadline: float, tell: Tell) -> Ended:
    stood, pause_seconds = "", _FIRST_PAUSE_SECONDS
    while True:
        try:
            found = await kube.get(SEGMENT_OPERATIONS, topic.namespace, name)
        except KubeUnavailable as error:
            stands = f"{topic}: the Kubernetes API server: {error}"
        except KubeError as error:
            return Ended(FAILED, "Lost", f"SegmentOperation {name} cannot be read any more: {error}", name)
        else:
            status = found.get("status") or {}
            phase = status.get("phase") or "Pending"
            if phase in (SUCCEEDED, FAILED):
                report = (status.get("plan") or {}).get("migration") or {}
                return Ended(phase, status.get("reason") or "", status.get("message") or "", name, report)
            stands = f"{topic}: {phase}" + _after(status.get("step")) + _after(status.get("message"))
        if stands != stood:
            tell(stands)
            stood, pause_seconds = stands, _FIRST_PAUSE_SECONDS
        if time.monotonic() >= deadline:
            why = f"not ended in time, and goes on: kubectl describe segmentoperation {name} -n {topic.namespace}"
            return Ended(RUNNING, "NotEnded", f"{stands.removeprefix(f'{topic}: ')}; {why}", name)
        await asyncio.sleep(min(pause_seconds, max(0.0, deadline - time.monotonic())) * random.uniform(0.5, 1.0))
        pause_seconds = min(_LONGEST_PAUSE_SECONDS, pause_seconds * 1.5)


def _declared(body: Body) -> DeclaredTopic:
    metadata = body["metadata"]
    layout = (body.get("status") or {}).get("layout")
    return DeclaredTopic(metadata["namespace"], metadata["name"], body["spec"]["topic"], bool(layout))


def _is_named(topic: DeclaredTopic, wanted: TopicName) -> bool:
    try:
        return TopicName.parse(topic.topic) == wanted
    except LayoutError:
        return False


def _after(text: str | None) -> str:
    return f": {text}" if text else ""
