"""Fleets too large for whole reconcilers: elections, shards, cache, queues and lists of the process are the real ones.

What a reconcile of a topic asks of servers and of the processor is a number, counted with the whole operator
(`counting`) or measured; that it is asked for, when, by whom and after what is decided by the operator's own code.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from bench.growth import Costs
from scalable_topics_operator.cluster.kube_client import LIST_CHUNK, Body, KubeClient, Resource
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.reconcile_times import LookTimes
from scalable_topics_operator.controllers.relist import Relister
from scalable_topics_operator.controllers.watching import take_event
from scalable_topics_operator.load.sample import LoadSample
from scalable_topics_operator.operator_process import WATCHED
from scalable_topics_operator.settings import OperatorSettings
from tests.simulation.faults import Nature
from tests.simulation.fleet.api_server import Event
from tests.simulation.fleet.kube_client import ModelKubeClient
from tests.simulation.fleet.names import NAMESPACE
from tests.simulation.fleet.network import Network, Sender, Server
from tests.simulation.fleet.replica import BrokerLine, SimulatedReplica
from tests.simulation.fleet.virtual_time import VirtualLoop
from tests.simulation.growth.meter import API_SERVER, BROKERS
from tests.simulation.growth.metered import MeteredFleet
from tests.simulation.growth.servers import Line
from tests.simulation.model_backend import ModelBackend

T = TypeVar("T")

_WATCHED = {resource.plural: resource for resource in WATCHED}
_WAY_SECONDS = 0.005
_SPLITS = "splits"
# What goes on for longer in virtual time will never end.
_MOST_SECONDS = 20_000.0


class ServedNetwork(Network):
    """A network without faults, to an API server that serves one request after the other."""

    fleet: ScheduledFleet

    async def exchange(
        self, sender: Sender, server: Server, effect: Callable[[bool], T], *, timeout_seconds: float, note: str
    ) -> T:
        """Carry one request to a server and its answer back."""
        await sender.awake()
        costs = self.fleet.costs
        seconds = costs.api_read_seconds if note.startswith("GET") else costs.api_write_seconds
        # Elections have a priority level of their own at a real API server: what waits is not before them.
        if "/leases" in note:
            await asyncio.sleep(_WAY_SECONDS)
        else:
            await self.fleet.api.use(seconds, at_least_seconds=_WAY_SECONDS)
        answer = effect(False)
        await sender.awake()
        return answer


class ServedKubeClient(ModelKubeClient):
    """A client whose lists of topics come as objects that all replicas share, since texts of each would fill memory."""

    fleet: ScheduledFleet
    replica: ScheduledReplica

    async def list_pages(
        self, resource: Resource, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[tuple[list[Body], str]]:
        """Read a collection in chunks; see `KubeClient`."""
        if resource.plural != TOPICS.plural:
            async for found in super().list_pages(resource, namespace, label_selector=label_selector):
                yield found
            return
        # Shared, so not changed: what takes them makes a dictionary of its own.
        bodies, version = list(self.fleet.bodies.values()), self.fleet.version
        for begin in range(0, max(1, len(bodies)), LIST_CHUNK):
            page = bodies[begin : begin + LIST_CHUNK]
            await self.fleet.list_page(self.replica, len(page), self.fleet.costs.list_seconds)
            yield page, version


@dataclass(slots=True)
class _Remembered:
    uid: str
    drift_due: float
    decide_due: float
    drift_patience: int = 0


class ScheduledTopics:
    """Reconciles topics as `TopicReconciler` does, by numbers.

    Args:
        fleet: everything else.
        replica: that it works for.
        cache: of that.
        kube: the API server.
    """

    def __init__(self, fleet: ScheduledFleet, replica: ScheduledReplica, cache: ObjectCache, kube: KubeClient) -> None:
        self._fleet = fleet
        self._replica = replica
        self._cache = cache
        self._kube = kube
        self._remembered: dict[ObjectKey, _Remembered] = {}
        self._looks = LookTimes(fleet.settings.times, self._remembered)

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Bring one topic forward; answers when to look again."""
        body = self._cache.get(key)
        if body is None:
            self.forget(key)
            return None
        fleet, costs = self._fleet, self._fleet.costs
        await self._replica.awake()
        await self._replica.processor.use(costs.decision_seconds)
        uid, now = body["metadata"]["uid"], time.monotonic()
        memory = self._remembered.get(key)
        if memory is None or memory.uid != uid:
            body = await self._kube.get(TOPICS, key.namespace, key.name)
            await self._ask(costs.take_over_calls)
            memory = self._remembered[key] = _Remembered(uid, 0.0, 0.0)
            self._looks.begin(memory)
        status = body.get("status") or {}
        if status.get("observedGeneration") != body["metadata"]["generation"]:
            splits = int(body["spec"].get(_SPLITS, 0)) - int(status.get(_SPLITS, 0))
            await self._ask(splits * costs.split_calls if splits else costs.drift_calls)
            for _ in range(max(0, round(splits * costs.split_writes) - 1)):
                body = await self._write(key, body, {"journal": str(random.random())})
            observed = {"observedGeneration": body["metadata"]["generation"], _SPLITS: body["spec"].get(_SPLITS, 0)}
            await self._write(key, body, observed)
            self._looks.compared(memory)
        elif now >= memory.drift_due:
            await self._ask(costs.drift_calls)
            self._looks.compared(memory)
        memory.decide_due = time.monotonic() + fleet.settings.auto_scale_interval_seconds
        fleet.looked_after(key)
        return max(0.0, min(memory.drift_due, memory.decide_due) - time.monotonic())

    def forget(self, key: ObjectKey) -> None:
        """Others work on it."""
        self._remembered.pop(key, None)

    async def _ask(self, calls: float) -> None:
        """Admin calls, one after the other, which is the slowest that a reconcile can be."""
        costs, fleet = self._fleet.costs, self._fleet
        fleet.meter.count(BROKERS, "admin", round(calls))
        await self._replica.processor.use(calls * costs.call_seconds)
        # A connection has no more calls under way than its limit.
        await self._replica.connection.use(
            calls * costs.broker_latency_seconds,
            at_least_seconds=calls * costs.broker_latency_seconds,
        )
        await fleet.brokers.use(calls * costs.broker_call_seconds)
        await self._replica.awake()

    async def _write(self, key: ObjectKey, body: Body, status: Mapping[str, Any]) -> Body:
        patch = {"metadata": {"resourceVersion": body["metadata"]["resourceVersion"]}, "status": status}
        await self._replica.processor.use(self._fleet.costs.write_seconds)
        written = await self._kube.merge_patch(TOPICS, key.namespace, key.name, patch, subresource="status")
        self._cache.observe(TOPICS, written)
        return written


