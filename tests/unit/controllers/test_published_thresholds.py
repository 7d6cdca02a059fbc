"""What pipelines are told of topics' thresholds: what is not the default, and what has changed (R35)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from scalable_topics_operator.cluster.object_key import ObjectKey, connection_of
from scalable_topics_operator.cluster.resources import CONNECTIONS, TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.policy_book import PolicyBook
from scalable_topics_operator.controllers.published_thresholds import PublishedThresholds
from scalable_topics_operator.controllers.topic_work import BY_CONNECTION

CONNECTION = ObjectKey(CONNECTIONS.plural, "shop", "pulsar")


class Shop:
    """Topics of one connection."""

    def __init__(self) -> None:
        self.cache = ObjectCache()
        self.cache.add_index(BY_CONNECTION, TOPICS, lambda body: str(connection_of(body)))
        self.published = PublishedThresholds(self.cache, PolicyBook(self.cache, None))
        self._version = 0

    def put(self, name: str, auto_scale: dict[str, Any] | None, connection: str = "pulsar") -> None:
        self._version += 1
        metadata = {"namespace": "shop", "name": name, "uid": name, "generation": self._version}
        spec = {"topic": f"acme/shop/{name}", "connectionRef": {"name": connection}, "autoScale": auto_scale}
        body = {"metadata": {**metadata, "resourceVersion": str(self._version)}, "spec": spec}
        self.cache.observe(TOPICS, {"apiVersion": TOPICS.api_version, "kind": TOPICS.kind, **body})

    async def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self.published.of(CONNECTION))
        return found


@pytest.fixture
def shop() -> Shop:
    return Shop()


async def test_topics_with_other_thresholds_than_the_defaults_are_told(shop: Shop) -> None:
    shop.put("plain", None)
    shop.put("busy", {"split": {"msgRateIn": 5000}})
    shop.put("elsewhere", {"split": {"msgRateIn": 5000}}, connection="other")
    shop.put("broken", {"merge": {"msgRateIn": 99_999}})
    told = await shop.told()
    assert told == {
        "topic://acme/shop/busy": {"split": [5000.0, 50e6, 50_000.0, 250e6], "merge": [1000.0, 5e6, 5000.0, 25e6]}
    }


async def test_what_changes_is_told_and_what_does_not_is_not_worked_out_again(shop: Shop) -> None:
    shop.put("busy", {"split": {"msgRateIn": 5000}})
    first = await shop.published.of(CONNECTION)
    assert await shop.published.of(CONNECTION) is first
    shop.put("busy", {"split": {"msgRateIn": 6000}})
    assert (await shop.told())["topic://acme/shop/busy"]["split"][0] == 6000.0


async def test_others_have_their_turn_while_thousands_of_topics_are_looked_at(shop: Shop) -> None:
    for number in range(2000):
        shop.put(f"t{number}", {"split": {"msgRateIn": 5000}})
    working, turns = asyncio.create_task(shop.told()), 0
    while not working.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 5
    assert len(await working) == 2000
