"""What happens to a fleet, one thing after the other, and how that compares with the formulas on paper."""

from __future__ import annotations

import asyncio
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

from bench.growth import HOUR_SECONDS, Costs, Fleet
from bench.growth_formulas import (
    drift_calls_a_second,
    failover_seconds,
    lease_writes_an_hour,
    listed_a_second,
    relist_seconds,
    rest_cores,
    splits_seconds,
    start_seconds,
)
from scalable_topics_operator.cluster.election import LeaseTimes
from scalable_topics_operator.cluster.kube_client import LIST_CHUNK
from scalable_topics_operator.controllers.reconcile_times import ReconcileTimes
from scalable_topics_operator.settings import OperatorSettings
from tests.simulation.fleet.virtual_time import VirtualLoop, run_virtually
from tests.simulation.growth.meter import API_SERVER, BROKERS
from tests.simulation.growth.scheduled import ScheduledFleet

_REST_SECONDS = 300.0
_SETTLE_SECONDS = 120.0
_SPLIT_SHARE = 0.02
_CHANGED_SHARE_AN_HOUR = 0.05
_CHANGING_SECONDS = 300.0
_LOOK_SECONDS = 0.1
_LEASES = ("PUT leases", "POST leases")
_LISTS = "LIST scalabletopics"


@dataclass(frozen=True, slots=True)
class Compared:
    """A quantity on paper and in the simulation.

    Args:
        what: it is, with its unit.
        paper: by the formula.
        simulated: what was seen.
    """

    what: str
    paper: float
    simulated: float

    @property
    def ratio(self) -> float:
        """Simulated by paper."""
        return self.simulated / self.paper


@dataclass(frozen=True, slots=True)
class Seen:
    """What one thing that happened did to the fleet.

    Args:
        what: happened.
        seconds: until all was looked after again.
        most_waiting: the longest queue of a replica, in topics.
        longest_unseen_seconds: the longest that a topic was not looked at.
        api_calls_a_second: the busiest second of the API server, lists by page.
        broker_calls_a_second: mean admin calls of all replicas together.
    """

    what: str
    seconds: float
    most_waiting: int
    longest_unseen_seconds: float
    api_calls_a_second: int
    broker_calls_a_second: float