class ScheduledReplica(SimulatedReplica):
    """An operator process whose topics are reconciled by numbers.

    Args:
        name: of the replica.
        settings: how it runs.
        fleet: everything else.
    """

    def __init__(self, name: str, settings: OperatorSettings, fleet: ScheduledFleet) -> None:
        super().__init__(name, settings, fleet)
        self.fleet = fleet
        self.processor = Line()
        self.connection = Line(fleet.costs.connection_calls)
        self.topics: ScheduledTopics | None = None
        self.most_waiting = 0

    def _client(self, **how: Any) -> KubeClient:
        client = super()._client(**how)
        served = ServedKubeClient(client._ask, **how)  # type: ignore[attr-defined]
        served.fleet, served.replica = self.fleet, self
        return served

    def _make_controllers(self, kube: KubeClient, *others: Any) -> Mapping[str, Any]:
        controllers = super()._make_controllers(kube, *others)
        self.topics = ScheduledTopics(self.fleet, self, self._cache, kube)
        return {**controllers, TOPICS.plural: self.topics}

    def _forget(self, key: ObjectKey) -> None:
        super()._forget(key)
        if self.topics is not None:
            self.topics.forget(key)

    async def _show_gauges(self) -> None:
        while True:
            self.most_waiting = max(self.most_waiting, self._queue.waiting)
            await asyncio.sleep(1.0)

    def begin_measuring(self) -> None:
        """Forget what was seen."""
        self.most_waiting = 0


