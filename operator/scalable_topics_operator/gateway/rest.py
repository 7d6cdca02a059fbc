"""The admin REST put together (pip-468, pip-475, pip-483; R32)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from aiohttp import web

from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import POLICIES, SEGMENT_OPERATIONS, TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.policy_book import PolicyBook
from scalable_topics_operator.controllers.subscription_wishes import SubscriptionWishes
from scalable_topics_operator.gateway.acting import CallerWrites
from scalable_topics_operator.gateway.brokers import Brokers
from scalable_topics_operator.gateway.console_handlers import ConsoleHandlers
from scalable_topics_operator.gateway.declaring import TopicDeclarations
from scalable_topics_operator.gateway.glance_handlers import GlanceHandlers
from scalable_topics_operator.gateway.looks import SegmentLooks
from scalable_topics_operator.gateway.mappings import Mappings
from scalable_topics_operator.gateway.migration_handlers import MigrationHandlers
from scalable_topics_operator.gateway.operation_handlers import OperationHandlers
from scalable_topics_operator.gateway.operation_making import OperationMaker
from scalable_topics_operator.gateway.other_handlers import OtherHandlers
from scalable_topics_operator.gateway.parts import GatewayParts
from scalable_topics_operator.gateway.policy_handlers import PolicyHandlers
from scalable_topics_operator.gateway.rest_call import RestAdmission, serve
from scalable_topics_operator.gateway.segment_handlers import SegmentHandlers
from scalable_topics_operator.gateway.subscription_handlers import SubscriptionHandlers
from scalable_topics_operator.gateway.topic_handlers import TopicHandlers
from scalable_topics_operator.gateway.view_handlers import ViewHandlers
from scalable_topics_operator.gateway.views import Connections, LoadSource, TopicViews
from scalable_topics_operator.gateway.waiting import WAIT_SECONDS, ObjectWaits


@dataclass(frozen=True, slots=True)
class RestSources:
    """What the REST asks and tells.

    Args:
        kube: the API server.
        cache: the objects.
        connections: the topics' Pulsar clusters.
        book: which policies apply to which topic.
        wishes: what is asked of subscriptions.
        peer_token: of the installation's replicas.
        views: what this replica can tell of the topics it leads; None while there is nothing that could.
        load: what this replica has sampled; None while it samples nothing.
        writes: whether callers may write.
        console: whether there is a console.
        migration_enabled: whether ordinary topics are migrated.
        namespaces: Kubernetes namespaces that this operator watches; empty for all.
        wait_seconds: how long callers wait for what they have asked for.
    """

    kube: KubeClient
    cache: ObjectCache
    connections: Connections
    book: PolicyBook
    wishes: SubscriptionWishes
    peer_token: str
    views: TopicViews | None = None
    load: LoadSource | None = None
    writes: bool = True
    console: bool = True
    migration_enabled: bool = True
    namespaces: Collection[str] = ()
    wait_seconds: float = WAIT_SECONDS


def rest_routes(sources: RestSources, parts: GatewayParts) -> Iterable[web.RouteDef]:
    """All routes of the table but those of other modules."""
    kube, cache = sources.kube, sources.cache
    admission = RestAdmission(parts.access, parts.directory, cache)
    writes = CallerWrites(kube, enabled=sources.writes)
    waits = ObjectWaits(cache, (TOPICS, SEGMENT_OPERATIONS, POLICIES), sources.wait_seconds)
    parts.endings.append(waits.close)
    mappings, brokers = Mappings(cache), Brokers(sources.connections)
    looks, operations = SegmentLooks(brokers), OperationMaker(writes, waits)
    declarations = TopicDeclarations(writes, waits, mappings, cache, sources.namespaces)
    policies = PolicyHandlers(admission, writes, waits, mappings, cache, sources.book, kube)
    topics = TopicHandlers(admission, writes, waits, mappings, cache, looks, policies, declarations, parts.ordinary)
    subscriptions = SubscriptionHandlers(
        admission, writes, waits, cache, looks, sources.wishes, parts.leaders, parts.forwarding
    )
    migrations = MigrationHandlers(
        admission, writes, operations, declarations, brokers, sources.book, enabled=sources.migration_enabled
    )
    bound = (
        *topics.bound(),
        *ViewHandlers(admission, parts.leaders, parts.forwarding, sources.views, looks).bound(),
        *subscriptions.bound(),
        *OperationHandlers(admission, operations, parts.ordinary, waits).bound(),
        *migrations.bound(),
        *policies.bound(),
        *SegmentHandlers(admission, looks).bound(),
        *GlanceHandlers(admission, cache, writes=sources.writes).bound(),
    )
    yield from serve(bound, admission)
    yield from OtherHandlers(sources.peer_token, sources.load).routes()
    yield from ConsoleHandlers(enabled=sources.console).routes()
