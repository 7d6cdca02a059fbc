"""Policies of scope PulsarNamespace, stored with their namespaces at brokers that own layouts (pip-483, Native).

So they hold for topics there that no object declares, too. A topic that one does declare has all of its policy itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.parsed_policy import PULSAR_NAMESPACE, Subject
from scalable_topics_operator.controllers.policy_book import PolicyBook
from scalable_topics_operator.operations.errors import BackendError, NamespaceMissing
from scalable_topics_operator.operations.native.override import is_same, override_of
from scalable_topics_operator.operations.native.protocols import ScalableBackend


class NamespacePolicies:
    """Keeps them as policies say.

    Args:
        book: the policies.
    """

    def __init__(self, book: PolicyBook) -> None:
        self._book = book

    async def settle(
        self, connection: ObjectKey, backend: ScalableBackend, before: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Store what is wanted, and take away what the operator has stored and nobody wants any more.

        Args:
            connection: whose policies.
            backend: the brokers.
            before: `status.namespacePolicies` of the connection.

        Returns it as it is now. What cannot be told is told in it, and tried again the next time.
        """
        wanted = self._wanted(connection)
        known = {str(entry["pulsarNamespace"]) for entry in before}
        entries = []
        for namespace in sorted(known | wanted.keys()):
            problem = await _settle(backend, namespace, wanted.get(namespace))
            if namespace in wanted or problem:
                entries.append({"pulsarNamespace": namespace, **({"problem": problem} if problem else {})})
        return entries

    def _wanted(self, connection: ObjectKey) -> dict[str, Mapping[str, Any]]:
        policies = self._book.policies_in(connection.namespace)
        namespaces = {
            policy.pulsar_namespace
            for policy in policies
            if policy.scope == PULSAR_NAMESPACE and policy.connection == connection and policy.pulsar_namespace
        }
        found: dict[str, Mapping[str, Any]] = {}
        for namespace in namespaces:
            anybody = Subject(connection.namespace, "", connection, namespace, {})
            group = tuple(
                policy for policy in policies if policy.pulsar_namespace is not None and policy.applies_to(anybody)
            )
            override = override_of(self._book.resolved([policy.level for policy in group]))
            if override is not None:
                found[namespace] = override
        return found


async def _settle(backend: ScalableBackend, namespace: str, wanted: Mapping[str, Any] | None) -> str:
    """Why the brokers do not have what is wanted; empty if they do."""
    try:
        stored = await backend.namespace_override(namespace)
        if not is_same(stored, wanted):
            await backend.set_namespace_override(namespace, wanted)
    except NamespaceMissing:
        return "" if wanted is None else f"there is no Pulsar namespace {namespace}"
    except BackendError as error:
        return str(error)
    return ""
