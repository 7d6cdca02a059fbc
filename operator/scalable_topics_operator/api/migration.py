"""What is recorded and reported of migrations of ordinary topics (pip-475)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from scalable_topics_operator.api.common import ApiModel
from scalable_topics_operator.api.schema_extra import LIST_ATOMIC


class CarriedPolicies(ApiModel):
    """Topic policies that the ordinary topic had: of each partition, if there were any."""

    message_ttl_seconds: int | None = None
    """Time to live of messages."""
    retention_minutes: int | None = None
    """How long acknowledged messages stay; -1 for ever."""
    retention_megabytes: int | None = None
    """How much of them stays; -1 without bound."""
    backlog_quota_bytes: int | None = None
    """Backlog at which backlogQuotaAction applies."""
    backlog_quota_action: str | None = None
    """What happens then."""
    publish_messages_per_second: int | None = None
    """Publish rate limit; -1 without bound."""
    publish_bytes_per_second: int | None = None
    """Publish rate limit in bytes; -1 without bound."""
    dispatch_messages_per_second: int | None = None
    """Dispatch rate limit; -1 without bound."""
    dispatch_bytes_per_second: int | None = None
    """Dispatch rate limit in bytes; -1 without bound."""
    schema_compatibility_strategy: str | None = None
    """Which schemas may follow which."""
    deduplication: bool | None = None
    """Whether brokers drop messages that were sent twice."""


class CarriedSubscription(ApiModel):
    """A subscription that the ordinary topic had."""

    name: str
    """Its name."""
    kind: Literal["Stream", "Queue", "Unknown"]
    """What it was taken for by its consumers; Unknown if none was attached."""


class MigratedFrom(ApiModel):
    """The ordinary topic that the scalable topic was (pip-475 §4)."""

    partitions: int
    """Its partition count; 0 if it was not partitioned."""
    at_ms: int
    """When it was migrated, in milliseconds since 1970."""
    properties: Mapping[str, str] = {}
    """Its properties, which stay the topic's."""
    policies: CarriedPolicies | None = None
    """Topic policies it had, which count where the spec asks for nothing else."""
    subscriptions: Annotated[tuple[CarriedSubscription, ...], LIST_ATOMIC] = ()
    """Subscriptions it had."""


class MigrationStatus(ApiModel):
    """A migration under way."""

    source: MigratedFrom
    """What is migrated."""
    force: bool = False
    """Whether clients that do not know scalable topics are cut off."""


class Obstacle(ApiModel):
    """Why a topic cannot be migrated as things are."""

    reason: str
    """In one CamelCase word."""
    message: str
    """Why and what to do."""


class ReportedSubscription(ApiModel):
    """A subscription that would be carried over."""

    name: str
    """Its name."""
    kind: Literal["Stream", "Queue", "Unknown"]
    """What it is taken for by its consumers; Unknown while none is attached."""
    backlog_entries: int
    """Entries it has not acknowledged."""


class ReportedClient(ApiModel):
    """An attached client that does not know scalable topics."""

    role: Literal["Producer", "Consumer"]
    """What it is."""
    topic: str
    """The topic or partition it is attached to."""
    name: str = ""
    """Its name."""
    address: str = ""
    """Where it connects from."""
    version: str = ""
    """Its client library, as it says."""
    subscription: str = ""
    """Of a consumer."""


class MigrationReport(ApiModel):
    """What a migration would meet: the report of a dry run."""

    partitions: int
    """Partitions; 0 if it is not partitioned."""
    entries: int
    """Entries that stay where they are."""
    storage_bytes: int
    """Their size."""
    subscriptions: Annotated[tuple[ReportedSubscription, ...], LIST_ATOMIC] = ()
    """Subscriptions that are carried over with their positions."""
    client_count: int = 0
    """Attached clients that do not know scalable topics."""
    clients: Annotated[tuple[ReportedClient, ...], LIST_ATOMIC] = ()
    """The first 20 of them."""
    properties: Annotated[tuple[str, ...], LIST_ATOMIC] = ()
    """Names of properties that are carried over."""
    policies: CarriedPolicies | None = None
    """Topic policies that are carried over."""
    policies_not_carried: Annotated[tuple[str, ...], LIST_ATOMIC] = ()
    """Topic policies that are not."""
    schemas: int = 0
    """Versions of its schema, which are carried over."""
    obstacles: Annotated[tuple[Obstacle, ...], LIST_ATOMIC] = ()
    """Why it cannot be migrated as things are; empty if it can."""
