"""Schema versions of segments (R28)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.admin.schema_api import SchemaIncompatible, StoredSchema
from scalable_topics_operator.backends.classic.policies import PolicyWriter
from scalable_topics_operator.operations.errors import BackendUnavailable
from scalable_topics_operator.operations.protocols import SchemaVersion
from scalable_topics_operator.operations.segment_policies import SegmentPolicies

log = logging.getLogger(__name__)

STRATEGY_FIELD = "schema_compatibility_strategy"
_ANY = SegmentPolicies(schema_compatibility_strategy="ALWAYS_COMPATIBLE")


async def first_schemas(admin: PulsarAdmin, topics: Sequence[str]) -> tuple[SchemaVersion, ...]:
    """All schema versions, oldest first, of the first topic that has any."""
    for topic in topics:
        versions = await admin.schemas.versions(topic)
        if versions:
            return tuple(SchemaVersion(found.type, found.data, dict(found.properties)) for found in versions)
    return ()


async def copy_schemas(admin: PulsarAdmin, policies: PolicyWriter, topic: str, wanted: Sequence[SchemaVersion]) -> None:
    """Register the missing versions of a new segment in order and read all of them back.

    A history that grew under a laxer strategy than today's is registered under `ALWAYS_COMPATIBLE`; the caller
    must apply the segment's own policies afterwards, naming `STRATEGY_FIELD` as managed.

    Raises BackendRefused for a malformed definition.
    """
    if not wanted or matches(await admin.schemas.versions(topic), wanted):
        return
    try:
        await _post_all(admin, topic, wanted)
    except SchemaIncompatible as error:
        log.info("copying the schemas of %s under ALWAYS_COMPATIBLE, because: %s", topic, error)
        await policies.apply(topic, _ANY, managed_before=frozenset())
        await _post_all(admin, topic, wanted)
    if not matches(await admin.schemas.versions(topic), wanted):
        raise BackendUnavailable(f"copying {len(wanted)} schema versions to {topic}: they do not read back in order")


async def _post_all(admin: PulsarAdmin, topic: str, wanted: Sequence[SchemaVersion]) -> None:
    for version in wanted:
        await admin.schemas.post(topic, version.type, version.schema, version.properties)


def matches(found: Sequence[StoredSchema], wanted: Sequence[SchemaVersion]) -> bool:
    """Whether the versions found begin with the wanted ones, in order. Pure."""
    if len(found) < len(wanted):
        return False
    return all(
        one.type == other.type and one.data == other.schema and dict(one.properties) == dict(other.properties)
        for one, other in zip(found, wanted, strict=False)
    )
