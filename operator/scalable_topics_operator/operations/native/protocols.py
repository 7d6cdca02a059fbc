"""What operations need of brokers that own the layouts of scalable topics (DESIGN §1, Native).

Nothing here does I/O; `backends.native` implements `ScalableBackend` over `/admin/v2/scalable`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from scalable_topics.layout import Segment, SegmentLayout, TopicName
from scalable_topics_operator.operations.protocols import Claim


@dataclass(frozen=True, slots=True)
class NativeTopic:
    """A scalable topic as the brokers' record of it says.

    Args:
        layout: its segments; what brokers do not tell of them (who made them, merge depth) is guessed from parents.
        properties: the user's.
        claim: whose it is; None where it was made by somebody else than an operator.
        override: the auto-scale policy stored with it; None if it has none of its own.
    """

    layout: SegmentLayout
    properties: Mapping[str, str] = field(default_factory=dict)
    claim: Claim | None = None
    override: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class NativeSubscription:
    """A subscription as brokers show it.

    Args:
        kind: `STREAM` or `QUEUE`.
        backlog: messages not acknowledged, over all segments.
        consumers: consumers attached or assigned.
        uncovered: segments of which no broker told anything, so that the backlog may be more.
    """

    kind: str
    backlog: int
    consumers: int
    uncovered: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LastOperation:
    """The last change of the layout that the brokers' controller made or tried.

    Args:
        kind: `split`, `merge`, `rebucket` or `prune`.
        trigger: `auto` or `manual`.
        segment_ids: segments it was about.
        succeeded: whether it did.
        error: what went wrong.
    """

    kind: str
    trigger: str
    segment_ids: tuple[int, ...]
    succeeded: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class NativeLook:
    """A scalable topic as its brokers show it now.

    Args:
        producers: names of the producers attached.
        subscriptions: by name.
        terminated: segments that refuse messages.
        last_operation: the last change, while the broker that made it remembers.
        policy: the auto-scale policy that brokers go by; None where automatic changes are off.
    """

    producers: frozenset[str]
    subscriptions: Mapping[str, NativeSubscription]
    terminated: frozenset[int] = frozenset()
    last_operation: LastOperation | None = None
    policy: Mapping[str, Any] | None = None

    @property
    def consumers(self) -> int:
        """Consumers attached over all subscriptions."""
        return sum(found.consumers for found in self.subscriptions.values())


class ScalableBackend(Protocol):
    """One Pulsar cluster whose brokers own the layouts of scalable topics.

    All methods raise `BackendError` subclasses and nothing else for what the broker or the network does. Those that
    change a layout are sent once: after `BackendUnavailable` nobody knows whether it was done, and the layout tells.
    """

    @property
    def kind(self) -> str:
        """`Native` (R2)."""

    async def read(self, topic: TopicName) -> NativeTopic | None:
        """The brokers' record; None if there is none. Raises BackendRefused for one that cannot be read."""

    async def look(self, topic: TopicName) -> NativeLook:
        """The topic as its brokers show it. Raises TopicMissing."""

    async def require_creatable(self, topic: TopicName) -> None:
        """Make sure that brokers would not take the name over something else: they do not look themselves.

        Raises NamespaceMissing where tenant or namespace do not exist, NameTaken where an ordinary topic, or one
        that the operator made on its own, has the name.
        """

    async def create(self, topic: TopicName, segments: int, claim: Claim, properties: Mapping[str, str]) -> bool:
        """Make a topic that carries our claim and the user's properties; False if one of that name exists."""

    async def split(self, topic: TopicName, segment_id: int) -> None:
        """Have an active segment split in two halves."""

    async def merge(self, topic: TopicName, first_id: int, second_id: int) -> None:
        """Have two touching active segments merged."""

    async def rebucket(self, topic: TopicName, segment_id: int, buckets: int) -> None:
        """Have an active segment replaced by one with so many entry buckets."""

    async def migrate(self, topic: TopicName, *, force: bool) -> None:
        """Make the ordinary topic of that name scalable; `force` cuts off clients that do not know scalable topics.

        Raises TopicMissing, BackendRefused where such clients are attached or it is scalable already.
        """

    async def create_subscription(self, topic: TopicName, name: str, *, ordered: bool = False) -> None:
        """Make a subscription at earliest on every active segment; one that exists stays what it is."""

    async def delete_subscription(self, topic: TopicName, name: str) -> None:
        """Delete a subscription on every segment; quiet when it is gone."""

    async def seek(self, topic: TopicName, name: str, to_ms: int) -> None:
        """Move a subscription to a time, milliseconds since 1970."""

    async def skip_all(self, topic: TopicName, name: str) -> None:
        """Move a subscription behind everything there is."""

    async def set_override(self, topic: TopicName, override: Mapping[str, Any] | None) -> None:
        """Store the topic's own auto-scale policy as a whole, or take it away. Raises BackendRefused."""

    async def namespace_override(self, pulsar_namespace: str) -> Mapping[str, Any] | None:
        """The auto-scale policy stored with a Pulsar namespace; None if there is none. Raises NamespaceMissing."""

    async def set_namespace_override(self, pulsar_namespace: str, override: Mapping[str, Any] | None) -> None:
        """Store it as a whole, or take it away. Raises NamespaceMissing, BackendRefused."""

    async def permissions(self, topic: TopicName) -> Mapping[str, frozenset[str]]:
        """Role -> actions granted on the topic itself."""

    async def grant(self, topic: TopicName, role: str, actions: frozenset[str]) -> None:
        """Set what a role may do on the topic itself."""

    async def revoke(self, topic: TopicName, role: str) -> None:
        """Take away what a role may do on the topic itself."""

    async def delete(self, topic: TopicName, segments: Sequence[Segment]) -> None:
        """Delete the topic with whoever uses it, then what may be left of these segments; quiet when it is gone."""
