"""What the topic's reconcile does about subscriptions, in its turns, without a broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS
from scalable_topics_operator.controllers.ordered_subscriptions import declared_by_objects
from scalable_topics_operator.operations.context import DeclaredSubscription, OperationContext, TopicIntent
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase
from scalable_topics_operator.operations.subscriptions import wanted_subscriptions
from scalable_topics_operator.operations.topic_state import TopicState, read_state, write_state
from tests.unit.gateway.rest_world import RestWorld
from tests.unit.gateway.topics import KEY


@dataclass
class _Store:
    """Implements `TopicStore`."""

    world: RestWorld

    @property
    def state(self) -> TopicState:
        return read_state(self.world.topic["status"])

    async def commit(self, state: TopicState) -> None:
        body = self.world.topic
        self.world.kubernetes.set_status(body, write_state(body["status"], state))


@dataclass
class Reconcile:
    """Takes turns whenever it is woken.

    Args:
        world: with the topic.
        settles: whether cursors are made and deleted, too.
        loses: subscriptions whose cursors are lost when they would be made.
        turns: how often it had one.
    """

    world: RestWorld
    settles: bool = True
    loses: frozenset[str] = frozenset()
    turns: int = 0

    async def run(self) -> None:
        woken = self.world.replica.known.woken
        while True:
            await woken.wait()
            woken.clear()
            await self._turn()
            self.turns += 1

    async def _turn(self) -> None:
        store, wishes, cache = _Store(self.world), self.world.replica.wishes, self.world.replica.cache
        by_spec = {entry["name"]: DeclaredSubscription() for entry in self.world.topic["spec"].get("subscriptions", ())}
        intent = TopicIntent(subscriptions={**by_spec, **declared_by_objects(cache, KEY)})
        ctx = cast(OperationContext, SimpleNamespace(store=store, intent=intent))
        await wishes.grant(KEY, ctx)
        await wishes.drop_objects(KEY, self.world.topic)
        if self.settles:
            intent = TopicIntent(subscriptions={**by_spec, **declared_by_objects(cache, KEY)})
            await store.commit(self._settled(store.state, intent))

    def _settled(self, state: TopicState, intent: TopicIntent) -> TopicState:
        kept = {name: DeclaredSubscription(one.latest) for name, one in state.subscriptions.items() if one.is_kept}
        wanted = wanted_subscriptions(state.subscriptions, {**kept, **intent.subscriptions})
        done = {
            name: replace(
                entry, phase=SubscriptionPhase.CURSOR_LOST if name in self.loses else SubscriptionPhase.ACTIVE
            )
            for name, entry in wanted.items()
            if entry.phase is not SubscriptionPhase.DELETING
        }
        return replace(state, subscriptions=done)


@asynccontextmanager
async def reconciled(world: RestWorld, *, settles: bool = True, loses: str = "") -> AsyncIterator[Reconcile]:
    """Reconcile the world's topic meanwhile; a ScalableTopicSubscription wakes it, too."""
    found = Reconcile(world, settles, frozenset({loses}))

    def become(body: Body) -> dict[str, Any] | None:
        if body["kind"] == SUBSCRIPTIONS.kind:
            world.replica.known.woken.set()
        return None

    world.kubernetes.becomes = become
    task = asyncio.create_task(found.run())
    try:
        yield found
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), task


def ordered(world: RestWorld, subscription: str, status: dict[str, Any] | None = None, **spec: Any) -> Body:
    """Have a ScalableTopicSubscription of topic `orders`."""
    return world.kubernetes.put(
        {
            "apiVersion": SUBSCRIPTIONS.api_version,
            "kind": SUBSCRIPTIONS.kind,
            "metadata": {"namespace": "shop", "name": f"orders-{subscription}"},
            "spec": {"scalableTopic": "orders", "subscription": subscription, "type": "Stream", **spec},
            "status": status or {},
        }
    )


def recorded(world: RestWorld, name: str, phase: str = "Active", **more: Any) -> None:
    """Have an entry of a subscription in the topic's status."""
    body = world.topic
    entry = {"name": name, "phase": phase, "initialPosition": "Earliest", "deletionPolicy": "Retain", **more}
    entries = [one for one in body["status"].get("subscriptions", ()) if one["name"] != name]
    world.kubernetes.set_status(body, {**body["status"], "subscriptions": [*entries, entry]})


def entries(world: RestWorld) -> dict[str, Body]:
    """The entries in the topic's status, by name."""
    return {entry["name"]: entry for entry in world.topic["status"].get("subscriptions", ())}
