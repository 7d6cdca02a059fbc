"""Brokers that are asked for callers: any replica does, since nothing is changed by it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.connections import ConnectionHandle
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.views import Connections
from scalable_topics_operator.operations.errors import BackendError, BackendUnavailable
from scalable_topics_operator.operations.protocols import TopicBackend

_ANSWER_SECONDS = 15.0


class Brokers:
    """Finds the brokers of a connection.

    Args:
        connections: the Pulsar clusters.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def of(self, connection: ObjectKey) -> TopicBackend:
        """Those that a connection leads to. Raises Refusal: 503 while they cannot be asked."""
        backend = self._up(connection).backend
        assert backend is not None
        return backend

    def admin_of(self, connection: ObjectKey) -> PulsarAdmin:
        """Their admin API, for what only some brokers have. Raises Refusal: 503 while they cannot be asked."""
        return self._up(connection).admin

    def _up(self, connection: ObjectKey) -> ConnectionHandle:
        handle = self._connections.handle(connection)
        if handle is None or handle.backend is None or handle.problem:
            why = handle.problem if handle is not None else "it does not exist, or was not looked at yet"
            raise Refusal(503, f"connection {connection.namespace}/{connection.name}: {why}")
        return handle


@asynccontextmanager
async def answering() -> AsyncIterator[None]:
    """What is asked of brokers within is answered in time, or raises Refusal: 503, or 409 where they refuse to tell."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            yield
    except (BackendUnavailable, TimeoutError) as error:
        raise Refusal(503, f"the brokers do not answer: {str(error) or 'no answer in time'}; try again") from None
    except BackendError as error:
        raise Refusal(409, f"the brokers refuse to tell: {error}") from None
