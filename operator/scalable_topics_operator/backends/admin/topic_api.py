"""Calls about one ordinary persistent topic: creation, properties, seal, statistics, cursors, grants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scalable_topics_operator.backends.admin.call import Answer, Call
from scalable_topics_operator.backends.admin.http import AdminHttp
from scalable_topics_operator.backends.admin.paths import subscription_path, topic_path
from scalable_topics_operator.backends.admin.reasons import About, error_for, is_subscription_missing
from scalable_topics_operator.operations.errors import TopicMissing
from scalable_topics_operator.operations.protocols import MessagePosition

_ADMIN = "tenant admin"
_MOST_PARTITIONS = 100_000
_CREATE = "tenant admin (creating topics)"


class TopicApi:
    """Calls about one topic, named by its full `persistent://` name.

    All raise TopicMissing or NamespaceMissing where the object is gone, and the other errors of
    `operations.errors`. None of them makes the broker create a missing topic, `create` and
    `create_subscription` excepted.
    """

    def __init__(self, http: AdminHttp) -> None:
        self._http = http

    async def create(self, topic: str, properties: Mapping[str, str]) -> bool:
        """Create a non-partitioned topic with its properties; False if one of that name exists."""
        answer = await self._send(
            "create-topic", "PUT", topic, body=dict(properties), allow=frozenset({409}), right=_CREATE
        )
        return answer.status != 409

    async def partitions(self, topic: str) -> int | None:
        """Partition count, 0 for a topic without partitions, None if there is no such topic.

        Raises NamespaceMissing. Neither creates nor loads the topic.
        """
        try:
            answer = await self._send("get-partitions", "GET", topic, "partitions", right=_ADMIN)
        except TopicMissing:
            return None
        return answer.read(f"get-partitions {topic}", _partition_count)

    async def properties(self, topic: str) -> dict[str, str]:
        """The topic's properties."""
        answer = await self._send("get-properties", "GET", topic, "properties", right=_ADMIN)
        return answer.read(
            f"get-properties {topic}", lambda found: {str(key): str(value) for key, value in (found or {}).items()}
        )

    async def merge_properties(self, topic: str, properties: Mapping[str, str]) -> None:
        """Set properties; others stay. The topic must exist: some brokers never answer otherwise."""
        await self._send("put-properties", "PUT", topic, "properties", body=dict(properties), right=_ADMIN)

    async def remove_property(self, topic: str, key: str) -> None:
        """Remove one property; quiet when it is absent."""
        await self._send("delete-property", "DELETE", topic, "properties", query={"key": key}, right=_ADMIN)

    async def delete(self, topic: str, *, force: bool = False) -> bool:
        """Delete a topic; False if there was none. Raises ClientsAttached."""
        try:
            await self._send("delete-topic", "DELETE", topic, query=_force(force), right=_ADMIN)
        except TopicMissing:
            return False
        return True

    async def delete_partitions(self, topic: str, *, force: bool = False) -> bool:
        """Delete a partitioned topic with all its partitions; False if there was none. Raises ClientsAttached."""
        try:
            await self._send("delete-partitions", "DELETE", topic, "partitions", query=_force(force), right=_ADMIN)
        except TopicMissing:
            return False
        return True

    async def create_missing_partitions(self, topic: str) -> None:
        """Make the partitions that a partitioned topic should have and does not."""
        await self._send("create-missed-partitions", "POST", topic, "createMissedPartitions", right=_CREATE)

    async def truncate(self, topic: str) -> None:
        """Drop all ledgers but the last, whatever cursors say, which move on."""
        await self._send("truncate", "DELETE", topic, "truncate", right=_ADMIN)

    async def terminate(self, topic: str) -> tuple[int, int]:
        """Seal a topic without partitions; ledger and entry id of its last entry as the broker claims."""
        answer = await self._send("terminate", "POST", topic, "terminate", right=_ADMIN)
        return answer.read(f"terminate {topic}", lambda found: (int(found["ledgerId"]), int(found["entryId"])))

    async def terminate_partitions(self, topic: str) -> None:
        """Seal every partition of a partitioned topic."""
        await self._send("terminate-partitions", "POST", topic, "terminate", "partitions", right=_ADMIN)

    async def unload(self, topic: str) -> None:
        """Make the broker close the topic; the next use loads it again."""
        await self._send("unload-topic", "PUT", topic, "unload", right=_ADMIN)

    async def stats(self, topic: str, *, precise_backlog: bool = True) -> dict[str, Any]:
        """Statistics with publishers, subscriptions and consumers; loads the topic if it is not loaded."""
        query = {"getPreciseBacklog": "true" if precise_backlog else "false"}
        answer = await self._send("get-stats", "GET", topic, "stats", query=query)
        return answer.mapping(f"get-stats {topic}")

    async def internal_stats(self, topic: str) -> dict[str, Any]:
        """State of the ledgers and cursors; loads the topic if it is not loaded."""
        answer = await self._send("get-internal-stats", "GET", topic, "internalStats")
        return answer.mapping(f"get-internal-stats {topic}")

    async def subscriptions(self, topic: str) -> frozenset[str]:
        """Names of all subscriptions, those of readers included."""
        answer = await self._send("list-subscriptions", "GET", topic, "subscriptions")
        return frozenset(texts_of(answer, f"list-subscriptions {topic}"))

    async def create_subscription(self, topic: str, subscription: str, *, latest: bool = False) -> bool:
        """Create a durable cursor at the earliest (or latest) entry; False if it exists already.

        Where auto-creation is on this CREATES a missing topic (measured). It is no single step either: the
        broker makes the cursor at the latest entry and then moves it, and a failure may leave it there
        (measured), so it is not repeated here. `classic.cursors` deals with both.
        """
        answer = await self._send_about_subscription(
            "create-subscription",
            "PUT",
            topic,
            subscription,
            body="latest" if latest else "earliest",
            idempotent=False,
            allow=frozenset({409}),
        )
        return answer.status != 409

    async def move_to_earliest(self, topic: str, subscription: str) -> bool:
        """Move a cursor to the earliest entry; False if there is none. Disconnects its consumers."""
        return await self._reset_cursor(topic, subscription, {"ledgerId": -1, "entryId": -1})

    async def move_behind(self, topic: str, subscription: str, position: MessagePosition) -> bool:
        """Move a cursor behind a message, which may be one of a batch; False if there is none. Disconnects its
        consumers.
        """
        where = {
            "ledgerId": position.ledger_id,
            "entryId": position.entry_id,
            "batchIndex": position.batch_index,
            "excluded": True,
        }
        return await self._reset_cursor(topic, subscription, where)

    async def move_to_time(self, topic: str, subscription: str, to_ms: int) -> bool:
        """Move a cursor before the first message published at a time or later, in milliseconds since 1970; False if
        there is none. Disconnects its consumers.
        """
        answer = await self._send_about_subscription(
            "reset-cursor-to-time", "POST", topic, subscription, "resetcursor", str(to_ms), allow=frozenset({404})
        )
        return answer.status != 404

    async def skip_all(self, topic: str, subscription: str) -> bool:
        """Move a cursor behind the last entry; False if there is none."""
        answer = await self._send_about_subscription(
            "skip-all", "POST", topic, subscription, "skip_all", allow=frozenset({404})
        )
        return answer.status != 404

    async def delete_subscription(self, topic: str, subscription: str, *, force: bool = False) -> bool:
        """Delete a cursor; False if there was none. Raises ClientsAttached, TopicMissing."""
        answer = await self._send_about_subscription(
            "delete-subscription", "DELETE", topic, subscription, query=_force(force), allow=frozenset({404})
        )
        return answer.status != 404

    async def permissions(self, topic: str) -> dict[str, frozenset[str]]:
        """What roles may do on the topic, by grants on the topic and on its namespace together."""
        answer = await self._send("get-permissions", "GET", topic, "permissions", right=_ADMIN)
        return answer.read(f"get-permissions {topic}", permissions_of)

    async def grant(self, topic: str, role: str, actions: Iterable[str]) -> None:
        """Set the actions a role is granted on the topic itself; REPLACES its earlier ones (measured)."""
        await self._send("grant", "POST", topic, "permissions", role, body=sorted(actions), right=_ADMIN)

    async def revoke(self, topic: str, role: str) -> None:
        """Remove the grants of a role on the topic itself; quiet when it has none."""
        await self._send("revoke", "DELETE", topic, "permissions", role, right=_ADMIN)

    async def _send(
        self,
        operation: str,
        method: str,
        topic: str,
        *rest: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        allow: frozenset[int] = frozenset(),
        right: str | None = None,
    ) -> Answer:
        call = Call(
            operation,
            method,
            topic_path(topic, *rest),
            topic,
            About.TOPIC,
            query=query or {},
            body=body,
            allow=allow,
            right=right,
        )
        return await self._http.send(call)

    async def _reset_cursor(self, topic: str, subscription: str, where: Mapping[str, Any]) -> bool:
        answer = await self._send_about_subscription(
            "reset-cursor", "POST", topic, subscription, "resetcursor", body=where, allow=frozenset({404})
        )
        return answer.status != 404

    async def _send_about_subscription(
        self,
        operation: str,
        method: str,
        topic: str,
        subscription: str,
        *rest: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        idempotent: bool = True,
        allow: frozenset[int] = frozenset(),
    ) -> Answer:
        call = Call(
            operation,
            method,
            subscription_path(topic, subscription, *rest),
            f"{topic} subscription {subscription}",
            About.TOPIC,
            query=query or {},
            body=body,
            idempotent=idempotent,
            allow=allow,
            right="consume on the topic",
        )
        answer = await self._http.send(call)
        if answer.status == 404 and not is_subscription_missing(answer.reason):
            raise error_for(call.what, answer.status, answer.reason, call.about)
        return answer


def texts_of(answer: Answer, what: str) -> list[str]:
    """The texts of a list; none if the answer is empty. Raises BackendUnavailable for what is no list."""

    def read(found: Any) -> list[str]:
        if not isinstance(found, list | None):
            raise TypeError
        return [str(one) for one in found or ()]

    return answer.read(what, read)


def _partition_count(found: Any) -> int:
    count = int(found.get("partitions", 0))
    # Whoever asks makes a name for each of them.
    if not 0 <= count <= _MOST_PARTITIONS:
        raise ValueError
    return count


def permissions_of(found: Any) -> dict[str, frozenset[str]]:
    """Role -> actions from the admin API's JSON; actions unknown to the broker come as null: dropped."""
    return {
        str(role): frozenset(str(action) for action in actions or () if action is not None)
        for role, actions in (found or {}).items()
    }


def _force(force: bool) -> dict[str, str]:
    return {"force": "true"} if force else {}
