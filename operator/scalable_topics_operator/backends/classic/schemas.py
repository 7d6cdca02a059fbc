"""Schema versions of segments (R28)."""

from __future__ import annotations

from collections.abc import Sequence

from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.admin.schema_api import StoredSchema
from scalable_topics_operator.operations.errors import BackendUnavailable
from scalable_topics_operator.operations.protocols import SchemaVersion


async def first_schemas(admin: PulsarAdmin, topics: Sequence[str]) -> tuple[SchemaVersion, ...]:
    """All schema versions, oldest first, of the first topic that has any."""
    for topic in topics:
        versions = await admin.schemas.versions(topic)
        if versions:
            return tuple(SchemaVersion(found.type, found.data, dict(found.properties)) for found in versions)
    return ()


async def ensure_schemas(admin: PulsarAdmin, topic: str, wanted: Sequence[SchemaVersion]) -> None:
    """Register the missing versions in order and read all of them back.

    Raises BackendRefused when the topic's compatibility strategy forbids one.
    """
    if not wanted:
        return
    found = await admin.schemas.versions(topic)
    if matches(found, wanted):
        return
    for version in wanted:
        await admin.schemas.post(topic, version.type, version.schema, version.properties)
    if not matches(await admin.schemas.versions(topic), wanted):
        raise BackendUnavailable(f"copying {len(wanted)} schema versions to {topic}: they do not read back in order")


def matches(found: Sequence[StoredSchema], wanted: Sequence[SchemaVersion]) -> bool:
    """Whether the versions found begin with the wanted ones, in order. Pure."""
    if len(found) < len(wanted):
        return False
    return all(
        one.type == other.type and one.data == other.schema and dict(one.properties) == dict(other.properties)
        for one, other in zip(found, wanted, strict=False)
    )
