"""What replicas ask each other with the installation's own token."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from scalable_topics.layout.json_fields import parse_json
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.gateway.peer_transport import PeerTransport, PeerUnreachable

LOAD_PATH = "/internal/load"


class PeerError(Exception):
    """Another replica could not be asked about a connection; the message says which replica and connection."""


class PeerClient:
    """Asks other replicas, once: who needs an answer asks again anyway.

    Args:
        token: of the installation's replicas.
        transport: reaches them.
    """

    def __init__(self, token: str, transport: PeerTransport) -> None:
        self._authorization = f"Bearer {token}"
        self._transport = transport

    async def load(self, address: str, key: ObjectKey) -> Mapping[str, Any] | None:
        """The newest load samples of a connection; None if that replica has none.

        Args:
            address: host and port of the replica that samples the connection.
            key: the connection.

        Raises PeerError.
        """
        what = f"ask for the load of {key}"
        path = f"{LOAD_PATH}/{quote(key.namespace, safe='')}/{quote(key.name, safe='')}"
        try:
            answer = await self._transport.get(address, path, {"Authorization": self._authorization})
        except PeerUnreachable as error:
            raise PeerError(f"{what}: {error}") from None
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise PeerError(f"{what}: replica at {address} answered {answer.status}")
        try:
            # In a thread, as that of a large cluster takes a while.
            sample = await asyncio.to_thread(parse_json, answer.body)
        except ValueError:
            sample = None
        if not isinstance(sample, dict):
            raise PeerError(f"{what}: replica at {address} answered something else than a JSON object")
        return sample
