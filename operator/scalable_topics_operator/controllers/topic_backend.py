"""Who owns the layout of a topic: the operator (Classic) or the brokers (Native), chosen once (R2)."""

from __future__ import annotations

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.controllers.connections import CLASSIC, NATIVE, ConnectionHandle


def backend_of_topic(body: Body) -> str:
    """Who owns the layout of a ScalableTopic that has one, as its status says."""
    return wanted_backend(body, None)


def wanted_backend(body: Body, handle: ConnectionHandle | None) -> str:
    """The backend of a ScalableTopic, or the one that it will have where it is not made yet.

    Args:
        body: the object.
        handle: of its connection, which says what new topics become; None if that is not known.
    """
    recorded = (body.get("status") or {}).get("backend")
    return str(recorded or (handle.backend_of_new if handle is not None else CLASSIC))


def is_native(body: Body, handle: ConnectionHandle | None = None) -> bool:
    """Whether brokers own the layout of a ScalableTopic, or will; see `wanted_backend`."""
    return wanted_backend(body, handle) == NATIVE
