"""Calls of `/admin/v2/scalable`: scalable topics whose layouts the brokers own (Pulsar 5.0)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scalable_topics.layout import TopicName
from scalable_topics_operator.backends.admin.call import Answer, Call
from scalable_topics_operator.backends.admin.http import AdminHttp
from scalable_topics_operator.backends.admin.paths import scalable_path, segment_path
from scalable_topics_operator.backends.admin.reasons import About
from scalable_topics_operator.backends.admin.topic_api import permissions_of
from scalable_topics_operator.operations.errors import TopicMissing

_SUPERUSER = "superuser"
_ADMIN = "tenant admin"


class ScalableApi:
    """Calls about one scalable topic.

    All raise TopicMissing where it is gone, and the other errors of `operations.errors`. The brokers know no
    conditional writes: what changes a layout is sent once and never repeated here.
    """

    def __init__(self, http: AdminHttp) -> None:
        self._http = http

    async def create(self, topic: TopicName, segments: int, properties: Mapping[str, str]) -> bool:
        """Make a topic with its properties; False if one of that name exists.

        Makes one in a tenant or namespace that does not exist, and beside an ordinary topic of that name (measured).
        """
        answer = await self._send(
            "create-scalable",
            "PUT",
            topic,
            query={"numInitialSegments": str(segments)},
            body=dict(properties),
            idempotent=False,
            allow=frozenset({409}),
            right=_ADMIN,
        )
        return answer.status != 409

    async def layout(self, topic: TopicName) -> dict[str, Any] | None:
        """The record: layout, properties and stored auto-scale policy; None if there is none."""
        try:
            answer = await self._send("get-scalable", "GET", topic, right=_ADMIN)
        except TopicMissing:
            return None
        return answer.mapping(f"get-scalable {topic}")

    async def delete(self, topic: TopicName) -> bool:
        """Delete a topic with whoever uses it; False if there was none.

        Always with force: without, a segment with a producer stays behind and goes on accepting (measured).
        """
        try:
            await self._send("delete-scalable", "DELETE", topic, query={"force": "true"}, right=_ADMIN)
        except TopicMissing:
            return False
        return True

    async def stats(self, topic: TopicName) -> dict[str, Any]:
        """Load, clients and subscriptions; makes the brokers elect a controller of the topic."""
        return (await self._send("get-scalable-stats", "GET", topic, "stats")).mapping(f"get-scalable-stats {topic}")

    async def segment_stats(self, topic: TopicName, segment_id: int) -> dict[str, Any]:
        """Load, clients and subscriptions of one segment."""
        answer = await self._send("get-segment-stats", "GET", topic, "segments", str(segment_id), "stats")
        return answer.mapping(f"get-segment-stats {topic}")

    async def split(self, topic: TopicName, segment_id: int) -> None:
        """Split a segment in two halves."""
        await self._change("split-segment", topic, "split", str(segment_id))

    async def merge(self, topic: TopicName, first_id: int, second_id: int) -> None:
        """Merge two touching segments."""
        await self._change("merge-segments", topic, "merge", str(first_id), str(second_id))

    async def rebucket(self, topic: TopicName, segment_id: int, buckets: int) -> None:
        """Replace a segment by one with another number of entry buckets."""
        await self._change("rebucket-segment", topic, "rebucket", str(segment_id), query={"bucketCount": str(buckets)})

    async def migrate(self, topic: TopicName, *, force: bool) -> None:
        """Make the ordinary topic of that name scalable."""
        await self._change("migrate", topic, "migrate", query={"force": "true" if force else "false"})

    async def create_subscription(self, topic: TopicName, subscription: str, kind: str) -> None:
        """Make a subscription, `STREAM` or `QUEUE`, at earliest on every active segment; one that is there stays."""
        await self._send(
            "create-subscription", "PUT", topic, "subscriptions", subscription, query={"type": kind}, right=_ADMIN
        )

    async def delete_subscription(self, topic: TopicName, subscription: str) -> None:
        """Delete a subscription, with whoever uses it; quiet when it is gone."""
        await self._send("delete-subscription", "DELETE", topic, "subscriptions", subscription, right=_ADMIN)

    async def seek(self, topic: TopicName, subscription: str, to_ms: int) -> None:
        """Move a subscription to a time, milliseconds since 1970; quiet when there is none."""
        query = {"timestamp": str(to_ms)}
        await self._send("seek", "POST", topic, "subscriptions", subscription, "seek", query=query, right=_ADMIN)

    async def skip_all(self, topic: TopicName, subscription: str) -> None:
        """Move a subscription behind everything; quiet when there is none."""
        await self._send("skip-all", "POST", topic, "subscriptions", subscription, "skip-all", right=_ADMIN)

    async def set_auto_scale_policy(self, topic: TopicName, override: Mapping[str, Any]) -> None:
        """Store the topic's own auto-scale policy, which REPLACES the one before; unknown fields are dropped."""
        await self._send("set-auto-scale", "POST", topic, "autoScalePolicy", body=dict(override), right=_ADMIN)

    async def remove_auto_scale_policy(self, topic: TopicName) -> None:
        """Take the topic's own auto-scale policy away; quiet when it has none."""
        await self._send("remove-auto-scale", "DELETE", topic, "autoScalePolicy", right=_ADMIN)

    async def permissions(self, topic: TopicName) -> dict[str, frozenset[str]]:
        """Role -> actions granted on the topic itself."""
        answer = await self._send("get-permissions", "GET", topic, "permissions", right=_ADMIN)
        return answer.read(f"get-permissions {topic}", permissions_of)

    async def grant(self, topic: TopicName, role: str, actions: Iterable[str]) -> None:
        """Set what a role may do on the topic itself."""
        await self._send("grant", "POST", topic, "permissions", role, body=sorted(actions), right=_ADMIN)

    async def revoke(self, topic: TopicName, role: str) -> None:
        """Take away what a role may do on the topic itself; quiet when it may nothing."""
        await self._send("revoke", "DELETE", topic, "permissions", role, right=_ADMIN)

    async def delete_segment(self, topic: TopicName, descriptor: str) -> None:
        """Delete the topic of a segment, whatever the layout says; quiet when it is gone."""
        call = Call(
            "delete-segment",
            "DELETE",
            segment_path(topic, descriptor),
            f"segment {descriptor} of {topic}",
            About.TOPIC,
            query={"force": "true"},
            right=_SUPERUSER,
        )
        try:
            await self._http.send(call)
        except TopicMissing:
            return

    async def _change(
        self, operation: str, topic: TopicName, *rest: str, query: Mapping[str, str] | None = None
    ) -> None:
        await self._send(operation, "POST", topic, *rest, query=query, idempotent=False, right=_ADMIN)

    async def _send(
        self,
        operation: str,
        method: str,
        topic: TopicName,
        *rest: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        idempotent: bool = True,
        allow: frozenset[int] = frozenset(),
        right: str | None = None,
    ) -> Answer:
        call = Call(
            operation,
            method,
            scalable_path(topic, *rest),
            str(topic),
            About.TOPIC,
            query=query or {},
            body=body,
            idempotent=idempotent,
            allow=allow,
            right=right,
        )
        return await self._http.send(call)
