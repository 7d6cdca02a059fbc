"""What operations on a topic are handed whose layout the brokers own."""

from __future__ import annotations

from dataclasses import dataclass, fields

from scalable_topics_operator.operations.context import OperationContext, TopicContext
from scalable_topics_operator.operations.native.protocols import ScalableBackend


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeContext(TopicContext):
    """One topic whose layout the brokers own (Native).

    Args:
        backend: the Pulsar cluster.
        ordinary: the same topic among the cluster's ordinary ones, as which it may have begun (pip-475).
        max_history: segments pruned by the brokers that the record keeps at most.
    """

    backend: ScalableBackend
    ordinary: OperationContext
    max_history: int = 64

    @classmethod
    def around(cls, ordinary: OperationContext, backend: ScalableBackend) -> NativeContext:
        """The same topic as brokers have it that own its layout."""
        shared = {one.name: getattr(ordinary, one.name) for one in fields(TopicContext)}
        return cls(**shared, backend=backend, ordinary=ordinary)
