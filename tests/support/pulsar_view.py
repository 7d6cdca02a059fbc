"""What the brokers really have, asked over plain HTTP and not through the code under test."""

from __future__ import annotations

import json
from typing import Any, Self
from urllib.parse import quote

import aiohttp

from tests.support.waiting import eventually

_OK = 300


class PulsarView:
    """A bare admin client for assertions and for what a user might do behind the operator's back."""

    def __init__(self, admin_url: str, token: str) -> None:
        self._base = admin_url.rstrip("/") + "/admin/v2/"
        self._token = token
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # Only to brokers of the test's own cluster, so redirects may be followed with the token.
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {self._token}"}, timeout=aiohttp.ClientTimeout(total=20)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(self, method: str, path: str, body: Any = None, *, allow: tuple[int, ...] = ()) -> Any:
        """One call; answers the JSON body, or the status if it is in `allow`."""
        answer = await self._send(method, self._base + path, body, allow)
        return json.loads(answer) if isinstance(answer, str) and answer else answer or None

    async def _send(self, method: str, url: str, body: Any, allow: tuple[int, ...] = ()) -> str | int:
        if self._session is None:
            raise RuntimeError("use PulsarView as a context manager")
        for _ in range(5):
            async with self._session.request(method, url, json=body, allow_redirects=False) as response:
                if response.status == 307:
                    url = response.headers["Location"]
                    continue
                if response.status in allow:
                    return response.status
                text = await response.text()
                if response.status >= _OK:
                    raise AssertionError(f"{method} {url}: {response.status} {text[:300]}")
                return text
        raise AssertionError(f"{method} {url}: redirected in circles")

    async def topics(self, namespace: str) -> list[str]:
        """Names of all topics in a namespace, sorted, without system topics."""
        names: list[str] = await self.call("GET", f"persistent/{namespace}")
        return sorted(name for name in names if "__" not in name.rsplit("/", 1)[1])

    async def exists(self, topic: str) -> bool:
        """Whether a topic exists; asking does not make it."""
        return topic in await self.call("GET", f"persistent/{'/'.join(topic.split('/')[2:4])}")

    async def properties(self, topic: str) -> dict[str, str]:
        """Properties of a topic."""
        found: dict[str, str] = await self.call("GET", f"{_path(topic)}/properties")
        return found

    async def subscriptions(self, topic: str) -> list[str]:
        """Names of a topic's cursors, sorted."""
        return sorted(await self.call("GET", f"{_path(topic)}/subscriptions"))

    async def internal(self, topic: str) -> dict[str, Any]:
        """Internal statistics: state, ledgers, cursors."""
        found: dict[str, Any] = await self.call("GET", f"{_path(topic)}/internalStats")
        return found

    async def terminated(self, topic: str) -> bool:
        """Whether the broker says the topic takes no more messages."""
        return bool((await self.internal(topic))["state"] == "Terminated")

    async def stats(self, topic: str) -> dict[str, Any]:
        """Statistics of a topic."""
        found: dict[str, Any] = await self.call("GET", f"{_path(topic)}/stats?getPreciseBacklog=true")
        return found

    async def entry_headers(self, topic: str, ledger_id: int, entry_id: int) -> dict[str, str]:
        """What the broker tells of one stored entry in headers of its answer."""
        if self._session is None:
            raise RuntimeError("use PulsarView as a context manager")
        url = f"{self._base}{_path(topic)}/ledger/{ledger_id}/entry/{entry_id}"
        async with self._session.get(url) as response:
            assert response.status < _OK, f"{topic} {ledger_id}:{entry_id}: {response.status}"
            return dict(response.headers)

    async def create_topic(self, topic: str, properties: dict[str, str] | None = None) -> None:
        """Create an ordinary topic."""
        await self.call("PUT", _path(topic), properties or {})

    async def make_topic(self, topic: str) -> None:
        """Create an ordinary topic, unless a client has made it by using it, perhaps at this very moment."""
        await self.call("PUT", _path(topic), {}, allow=(409,))

    async def terminate(self, topic: str) -> Any:
        """Seal a topic."""
        return await self.call("POST", f"{_path(topic)}/terminate")

    async def deduplicate(self, topic: str) -> None:
        """Have the broker drop what producers send again; returns once it does."""
        await self.call("POST", f"{_path(topic)}/deduplicationEnabled", True)

        async def status() -> str:
            return str((await self.stats(topic))["deduplicationStatus"])

        await eventually(status, lambda found: found == "Enabled", what=f"deduplication of {topic} is on")

    async def trim(self, topic: str) -> None:
        """Have the broker delete ledgers that nobody and no retention needs."""
        await self.call("POST", f"{_path(topic)}/trim")

    async def unload_topic(self, topic: str) -> None:
        """Have the broker let go of a topic; it is loaded again when it is used."""
        await self.call("PUT", f"{_path(topic)}/unload")

    async def delete_topic(self, topic: str, *, force: bool = False) -> None:
        """Delete a topic."""
        await self.call("DELETE", f"{_path(topic)}?force={str(force).lower()}")

    async def create_partitioned(self, topic: str, partitions: int) -> None:
        """Create an ordinary topic with partitions."""
        await self.call("PUT", f"{_path(topic)}/partitions", partitions)

    async def partitions(self, topic: str) -> int:
        """How many partitions a topic has; 0 if it is not partitioned or does not exist."""
        found = await self.call("GET", f"{_path(topic)}/partitions", allow=(404,))
        return 0 if isinstance(found, int) else int(found["partitions"])

    async def delete_partitioned(self, topic: str) -> None:
        """Delete a topic with partitions, whoever is attached to it."""
        await self.call("DELETE", f"{_path(topic)}/partitions?force=true")

    async def set_partitions(self, topic: str, partitions: int) -> None:
        """Give an ordinary topic more partitions."""
        await self.call("POST", f"{_path(topic)}/partitions", partitions)

    async def create_subscription(self, topic: str, name: str) -> None:
        """Make a durable cursor at the earliest entry."""
        await self.call("PUT", f"{_path(topic)}/subscription/{quote(name, safe='')}", "earliest")

    async def delete_subscription(self, topic: str, name: str) -> None:
        """Delete a cursor."""
        await self.call("DELETE", f"{_path(topic)}/subscription/{quote(name, safe='')}?force=true")

    async def skip_all(self, topic: str, name: str) -> None:
        """Acknowledge everything for a subscription."""
        await self.call("POST", f"{_path(topic)}/subscription/{quote(name, safe='')}/skip_all")

    async def set_properties(self, topic: str, properties: dict[str, str]) -> None:
        """Set properties of a topic beside those it has."""
        await self.call("PUT", f"{_path(topic)}/properties", properties)

    async def policy(self, topic: str, name: str) -> Any:
        """A topic-level policy as the admin API names it; None if the topic has none."""
        return await self.call("GET", f"{_path(topic)}/{name}")

    async def remove_policy(self, topic: str, name: str) -> None:
        """Remove a topic-level policy."""
        await self.call("DELETE", f"{_path(topic)}/{name}")

    async def grants(self, topic: str) -> dict[str, list[str]]:
        """What roles may do on a topic, each sorted."""
        found = await self.call("GET", f"{_path(topic)}/permissions")
        return {role: sorted(actions) for role, actions in found.items()}

    async def grant(self, topic: str, role: str, *actions: str) -> None:
        """Grant a role actions on the topic itself."""
        await self.call("POST", f"{_path(topic)}/permissions/{role}", list(actions))

    async def add_schema(self, topic: str, kind: str, definition: str, properties: dict[str, str]) -> None:
        """Register a schema version."""
        path = _path(topic).replace("persistent/", "schemas/", 1)
        body = {"type": kind, "schema": definition, "properties": properties}
        await self.call("POST", f"{path}/schema", body)

    async def schemas(self, topic: str) -> list[tuple[str, str, dict[str, str]]]:
        """Type, definition and properties of every schema version, oldest first."""
        path = _path(topic).replace("persistent/", "schemas/", 1)
        found = await self.call("GET", f"{path}/schemas")
        versions = sorted(found["getSchemaResponses"], key=lambda version: int(version["version"]))
        return [(version["type"], version["data"], version["properties"]) for version in versions]

    async def compact(self, topic: str) -> None:
        """Start a compaction."""
        await self.call("PUT", f"{_path(topic)}/compaction")

    async def compaction_status(self, topic: str) -> str:
        """NOT_RUN, RUNNING, SUCCESS or ERROR."""
        return str((await self.call("GET", f"{_path(topic)}/compaction"))["status"])

    async def unload_namespace(self, namespace: str) -> None:
        """Make the brokers close all topics of a namespace."""
        await self.call("PUT", f"namespaces/{namespace}/unload", {})

    async def bundle(self, topic: str) -> str:
        """The bundle of its namespace that a topic is in."""
        url = self._base.removesuffix("admin/v2/") + f"lookup/v2/topic/{topic.replace('://', '/')}/bundle"
        return str(await self._send("GET", url, None)).strip('"')

    async def move_bundle(self, namespace: str, bundle: str, broker: str) -> None:
        """Have a broker, by `host:port`, take over a bundle."""
        await self.call("PUT", f"namespaces/{namespace}/{bundle}/unload?destinationBroker={broker}", {})

    async def create_namespace(self, namespace: str) -> None:
        """Create a Pulsar namespace in an existing tenant."""
        await self.call("PUT", f"namespaces/{namespace}", {"bundles": {"numBundles": 4}}, allow=(409,))


def _path(topic: str) -> str:
    domain, _, rest = topic.partition("://")
    tenant, namespace, local = rest.split("/", 2)
    return f"{domain}/{tenant}/{namespace}/{quote(local, safe='')}"
