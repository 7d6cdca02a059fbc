"""One test's part of brokers that own the layouts of scalable topics, asked over plain HTTP."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from scalable_topics.layout import SegmentLayout, from_pip468
from scalable_topics_operator.cluster.kube_client import Body
from tests.support import manifests
from tests.support.waiting import eventually
from tests.support.world import NATIVE_CONNECTION, World


@dataclass(frozen=True, slots=True)
class NativeWorld:
    """A user's view of a cluster of Pulsar 5.

    Args:
        world: what is the same with any brokers.
    """

    world: World

    def topic(
        self, name: str, *, initial: int = 1, subscriptions: Iterable[str | dict[str, str]] = (), **spec: Any
    ) -> manifests.Manifest:
        """A manifest of a topic in the test's own Pulsar namespace."""
        return manifests.topic(
            name,
            self.name(name),
            connection_name=spec.pop("connection_name", NATIVE_CONNECTION),
            initial=initial,
            subscriptions=subscriptions,
            **spec,
        )

    async def make(self, name: str, **options: Any) -> Body:
        """Declare a topic and wait until it is Ready."""
        await self.world.apply(self.topic(name, **options))
        return await self.world.until_ready(name)

    def name(self, local: str) -> str:
        """`topic://` name of a topic."""
        return f"topic://{self.world.pulsar_namespace}/{local}"

    async def call(self, method: str, local: str, rest: str = "", body: Any = None, allow: tuple[int, ...] = ()) -> Any:
        """One call of the brokers' own admin API of scalable topics."""
        path = f"scalable/{self.world.pulsar_namespace}/{local}{rest}"
        return await self.world.pulsar.call(method, path, body, allow=allow)

    async def record(self, local: str) -> dict[str, Any] | None:
        """The brokers' record of a topic; None if they have none."""
        found = await self.call("GET", local, allow=(404,))
        return found if isinstance(found, dict) else None

    async def layout(self, local: str) -> SegmentLayout:
        """The brokers' own layout."""
        record = await self.record(local)
        assert record is not None, f"the brokers have no scalable topic {local}"
        return from_pip468(record)

    async def stats(self, local: str) -> dict[str, Any]:
        """The brokers' own statistics."""
        found: dict[str, Any] = await self.call("GET", local, "/stats")
        return found

    async def until_drained(self, local: str, *subscriptions: str) -> None:
        """Wait until these have acknowledged everything that is stored on any segment."""

        async def backlogs() -> dict[str, int]:
            known = (await self.stats(local))["subscriptions"]
            return {name: known[name]["msgBacklog"] for name in subscriptions}

        await eventually(
            backlogs, lambda found: not any(found.values()), what=f"backlogs of {local}", within_seconds=90
        )

    async def names(self) -> list[str]:
        """Scalable topics in the test's Pulsar namespace, as the brokers list them."""
        return sorted(await self.world.pulsar.call("GET", f"scalable/{self.world.pulsar_namespace}"))

    async def until_same(self, local: str) -> SegmentLayout:
        """Wait until the object tells of the layout that the brokers have; answers it."""

        async def both() -> tuple[SegmentLayout, SegmentLayout]:
            return await self.layout(local), await self.world.layout(local)

        def same(found: tuple[SegmentLayout, SegmentLayout]) -> bool:
            theirs, ours = found
            return theirs.epoch == ours.epoch and _shape(theirs) == _shape(ours)

        theirs, _ = await eventually(both, same, what=f"the object of {local} tells of the brokers' layout")
        return theirs


def _shape(layout: SegmentLayout) -> list[tuple[Any, ...]]:
    return [
        (one.segment_id, one.hash_range, one.state, one.parent_ids, one.buckets, one.created_at_ms)
        for one in layout.segments.values()
    ]
