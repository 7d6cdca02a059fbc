"""How old the load of a connection is, as metrics show it: an alert goes by that, whatever else goes wrong (R34)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.controllers import load_watch
from scalable_topics_operator.controllers.load_watch import LoadWatch
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.load.sample import LoadSample
from scalable_topics_operator.operations.errors import BackendUnavailable
from scalable_topics_operator.telemetry.metrics import Metrics
from tests.support.waiting import until

KEY = ObjectKey(CONNECTIONS.plural, "shop", "pulsar")
BROKERS = ("one:8080", "two:8080")
# Said already, so that nothing is written.
FRESH = {"type": "LoadFresh", "status": "True", "reason": "Sampled"}
soon = partial(until, within_seconds=10.0, every_seconds=0.01)


@dataclass
class Cluster:
    """Two brokers.

    Args:
        away: those that do not answer.
        refuses_list: whether the list of brokers is not to be had.
        looks: how often brokers were listed.
        topics: what each of them has.
    """

    away: set[str] = field(default_factory=set)
    refuses_list: bool = False
    looks: int = 0
    topics: list[tuple[str, object]] = field(default_factory=list)

    async def brokers(self) -> tuple[str, ...]:
        self.looks += 1
        if self.refuses_list:
            raise BackendUnavailable("not today")
        return BROKERS

    async def runtime_configuration(self) -> dict[str, str]:
        return {}

    async def topic_loads(self, broker: str) -> AsyncIterator[tuple[str, object]]:
        if broker in self.away:
            raise BackendUnavailable("it is away")
        for one in self.topics:
            yield one


@dataclass
class Replica:
    """One that looks at the brokers, or hears of them from another.

    Args:
        cluster: the brokers.
        leads: whether it is the one that asks.
        told: what another tells.
        asked: how often it was asked.
    """

    cluster: Cluster = field(default_factory=Cluster)
    leads: bool = True
    told: LoadSample | None = None
    asked: int = 0
    metrics: Metrics = field(default_factory=Metrics)

    def age_seconds(self) -> float | None:
        labels = {"namespace": "shop", "name": "pulsar"}
        return self.metrics.registry.get_sample_value("scalable_topics_load_age_seconds", labels)

    async def looks(self, times: int = 3) -> None:
        """Until brokers were looked at that often; the look before the last one has come to its end then."""
        wanted = self.cluster.looks + times
        await soon(lambda: self.cluster.looks >= wanted, what=f"{times} more looks")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._watch().run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _watch(self) -> LoadWatch:
        cache = ObjectCache()
        metadata = {"namespace": "shop", "name": "pulsar", "uid": "u", "generation": 1, "resourceVersion": "1"}
        cache.observe(CONNECTIONS, {"metadata": metadata, "spec": {}, "status": {"conditions": [FRESH]}})
        handle = SimpleNamespace(
            uid="u",
            generation=1,
            problem="",
            probe=SimpleNamespace(brokers=BROKERS),
            privileged=SimpleNamespace(cluster=self.cluster),
            spec=SimpleNamespace(
                load=SimpleNamespace(interval_seconds=0.01, source="Direct"),
                limits=SimpleNamespace(request_timeout_seconds=5),
            ),
        )

        async def run(_: ObjectKey, work: Coroutine[Any, Any, None]) -> None:
            await work

        async def ask(_: ObjectKey) -> LoadSample | None:
            self.asked += 1
            return self.told

        parts = (
            None,
            cache,
            SimpleNamespace(handle=lambda _: handle),
            SimpleNamespace(leads=lambda _: self.leads, run=run),
            self.metrics.pipelines,
            None,
            ask,
        )
        return LoadWatch(*cast(Any, parts))


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks follow one another at once."""
    monkeypatch.setattr(load_watch, "_TICK_SECONDS", 0.01)


@pytest.mark.parametrize("away", [{"one:8080"}, set(BROKERS)], ids=["one", "all"])
async def test_a_look_that_lacks_a_broker_makes_nothing_younger(away: set[str]) -> None:
    replica = Replica()
    async with replica.running():
        await replica.looks()
        replica.cluster.away = away
        await replica.looks(2)
        began, first = time.monotonic(), replica.age_seconds()
        assert first is not None
        await replica.looks()
        grown = replica.age_seconds()
        assert grown is not None
        assert grown - first >= 0.9 * (time.monotonic() - began) > 0
        replica.cluster.away = set()
        await soon(lambda: (replica.age_seconds() or 0.0) < grown, what="the load is younger")


async def test_the_age_counts_from_the_beginning_if_no_look_succeeds() -> None:
    replica = Replica(Cluster(refuses_list=True))
    began = time.monotonic()
    async with replica.running():
        await replica.looks()
        first = replica.age_seconds()
        await replica.looks()
        last = replica.age_seconds()
    assert first is not None
    assert last is not None
    assert 0 < first < last <= time.monotonic() - began


async def test_the_age_outlives_a_hand_over_and_only_the_leader_shows_it() -> None:
    now_ms = time.time_ns() // 1_000_000
    old = LoadSample(at_ms=now_ms - 30_000, unseen_seconds=1.0, segments={})
    replica = Replica(Cluster(refuses_list=True), leads=False, told=old)
    async with replica.running():
        await soon(lambda: replica.asked > 2, what="the leader is asked")
        assert replica.age_seconds() is None
        replica.leads = True
        await replica.looks()
        # What the other told was older than this replica, which has known of nothing complete since.
        age_seconds = replica.age_seconds()
        assert age_seconds is not None
        assert age_seconds < 10
        replica.leads = False
        await soon(lambda: replica.age_seconds() is None, what="the age is not shown any more")
        replica.leads = True
        await soon(lambda: replica.age_seconds() is not None, what="the age is shown again")
        again = replica.age_seconds()
        assert again is not None
        assert again >= age_seconds, "it goes on where it was"