class ScheduledFleet(MeteredFleet[ScheduledReplica]):
    """Topics, servers with a limited capacity, and replicas. Implements `Around`.

    Args:
        loop: the time.
        settings: of every replica.
        costs: of what is done by numbers.
        topics: how many there are, all healthy.
    """

    def __init__(self, loop: VirtualLoop, settings: OperatorSettings, costs: Costs, topics: int) -> None:
        super().__init__(loop, settings)
        self.costs = costs
        network = ServedNetwork(loop, self.chances)
        network.fleet = self
        self.network: Network = network
        self.server.watch(self._changed)
        self.api = Line(costs.api_cores)
        self.brokers = Line(costs.brokers)
        self.bodies: dict[ObjectKey, Body] = {}
        self.version = "0"
        self.seen_at: dict[ObjectKey, float] = {}
        self.longest_unseen_seconds = 0.0
        self.observed_after: list[float] = []
        self._asked_at: dict[ObjectKey, float] = {}
        self._unseen: set[ObjectKey] = set()
        self._none_unseen = asyncio.Event()
        self._watches: dict[ScheduledReplica, _SharedWatch] = {}
        for number in range(topics):
            self._make(number)

    # What users do

    def _make(self, number: int) -> None:
        spec = {"topic": f"public/default/t{number}", "connectionRef": {"name": "pulsar"}}
        metadata = {"name": f"t{number}"}
        body = {"apiVersion": TOPICS.api_version, "kind": TOPICS.kind, "metadata": metadata, "spec": spec}
        self.server.user("POST", TOPICS.path(NAMESPACE), body)
        self.server.user(
            "PATCH", TOPICS.path(NAMESPACE, metadata["name"], "status"), {"status": {"observedGeneration": 1}}
        )

    def change(self, number: int, **spec: Any) -> None:
        """Change a topic's spec."""
        key = ObjectKey(TOPICS.plural, NAMESPACE, f"t{number}")
        self._asked_at[key] = self.loop.time()
        self.meter.count(API_SERVER, "users'")
        self.server.user("PATCH", TOPICS.path(NAMESPACE, key.name), {"spec": spec})

    def split(self, number: int) -> None:
        """Have a segment of a topic split."""
        self.change(number, **{_SPLITS: 1})

    @property
    def unobserved(self) -> int:
        """Changes of users that are not in a status yet."""
        return len(self._asked_at)

    def _replica(self, name: str) -> ScheduledReplica:
        return ScheduledReplica(name, self.settings, self)

    # Looking after

    def forget_looks(self, keys: set[ObjectKey] | None = None) -> None:
        """Begin to wait until all topics, or some, have been looked after."""
        self._unseen = set(self.bodies) if keys is None else set(keys)
        self._none_unseen = asyncio.Event()
        if not self._unseen:
            self._none_unseen.set()

    async def until_seen(self) -> float:
        """Wait until all of those have been looked after; answers how long that took."""
        began = self.loop.time()
        async with asyncio.timeout(_MOST_SECONDS):
            await self._none_unseen.wait()
        return self.loop.time() - began

    def looked_after(self, key: ObjectKey) -> None:
        """A reconcile of a topic has ended well."""
        now = self.loop.time()
        self.longest_unseen_seconds = max(self.longest_unseen_seconds, now - self.seen_at.get(key, now))
        self.seen_at[key] = now
        self._unseen.discard(key)
        if not self._unseen:
            self._none_unseen.set()

    def led_by(self, replica: ScheduledReplica) -> set[ObjectKey]:
        """The topics that a replica leads."""
        return {key for key, _ in replica._fleet.topics_of(replica._shards.kept)}

    def begin_measuring(self) -> None:
        """Forget what was counted."""
        self.meter.reset()
        self.observed_after.clear()
        self.longest_unseen_seconds = 0.0
        for replica in self.alive:
            replica.begin_measuring()

    # What replicas ask

    async def list_page(self, replica: ScheduledReplica, objects: int, seconds: float) -> None:
        """One page of a list: the API server makes it, and the replica reads it."""
        self.meter.count(API_SERVER, f"LIST {TOPICS.plural}")
        await self.api.use(objects * self.costs.api_list_seconds, at_least_seconds=_WAY_SECONDS)
        await replica.processor.use(objects * seconds)
        await replica.awake()

    def ask_brokers(
        self, sender: Sender, verb: str, target: str, nature: Nature, effect: Callable[[], T]
    ) -> Callable[[bool], T]:
        """Connections are left out: none is declared."""
        raise AssertionError(f"{verb} {target}: brokers are asked by numbers")

    def backend(self, line: BrokerLine) -> ModelBackend:
        """There are no brokers but those of numbers."""
        raise AssertionError("brokers are asked by numbers")

    def load(self) -> LoadSample | None:
        """Decisions are made by numbers."""
        return None

    def open_watch(self, replica: SimulatedReplica, relister: Relister) -> Callable[[], None]:
        """Tell a replica of changes until what is answered is called."""
        assert isinstance(replica, ScheduledReplica)
        watch = self._watches[replica] = _SharedWatch(self, replica, relister)
        return watch.close

    def expire_watches(self) -> None:
        """Every watch ends with 410: kopf lists anew, and so does each replica itself."""
        for replica in self.alive:
            self._watches[replica].list_again()

    def all_listed_since(self, seconds: float) -> bool:
        """Whether every replica has listed everything since a time, kopf's lists included."""
        return all(self._watches[replica].listed_since(seconds) for replica in self.alive)

    def _changed(self, event: Event) -> None:
        body: Body = json.loads(event.text)
        if event.key.plural == TOPICS.plural:
            self.version = body["metadata"]["resourceVersion"]
            self.bodies[event.key] = body
            asked = self._asked_at.get(event.key)
            if (
                asked is not None
                and (body.get("status") or {}).get("observedGeneration") == body["metadata"]["generation"]
            ):
                self.observed_after.append(self.loop.time() - asked)
                del self._asked_at[event.key]
        for watch in self._watches.values():
            watch.heard(event, body)


