"""R10, R16, R32: what callers of the REST want of subscriptions waits for the topic's turn."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS, TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.ordered_subscriptions import SUBSCRIPTIONS_BY_TOPIC, topic_text
from scalable_topics_operator.controllers.subscription_wishes import SubscriptionWishes, has_unfinished
from scalable_topics_operator.operations.context import DeclaredSubscription, OperationContext, TopicIntent
from scalable_topics_operator.operations.errors import RequestRefused
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase, SubscriptionState
from scalable_topics_operator.operations.subscriptions import SubscriptionWish
from scalable_topics_operator.operations.topic_state import TopicState

TOPIC = ObjectKey(TOPICS.plural, "shop", "orders")
BILLING = SubscriptionState("billing", SubscriptionPhase.ACTIVE, latest=False, delete_with_entry=False)


@dataclass
class World:
    """A topic's record, and what becomes of wishes. Implements `TopicStore` and deletes as a `KubeClient` does."""

    state: TopicState = field(default_factory=TopicState)
    cache: ObjectCache = field(default_factory=ObjectCache)
    woken: list[ObjectKey] = field(default_factory=list)
    deleted: list[tuple[str, str | None]] = field(default_factory=list)
    commits: int = 0

    def __post_init__(self) -> None:
        self.cache.add_index(SUBSCRIPTIONS_BY_TOPIC, SUBSCRIPTIONS, topic_text)
        self.wishes = SubscriptionWishes(cast(KubeClient, self), self.cache, self.woken.append)

    async def commit(self, state: TopicState) -> None:
        self.state = state
        self.commits += 1

    async def delete(self, resource: Resource, namespace: str, name: str, *, uid: str | None = None) -> None:
        assert (resource, namespace) == (SUBSCRIPTIONS, "shop")
        self.deleted.append((name, uid))

    async def grant(self, **declared: DeclaredSubscription) -> None:
        ctx = SimpleNamespace(store=self, intent=TopicIntent(subscriptions=declared))
        await self.wishes.grant(TOPIC, cast(OperationContext, ctx))

    async def wish(self, wish: SubscriptionWish) -> asyncio.Task[None]:
        task = asyncio.create_task(self.wishes.record(TOPIC, wish))
        await asyncio.sleep(0)
        return task

    def ordered(self, name: str, subscription: str) -> None:
        self.cache.observe(
            SUBSCRIPTIONS,
            {
                "metadata": {"namespace": "shop", "name": name, "uid": f"uid-{name}", "resourceVersion": "1"},
                "spec": {"scalableTopic": "orders", "subscription": subscription},
            },
        )


def _body(*entries: dict[str, Any]) -> Body:
    return {"status": {"subscriptions": list(entries)}}


async def test_a_wish_wakes_its_topic_and_waits_until_it_is_recorded() -> None:
    world = World()
    task = await world.wish(SubscriptionWish("billing", latest=True))
    assert world.woken == [TOPIC]
    assert world.wishes.pending(TOPIC)
    assert not task.done()
    await world.grant()
    await task
    assert not world.wishes.pending(TOPIC)
    assert world.state.subscriptions["billing"] == SubscriptionState(
        "billing", SubscriptionPhase.CREATING, latest=True, delete_with_entry=False, requested=True
    )


async def test_what_is_there_already_writes_nothing() -> None:
    world = World(TopicState(subscriptions={"billing": BILLING}))
    task = await world.wish(SubscriptionWish("billing"))
    await world.grant()
    await task
    assert world.commits == 0


async def test_one_refusal_keeps_no_other_wish_back() -> None:
    world = World()
    refused = await world.wish(SubscriptionWish("declared", deletes=True))
    granted = await world.wish(SubscriptionWish("billing"))
    await world.grant(declared=DeclaredSubscription())
    with pytest.raises(RequestRefused, match=r"is in spec\.subscriptions"):
        await refused
    await granted
    assert world.state.subscriptions.keys() == {"billing"}


