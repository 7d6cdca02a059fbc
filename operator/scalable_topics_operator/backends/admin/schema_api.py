"""Calls about the schemas of one topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scalable_topics_operator.backends.admin.call import Call
from scalable_topics_operator.backends.admin.http import AdminHttp
from scalable_topics_operator.backends.admin.paths import schema_path
from scalable_topics_operator.backends.admin.reasons import About
from scalable_topics_operator.operations.errors import BackendRefused


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """One schema version as the broker keeps it.

    Args:
        version: its number, from 0.
        type: type name of the admin API.
        data: the definition as text.
        properties: the schema's properties.
    """

    version: int
    type: str
    data: str
    properties: Mapping[str, str]


class SchemaIncompatible(BackendRefused):
    """The topic's compatibility strategy forbids a schema version."""


class SchemaApi:
    """Calls about the schemas of one topic, named by its full `persistent://` name."""

    def __init__(self, http: AdminHttp) -> None:
        self._http = http

    async def versions(self, topic: str) -> list[StoredSchema]:
        """All versions, oldest first; empty for a topic without schema and for a missing topic."""
        call = Call("list-schemas", "GET", schema_path(topic, "schemas"), topic, About.TOPIC, right="consume")

        def read(found: Any) -> list[StoredSchema]:
            return [
                StoredSchema(
                    version=int(entry["version"]),
                    type=str(entry["type"]),
                    data=str(entry.get("data") or ""),
                    properties={str(key): str(value) for key, value in (entry.get("properties") or {}).items()},
                )
                for entry in (found or {}).get("getSchemaResponses") or ()
            ]

        versions = (await self._http.send(call)).read(call.what, read)
        return sorted(versions, key=lambda schema: schema.version)

    async def post(self, topic: str, type_: str, data: str, properties: Mapping[str, str]) -> int:
        """Add a version, or find the equal one; its number. Accepted for a missing topic too (measured).

        Raises SchemaIncompatible, BackendRefused for a malformed definition.
        """
        call = Call(
            "post-schema",
            "POST",
            schema_path(topic, "schema"),
            topic,
            About.TOPIC,
            body={"type": type_, "schema": data, "properties": dict(properties)},
            allow=frozenset({409}),
            right="produce",
        )
        answer = await self._http.send(call)
        if answer.status == 409:
            raise SchemaIncompatible(f"{call.what}: {answer.reason}")
        return answer.read(call.what, lambda found: int(found["version"]["version"]))
