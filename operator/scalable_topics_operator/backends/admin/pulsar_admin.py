"""The typed admin client of one Pulsar cluster."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from scalable_topics_operator.backends.admin.cluster_api import ClusterApi, ClusterProbe
from scalable_topics_operator.backends.admin.http import AdminHttp
from scalable_topics_operator.backends.admin.lookup_api import LookupApi
from scalable_topics_operator.backends.admin.message_api import MessageApi
from scalable_topics_operator.backends.admin.namespace_api import NamespaceApi
from scalable_topics_operator.backends.admin.scalable_api import ScalableApi
from scalable_topics_operator.backends.admin.schema_api import SchemaApi
from scalable_topics_operator.backends.admin.topic_api import TopicApi
from scalable_topics_operator.backends.admin.topic_policy_api import TopicPolicyApi


class PulsarAdmin:
    """All calls the operator makes to a Pulsar cluster, grouped by what they are about.

    Args:
        http: the connection; closed with this object.
    """

    def __init__(self, http: AdminHttp) -> None:
        self.http = http
        self.cluster = ClusterApi(http)
        self.namespaces = NamespaceApi(http)
        self.topics = TopicApi(http)
        self.topic_policies = TopicPolicyApi(http)
        self.schemas = SchemaApi(http)
        self.messages = MessageApi(http)
        self.lookups = LookupApi(http)
        self.scalable = ScalableApi(http)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self.http.close()

    async def probe(self) -> ClusterProbe:
        """What cluster this is and what the credentials may do; see `ClusterApi.probe`."""
        return await self.cluster.probe()