class _SharedWatch:
    """One replica's watches of all kinds; what they tell is shared by all replicas, and costs each of them time."""

    def __init__(self, fleet: ScheduledFleet, replica: ScheduledReplica, relister: Relister) -> None:
        self._fleet = fleet
        self._replica = replica
        self._relister = relister
        self._listing: asyncio.Task[None] | None = None
        self._is_closed = False
        self.list_again()

    def close(self) -> None:
        """Watch no more."""
        self._is_closed = True
        self._fleet._watches.pop(self._replica, None)
        if self._listing is not None:
            self._listing.cancel()

    def list_again(self) -> None:
        """List everything, as kopf does after a gap."""
        if self._listing is None or self._listing.done():
            self._listing = asyncio.create_task(self._list())

    def listed_since(self, seconds: float) -> bool:
        """Whether kopf and the replica itself have listed everything since a time."""
        listing = self._listing is not None and not self._listing.done()
        return not listing and self._fleet.loop.time() - self._relister.seconds_since_complete > seconds

    async def _list(self) -> None:
        bodies = list(self._fleet.bodies.items())
        for begin in range(0, len(bodies), LIST_CHUNK):
            page = bodies[begin : begin + LIST_CHUNK]
            await self._fleet.list_page(self._replica, len(page), self._fleet.costs.event_seconds)
            for key, body in page:
                self._take(None, key, body)

    def heard(self, event: Event, body: Body) -> None:
        """Something has changed."""
        if event.key.plural in _WATCHED and not self._is_closed and not self._replica.is_dead:
            due = self._replica.processor.claim(self._fleet.costs.event_seconds)
            self._fleet.loop.call_at(due, self._take, event.kind, event.key, body)

    def _take(self, kind: str | None, key: ObjectKey, body: Body) -> None:
        if not self._is_closed and not self._replica.is_dead:
            replica = self._replica
            take_event(kind, dict(body), _WATCHED[key.plural], replica._cache, replica._on_change, self._relister.ask)
