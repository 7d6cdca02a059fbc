"""Calls about one Pulsar namespace: its topics, policies and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from scalable_topics_operator.backends.admin.call import Call
from scalable_topics_operator.backends.admin.http import AdminHttp
from scalable_topics_operator.backends.admin.paths import namespace_path, topics_path
from scalable_topics_operator.backends.admin.reasons import About
from scalable_topics_operator.backends.admin.topic_api import permissions_of, texts_of
from scalable_topics_operator.operations.errors import BackendUnavailable

_ADMIN = "tenant admin"
T = TypeVar("T")


class NamespaceApi:
    """Calls about one namespace, named `tenant/namespace`. All raise NamespaceMissing where it is gone."""

    def __init__(self, http: AdminHttp) -> None:
        self._http = http

    async def topics(self, namespace: str) -> list[str]:
        """Full names of all persistent topics; partitions as `...-partition-N`."""
        call = Call(
            "list-topics",
            "GET",
            topics_path(namespace),
            namespace,
            About.NAMESPACE,
            right="any grant",
            is_large=True,
        )
        found = (await self._http.send(call)).json(call.what)
        if not isinstance(found, list):
            raise BackendUnavailable(f"{call.what}: the answer is not a list")
        return [str(topic) for topic in found]

    async def policies(self, namespace: str) -> dict[str, Any]:
        """The namespace's policies document, which also holds the grants of all its topics."""
        call = self._policies_call(namespace)
        return (await self._http.send(call)).mapping(call.what)

    async def topic_grants(self, namespace: str) -> dict[str, dict[str, frozenset[str]]]:
        """Topic -> role -> actions granted on the topic itself, without what the namespace grants."""
        call = self._policies_call(namespace)

        def read(found: Any) -> dict[str, dict[str, frozenset[str]]]:
            auth = found.get("auth_policies") or {}
            return {
                str(topic): permissions_of(grants) for topic, grants in (auth.get("destination_auth") or {}).items()
            }

        return (await self._http.send(call)).read(call.what, read)

    async def permissions(self, namespace: str) -> dict[str, frozenset[str]]:
        """Role -> actions granted on the namespace."""
        return await self._read("permissions", namespace, permissions_of)

    async def inactive_topic_policies(self, namespace: str) -> dict[str, Any] | None:
        """The namespace's inactive-topic policy; None if it has none."""
        found = await self._get("inactiveTopicPolicies", namespace)
        return found if isinstance(found, dict) else None

    async def set_inactive_topic_policies(self, namespace: str, policy: dict[str, Any]) -> None:
        """Set the namespace's inactive-topic policy."""
        call = Call(
            "set-inactiveTopicPolicies",
            "POST",
            namespace_path(namespace, "inactiveTopicPolicies"),
            namespace,
            About.NAMESPACE,
            body=policy,
            right=_ADMIN,
        )
        await self._http.send(call)

    async def replication_clusters(self, namespace: str) -> frozenset[str]:
        """Clusters the namespace is replicated to, the local one included."""
        call = self._call("replication", namespace)
        return frozenset(texts_of(await self._http.send(call), call.what))

    async def max_topics(self, namespace: str) -> int | None:
        """`maxTopicsPerNamespace`; None when the namespace sets none (0 or less means no limit)."""
        return _integer(await self._get("maxTopicsPerNamespace", namespace))

    async def compaction_threshold_bytes(self, namespace: str) -> int | None:
        """Backlog at which topics are compacted; None when the namespace sets none, 0 when it is off."""
        return _integer(await self._get("compactionThreshold", namespace))

    async def subscription_expiration_minutes(self, namespace: str) -> int | None:
        """Idle minutes after which cursors are deleted; None when the namespace sets none, 0 when never."""
        return _integer(await self._get("subscriptionExpirationTime", namespace))

    async def retention_minutes(self, namespace: str) -> int | None:
        """Retention time; negative for ever, None when the namespace sets none."""
        return await self._read(
            "retention",
            namespace,
            lambda found: int(found["retentionTimeInMinutes"]) if isinstance(found, dict) else None,
        )

    async def auto_scale_policy(self, namespace: str) -> dict[str, Any] | None:
        """The namespace's auto-scale policy for scalable topics of the brokers (Pulsar 5); None if it has none."""
        found = await self._get("scalableTopicAutoScalePolicy", namespace)
        return found if isinstance(found, dict) and found else None

    async def set_auto_scale_policy(self, namespace: str, override: Mapping[str, Any] | None) -> None:
        """Store it as a whole, or take it away; quiet when it is gone."""
        call = Call(
            "set-scalableTopicAutoScalePolicy" if override is not None else "remove-scalableTopicAutoScalePolicy",
            "POST" if override is not None else "DELETE",
            namespace_path(namespace, "scalableTopicAutoScalePolicy"),
            namespace,
            About.NAMESPACE,
            body=dict(override) if override is not None else None,
            right=_ADMIN,
        )
        await self._http.send(call)

    async def auto_topic_creation(self, namespace: str) -> bool | None:
        """Whether clients create missing topics; None when the namespace leaves it to the broker."""
        found = await self._get("autoTopicCreation", namespace)
        return bool(found.get("allowAutoTopicCreation")) if isinstance(found, dict) else None

    async def _get(self, name: str, namespace: str) -> Any:
        return await self._read(name, namespace, lambda found: found)

    async def _read(self, name: str, namespace: str, reader: Callable[[Any], T]) -> T:
        call = self._call(name, namespace)
        return (await self._http.send(call)).read(call.what, reader)

    def _call(self, name: str, namespace: str) -> Call:
        path = namespace_path(namespace, name)
        return Call(f"get-namespace-{name}", "GET", path, namespace, About.NAMESPACE, right=_ADMIN)

    def _policies_call(self, namespace: str) -> Call:
        """Of the document that holds the grants of all topics."""
        path = namespace_path(namespace)
        return Call("get-namespace-policies", "GET", path, namespace, About.NAMESPACE, right=_ADMIN, is_large=True)


def _integer(found: Any) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) else None