@dataclass(frozen=True, slots=True)
class Story:
    """All that was seen of one fleet.

    Args:
        fleet: as on paper.
        compared: with the formulas.
        seen: what happened.
        latencies: seconds from a change of a topic to its status, while some of the fleet changes.
    """

    fleet: Fleet
    compared: tuple[Compared, ...]
    seen: tuple[Seen, ...]
    latencies: tuple[float, ...]

    @property
    def median_latency(self) -> float:
        """Of a change."""
        return statistics.median(self.latencies)

    @property
    def late_latency(self) -> float:
        """That all but one in a hundred keep to."""
        return sorted(self.latencies)[len(self.latencies) * 99 // 100]


def tell(fleet: Fleet, costs: Costs) -> Story:
    """Let everything happen to a fleet of one installation.

    Args:
        fleet: its size, and how it is set.
        costs: what one of each costs.
    """
    return run_virtually(1, _Teller(fleet, costs).tell())


class _Teller:
    def __init__(self, fleet: Fleet, costs: Costs) -> None:
        self._paper = fleet
        self._costs = costs
        self._compared: list[Compared] = []
        self._seen: list[Seen] = []
        self._random = random.Random("story")

    async def tell(self) -> Story:
        """Everything, one after the other."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        paper = self._paper
        settings = OperatorSettings(
            shards=paper.shards,
            lease=LeaseTimes(paper.lease_seconds),
            relist_seconds=paper.relist_seconds,
            times=ReconcileTimes(drift_seconds=paper.drift_seconds, drift_per_second=paper.drift_per_second),
            auto_scale_interval_seconds=paper.decide_seconds,
        )
        self._fleet = ScheduledFleet(loop, settings, self._costs, paper.topics)
        self._loop = loop
        await self._first_start()
        await self._start()
        await self._rest()
        await self._lose_one()
        await self._restart_one_by_one()
        await self._watches_expire()
        await self._change()
        await self._split()
        latencies = tuple(self._latencies)
        await self._fleet.stop()
        return Story(paper, tuple(self._compared), tuple(self._seen), latencies)

    def _add(self, what: str, formula: Callable[[Costs, Fleet], float], simulated: float) -> None:
        self._compared.append(Compared(what, formula(self._costs, self._paper), simulated))

    def _note(self, what: str, seconds: float, since_seconds: float) -> None:
        fleet, passed = self._fleet, max(1.0, self._loop.time() - since_seconds)
        self._seen.append(
            Seen(
                what,
                seconds,
                max((replica.most_waiting for replica in fleet.alive), default=0),
                fleet.longest_unseen_seconds,
                fleet.meter.busiest_second(API_SERVER),
                fleet.meter.calls(BROKERS) / passed,
            )
        )

    async def _start_all(self) -> float:
        self._fleet.begin_measuring()
        self._fleet.forget_looks()
        for _ in range(self._paper.replicas):
            self._fleet.start_replica()
        return await self._fleet.until_seen()

    async def _first_start(self) -> None:
        """One replica makes the installation's record, takes all shards, and shares them two leases later."""
        began = self._loop.time()
        self._note("the first start ever", await self._start_all(), began)
        await asyncio.sleep(_SETTLE_SECONDS)

    async def _start(self) -> None:
        await self._fleet.stop()
        self._fleet.seen_at.clear()
        began = self._loop.time()
        seconds = await self._start_all()
        self._note("all replicas start over topics that are there", seconds, began)
        self._add("start until all are looked after, s", start_seconds, seconds)
        # Until the looks of the start have spread over the interval.
        await asyncio.sleep(self._paper.drift_seconds + _SETTLE_SECONDS)

    async def _rest(self) -> None:
        fleet = self._fleet
        fleet.begin_measuring()
        busy = {replica: replica.processor.busy_seconds for replica in fleet.alive}
        began = self._loop.time()
        await asyncio.sleep(_REST_SECONDS)
        per_hour = HOUR_SECONDS / _REST_SECONDS
        cores = max((replica.processor.busy_seconds - busy[replica]) / _REST_SECONDS for replica in fleet.alive)
        self._note("at rest", 0.0, began)
        quiet = replace(self._paper, splits_a_day=0.0, changes_a_day=0.0)
        self._compared.append(Compared("cores of the busiest replica", rest_cores(self._costs, quiet), cores))
        self._add("Lease writes an hour", lease_writes_an_hour, fleet.meter.calls(API_SERVER, *_LEASES) * per_hour)
        self._add("admin calls a second", drift_calls_a_second, fleet.meter.calls(BROKERS) / _REST_SECONDS)
        pages = fleet.meter.calls(API_SERVER, _LISTS)
        objects = pages / max(1, -(-self._paper.topics // LIST_CHUNK)) * self._paper.topics
        self._add("objects listed a second", listed_a_second, objects / _REST_SECONDS)

    async def _lose_one(self) -> None:
        fleet = self._fleet
        fleet.begin_measuring()
        victim, began = fleet.alive[0], self._loop.time()
        fleet.forget_looks(fleet.led_by(victim))
        victim.die()
        seconds = await fleet.until_seen()
        self._note("a replica dies", seconds, began)
        self._add("loss of a replica until all are looked after, s", failover_seconds, seconds)
        fleet.start_replica()
        await asyncio.sleep(_SETTLE_SECONDS)

    async def _restart_one_by_one(self) -> None:
        """As a Deployment does it: the next one goes when what the last one led is looked after."""
        fleet = self._fleet
        fleet.begin_measuring()
        began = self._loop.time()
        for replica in list(fleet.alive):
            fleet.forget_looks(fleet.led_by(replica))
            await replica.leave()
            fleet.start_replica()
            await fleet.until_seen()
        self._note("each replica in turn is restarted", self._loop.time() - began, began)
        await asyncio.sleep(_SETTLE_SECONDS)

    async def _watches_expire(self) -> None:
        fleet = self._fleet
        fleet.begin_measuring()
        began = self._loop.time()
        fleet.expire_watches()
        while not fleet.all_listed_since(began):
            await asyncio.sleep(_LOOK_SECONDS)
        seconds = self._loop.time() - began
        self._note("all watches end with 410", seconds, began)
        self._add("watches expired everywhere, s", relist_seconds, seconds)
        await asyncio.sleep(_SETTLE_SECONDS)

    async def _change(self) -> None:
        fleet = self._fleet
        fleet.begin_measuring()
        began = self._loop.time()
        changes = max(20, round(self._paper.topics * _CHANGED_SHARE_AN_HOUR * _CHANGING_SECONDS / HOUR_SECONDS))
        for number in self._random.sample(range(self._paper.topics), changes):
            fleet.change(number, changed=True)
            await asyncio.sleep(_CHANGING_SECONDS / changes)
        while fleet.unobserved:
            await asyncio.sleep(_LOOK_SECONDS)
        self._latencies = list(fleet.observed_after)
        self._note(f"{_CHANGED_SHARE_AN_HOUR:.0%} of the topics change within an hour", 0.0, began)

    async def _split(self) -> None:
        fleet = self._fleet
        fleet.begin_measuring()
        began, splits = self._loop.time(), max(10, round(self._paper.topics * _SPLIT_SHARE))
        for number in self._random.sample(range(self._paper.topics), splits):
            fleet.split(number)
        while fleet.unobserved:
            await asyncio.sleep(_LOOK_SECONDS)
        seconds = self._loop.time() - began
        self._note(f"{_SPLIT_SHARE:.0%} of the topics split at once", seconds, began)
        self._add(
            f"{_SPLIT_SHARE:.0%} of the topics split at once, s", lambda c, f: splits_seconds(c, f, splits), seconds
        )
