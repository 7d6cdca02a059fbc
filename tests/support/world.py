"""One test's part of the real cluster: a Kubernetes namespace, a Pulsar namespace, and ways to act and look."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from scalable_topics.layout import Segment, SegmentLayout, TopicName, classic_segment_name, from_record
from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource
from scalable_topics_operator.cluster.kube_errors import KubeConflict, KubeNotFound
from scalable_topics_operator.cluster.resources import (
    CONNECTIONS,
    EVENTS,
    NAMESPACES,
    POLICIES,
    SECRETS,
    SEGMENT_OPERATIONS,
    TOPICS,
)
from tests.support import manifests
from tests.support.manifests import Manifest
from tests.support.pulsar_view import PulsarView
from tests.support.waiting import eventually

SHARED_CONNECTION = "pulsar"
NATIVE_CONNECTION = "pulsar-5"
_SHARED = (SHARED_CONNECTION, NATIVE_CONNECTION)
_RESOURCES: dict[str, Resource] = {
    resource.kind: resource for resource in (CONNECTIONS, NAMESPACES, POLICIES, SECRETS, SEGMENT_OPERATIONS, TOPICS)
}

_APPLIED_AT_ONCE = 16
_READINGS, _READING_SECONDS, _STANDING_READINGS = 40, 0.25, 3


@dataclass(frozen=True, slots=True)
class World:
    """A user's view of the cluster.

    Args:
        kube: an administrator's client, strict about fields.
        namespace: Kubernetes namespace that an operator watches.
        pulsar: a superuser's view of the brokers.
        pulsar_namespace: `tenant/namespace` of this test alone.
        admin_url: admin API of the brokers.
        made: kind and name of what was applied, for tidying up.
    """

    kube: KubeClient
    namespace: str
    pulsar: PulsarView
    pulsar_namespace: str
    admin_url: str
    made: list[tuple[Resource, str]] = field(default_factory=list)

    async def apply(self, manifest: Manifest) -> Body:
        """Create an object in the world's namespace; one of its name that another test has left is waited for to go."""
        resource, name = _RESOURCES[manifest["kind"]], manifest["metadata"]["name"]
        self.made.append((resource, name))
        try:
            return await self.kube.create(resource, self.namespace, manifest)
        except KubeConflict as conflict:
            if "is being deleted" not in str(conflict):
                raise
        await self.until_gone(resource, name)
        return await self.kube.create(resource, self.namespace, manifest)

    async def apply_all(self, bodies: Iterable[Manifest]) -> None:
        """Create many objects, some at a time."""
        gate = asyncio.Semaphore(_APPLIED_AT_ONCE)

        async def apply(body: Manifest) -> None:
            async with gate:
                await self.apply(body)

        await asyncio.gather(*map(apply, bodies))

    async def versions(self, *resources: Resource) -> dict[str, str]:
        """Resource versions of all objects of these kinds, by plural and name."""
        return {
            f"{resource.plural}/{body['metadata']['name']}": body["metadata"]["resourceVersion"]
            for resource in resources
            for body in await self.kube.list_all(resource, self.namespace)
        }

    async def tidy_up(self) -> None:
        """Let go of what this world has made, so that the operator does not look after it for ever."""
        for resource, name in self.made:
            if resource in (POLICIES, TOPICS, SEGMENT_OPERATIONS) or (resource == CONNECTIONS and name not in _SHARED):
                await self.delete(resource, name)

    async def get(self, resource: Resource, name: str) -> Body:
        """Read an object."""
        return await self.kube.get(resource, self.namespace, name)

    async def change(self, resource: Resource, name: str, spec: dict[str, Any]) -> Body:
        """Merge-patch the spec, as kubectl does."""
        return await self.kube.merge_patch(resource, self.namespace, name, {"spec": spec})

    async def scale(self, name: str, segments: int) -> Body:
        """Ask for a number of active segments through the scale subresource, as `kubectl scale` does."""
        patch = {"spec": {"replicas": segments}}
        return await self.kube.merge_patch(TOPICS, self.namespace, name, patch, subresource="scale")

    async def nudge(self, resource: Resource, name: str) -> Body:
        """Label an object, which makes the operator look at it now."""
        patch = {"metadata": {"labels": {"example.com/nudge": uuid.uuid4().hex[:8]}}}
        return await self.kube.merge_patch(resource, self.namespace, name, patch)

    async def set_status(self, name: str, status: dict[str, Any]) -> Body:
        """Merge-patch a ScalableTopic's status, as `kubectl edit --subresource=status` does."""
        return await self.kube.merge_patch(TOPICS, self.namespace, name, {"status": status}, subresource="status")

    async def delete(self, resource: Resource, name: str) -> None:
        """Delete an object."""
        await self.kube.delete(resource, self.namespace, name)

    async def until(
        self, resource: Resource, name: str, holds: Callable[[Body], bool], *, what: str, within_seconds: float = 40.0
    ) -> Body:
        """Wait until an object is as wanted."""
        return await eventually(
            lambda: self.get(resource, name),
            holds,
            what=f"{resource.kind} {name} {what}",
            within_seconds=within_seconds,
        )

    async def until_ready(self, name: str, *, within_seconds: float = 40.0) -> Body:
        """Wait until a ScalableTopic is Ready for its newest spec and nothing is under way."""
        return await self.until(TOPICS, name, is_ready, what="is Ready", within_seconds=within_seconds)

    async def until_reason(self, name: str, reason: str, *, resource: Resource = TOPICS) -> Body:
        """Wait until an object's Ready condition has a reason."""
        return await self.until(
            resource, name, lambda body: condition(body, "Ready").get("reason") == reason, what=f"says {reason}"
        )

    @asynccontextmanager
    async def unseen(self, name: str) -> AsyncIterator[None]:
        """A ScalableTopic is paused meanwhile, so that the operator sees what is done as a whole: else it may look
        again in the middle of it.
        """
        await self.change(TOPICS, name, {"paused": True})
        await self.until(TOPICS, name, is_paused, what="is paused")
        yield
        await self.change(TOPICS, name, {"paused": False})

    async def until_gone(self, resource: Resource, name: str, *, within_seconds: float = 30.0) -> None:
        """Wait until an object is gone."""

        async def gone() -> bool:
            try:
                await self.get(resource, name)
            except KubeNotFound:
                return True
            return False

        await eventually(gone, what=f"{resource.kind} {name} is gone", within_seconds=within_seconds)

    async def operate(self, topic: str, kind: str, *, within_seconds: float = 60.0, **block: Any) -> Body:
        """Make a SegmentOperation and wait until it has ended; answers it, however it ended."""
        name = f"{topic}-{kind.lower()}-{uuid.uuid4().hex[:6]}"
        await self.apply(manifests.operation(name, topic, kind, **block))
        return await self.until_ended(name, within_seconds=within_seconds)

    async def until_ended(self, name: str, *, within_seconds: float = 60.0) -> Body:
        """Wait until a SegmentOperation has ended."""
        return await self.until(
            SEGMENT_OPERATIONS,
            name,
            has_ended,
            what="has ended",
            within_seconds=within_seconds,
        )

    async def layout(self, name: str) -> SegmentLayout:
        """The recorded layout of a ScalableTopic."""
        return from_record((await self.get(TOPICS, name))["status"]["layout"])

    async def events(self, name: str, *, resource: Resource = TOPICS) -> list[tuple[str, str]]:
        """Reasons and messages of the Events about an object."""
        return [
            (event["reason"], event["message"])
            for event in await self.kube.list_all(EVENTS, self.namespace)
            if (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == (resource.kind, name)
        ]

    def topic_name(self, local: str) -> TopicName:
        """A topic name in the test's own Pulsar namespace."""
        return TopicName.parse(f"{self.pulsar_namespace}/{local}")

    async def segment_names(self, name: str, local: str) -> dict[int, str]:
        """Full names of the recorded segments' topics, by id."""
        layout, topic = await self.layout(name), self.topic_name(local)
        return {segment_id: segment_topic(topic, segment) for segment_id, segment in layout.segments.items()}

    async def until_event(
        self, name: str, reason: str, *, resource: Resource = TOPICS, within_seconds: float = 40.0
    ) -> str:
        """Wait for an Event about an object; answers its message."""
        found = await eventually(
            lambda: self.events(name, resource=resource),
            lambda events: any(seen == reason for seen, _ in events),
            what=f"an Event {reason} about {resource.kind} {name}",
            within_seconds=within_seconds,
        )
        return next(message for seen, message in found if seen == reason)

    async def until_subscribed(
        self, name: str, local: str, subscriptions: Set[str], *, within_seconds: float = 40.0
    ) -> None:
        """Wait until every segment has the cursors: what is sent before a subscription is there is not for it."""

        async def missing() -> set[str]:
            segments = (await self.segment_names(name, local)).values()
            return {
                one for segment in segments for one in subscriptions - set(await self.pulsar.subscriptions(segment))
            }

        await eventually(
            missing,
            lambda found: not found,
            what=f"all segments of {name} have all cursors",
            within_seconds=within_seconds,
        )

    async def segment_topics(self, local: str) -> list[str]:
        """Names of all topics on the brokers that belong to a scalable topic, the claim left out."""
        prefix = f"{self.topic_name(local).persistent}-segment-"
        return [name for name in await self.pulsar.topics(self.pulsar_namespace) if name.startswith(prefix)]

    async def assert_brokers_agree(
        self, name: str, local: str, subscriptions: set[str], *, mended_within_seconds: float = 0.0
    ) -> None:
        """The brokers have exactly the recorded segments, in the recorded states, with all cursors.

        A difference counts if the record stood still while the brokers were read: segments being pruned meanwhile
        are none. It counts once it has stood for a few readings, since a broker lists names out of a cache, and that
        is soon enough that nothing is hidden that the operator would only mend later.

        Args:
            name: of the object.
            local: of the topic.
            subscriptions: that all segments have.
            mended_within_seconds: how long a difference may stand, where a leader that lost its Lease may have had a
                call under way that nobody could take back.
        """
        mended_by = time.monotonic() + mended_within_seconds
        stood = 0
        for _ in range(_READINGS + int(mended_within_seconds / _READING_SECONDS)):
            before = await self._record(name)
            try:
                await self._compare(name, local, subscriptions)
            except AssertionError:
                stood = stood + 1 if before == await self._record(name) and not before["deleting"] else 0
                if stood >= _STANDING_READINGS and time.monotonic() >= mended_by:
                    raise
                await asyncio.sleep(_READING_SECONDS)
            else:
                return
        raise AssertionError(f"the record of {name} does not come to rest: {before}")

    async def _record(self, name: str) -> dict[str, Any]:
        status = (await self.get(TOPICS, name))["status"]
        return {part: status.get(part) for part in ("layout", "operation", "deleting")}

    async def _compare(self, name: str, local: str, subscriptions: set[str]) -> None:
        layout = await self.layout(name)
        topic = self.topic_name(local)
        own = sorted(segment_topic(topic, one) for one in layout.segments.values() if not one.is_legacy)
        assert await self.segment_topics(local) == own
        for segment in layout.segments.values():
            full_name = segment_topic(topic, segment)
            assert await self.pulsar.terminated(full_name) == (not segment.is_active), full_name
            assert set(await self.pulsar.subscriptions(full_name)) >= subscriptions, full_name


def segment_topic(topic: TopicName, segment: Segment) -> str:
    """Full name of a segment's topic on Classic."""
    return segment.topic or classic_segment_name(topic, segment.hash_range, segment.segment_id)


def condition(body: Body, kind: str) -> dict[str, Any]:
    """One condition of an object; empty if it has none."""
    for entry in (body.get("status") or {}).get("conditions", ()):
        if entry["type"] == kind:
            found: dict[str, Any] = entry
            return found
    return {}


def phase(body: Body) -> str:
    """Phase of a SegmentOperation."""
    return str((body.get("status") or {}).get("phase", ""))


def has_ended(body: Body) -> bool:
    """Whether a SegmentOperation has ended, well or not."""
    return phase(body) in ("Succeeded", "Failed")


def is_paused(body: Body) -> bool:
    """Whether a ScalableTopic says that it is paused; one that is not made yet says so as the reason of Ready."""
    return condition(body, "Paused").get("status") == "True" or condition(body, "Ready").get("reason") == "Paused"


def is_ready(body: Body) -> bool:
    """Whether an object is Ready for its newest spec and nothing is under way, as kstatus judges."""
    status = body.get("status") or {}
    return (
        status.get("observedGeneration") == body["metadata"]["generation"]
        and condition(body, "Ready").get("status") == "True"
        and condition(body, "Reconciling").get("status") != "True"
    )
