"""R24: a namespace that two clusters share, on a broker of its own, since all that it serves know of the second."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dev.instance import LocalCluster, Shape
from scalable_topics.layout import TopicName
from scalable_topics_operator.backends.classic import ClassicBackend
from scalable_topics_operator.operations.errors import NamespaceMissing, Unsupported

from .plain_http import PlainHttp, admin_for


async def test_r24_what_is_replicated_is_unfit_until_it_is_not(local_cluster: Callable[[Shape], LocalCluster]) -> None:
    """Hazard A6-25601."""
    access = local_cluster(Shape(kubernetes=False)).pulsar.access
    plain = PlainHttp(access.admin_url, access.superuser_token)
    topic = TopicName("public", "fitness", "orders")
    await plain.do("PUT", f"namespaces/{topic.pulsar_namespace}")
    (here,) = await plain.get(f"namespaces/{topic.pulsar_namespace}/replication")
    await plain.do("PUT", "clusters/elsewhere", {"serviceUrl": "http://127.0.0.1:1"})
    tenant = await plain.get("tenants/public")
    await plain.do("POST", "tenants/public", {**tenant, "allowedClusters": [here, "elsewhere"]})
    async with admin_for(access, access.superuser_token) as admin:
        backend = ClassicBackend(admin)
        await backend.require_fit(topic, more_topics=3)
        await plain.do("POST", f"namespaces/{topic.pulsar_namespace}/replication", [here, "elsewhere"])
        with pytest.raises(Unsupported, match="namespace public/fitness is replicated to"):
            await backend.require_fit(topic, more_topics=3)
        await plain.do("POST", f"namespaces/{topic.pulsar_namespace}/replication", [here])
        await backend.require_fit(topic, more_topics=3)
        with pytest.raises(NamespaceMissing):
            await backend.require_fit(TopicName("public", "nowhere", "orders"), more_topics=3)