async def test_a_wish_that_was_given_up_is_not_recorded() -> None:
    world = World()
    task = await world.wish(SubscriptionWish("billing"))
    task.cancel()
    await asyncio.wait([task])
    assert not world.wishes.pending(TOPIC)
    await world.grant()
    assert world.state.subscriptions == {}


async def test_a_failure_to_record_leaves_the_wish_waiting() -> None:
    world = World()
    task = await world.wish(SubscriptionWish("billing"))

    async def fail(state: TopicState) -> None:
        raise OSError("no answer")

    world.commit = fail  # type: ignore[method-assign]
    with pytest.raises(OSError, match="no answer"):
        await world.grant()
    assert world.wishes.pending(TOPIC)
    del world.commit
    await world.grant()
    await task


@pytest.mark.parametrize(
    ("entry", "declared", "wish", "reason"),
    [
        (SubscriptionPhase.DELETING, None, SubscriptionWish("billing"), "Deleting"),
        (SubscriptionPhase.CURSOR_LOST, None, SubscriptionWish("billing"), "CursorLost"),
        (SubscriptionPhase.ACTIVE, DeclaredSubscription(), SubscriptionWish("billing", deletes=True), "Declared"),
    ],
)
async def test_what_cannot_be_wished_for(
    entry: SubscriptionPhase, declared: DeclaredSubscription | None, wish: SubscriptionWish, reason: str
) -> None:
    world = World(TopicState(subscriptions={"billing": SubscriptionState("billing", entry, False, False)}))
    task = await world.wish(wish)
    await world.grant(**({"billing": declared} if declared is not None else {}))
    with pytest.raises(RequestRefused) as refused:
        await task
    assert refused.value.reason == reason
    assert world.commits == 0


@pytest.mark.parametrize("phase", list(SubscriptionPhase))
async def test_r16_every_subscription_that_nothing_else_declares_may_go(phase: SubscriptionPhase) -> None:
    world = World(TopicState(subscriptions={"billing": SubscriptionState("billing", phase, False, False)}))
    task = await world.wish(SubscriptionWish("billing", deletes=True, forced=True))
    await world.grant(billing=DeclaredSubscription(by_object=True))
    await task
    entry = world.state.subscriptions["billing"]
    assert (entry.phase, entry.requested, entry.forced) == (SubscriptionPhase.DELETING, True, True)


async def test_only_objects_of_subscriptions_that_somebody_asked_to_delete_go() -> None:
    world = World()
    for name, subscription in (("a", "billing"), ("b", "billing"), ("c", "audit"), ("d", "kept")):
        world.ordered(name, subscription)
    body = _body(
        {"name": "billing", "phase": "Deleting", "requested": True},
        {"name": "audit", "phase": "Deleting"},
        {"name": "kept", "phase": "Active", "requested": True},
    )
    assert world.wishes.next_look_seconds(TOPIC, body) == 0.0
    await world.wishes.drop_objects(TOPIC, body)
    assert sorted(world.deleted) == [("a", "uid-a"), ("b", "uid-b")]
    assert {key.name for key in world.woken} == {"a", "b"}
    assert {key.name for key, _ in world.cache.all(SUBSCRIPTIONS)} == {"c", "d"}
    assert math.isfinite(world.wishes.next_look_seconds(TOPIC, body)), "consumers may let go meanwhile"


@pytest.mark.parametrize(
    ("entry", "unfinished"),
    [
        ({"phase": "Creating", "requested": True}, True),
        ({"phase": "Deleting", "requested": True}, True),
        ({"phase": "Active", "requested": True}, False),
        ({"phase": "CursorLost", "requested": True}, False),
        ({"phase": "Creating"}, False),
    ],
)
def test_what_is_unfinished_is_looked_at_again(entry: dict[str, Any], unfinished: bool) -> None:
    world, body = World(), _body({"name": "billing", **entry})
    assert has_unfinished(body) == unfinished
    assert math.isfinite(world.wishes.next_look_seconds(TOPIC, body)) == unfinished
    assert not has_unfinished({})
