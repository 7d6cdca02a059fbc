"""Many topics under the whole operator: its own reconcilers on model brokers, so that its calls can be counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.cluster.resources import CONNECTIONS, SEGMENT_OPERATIONS, TOPICS
from scalable_topics_operator.controllers.relist import Relister
from scalable_topics_operator.load.sample import LoadSample, SegmentSample
from scalable_topics_operator.settings import OperatorSettings
from tests.simulation.faults import Nature
from tests.simulation.fleet.api_server import Body
from tests.simulation.fleet.names import NAMESPACE
from tests.simulation.fleet.network import Network, Sender
from tests.simulation.fleet.replica import BrokerLine, SimulatedReplica
from tests.simulation.fleet.virtual_time import VirtualLoop
from tests.simulation.fleet.watches import Watch, WatchFaults
from tests.simulation.fleet.world import LoopClock
from tests.simulation.growth.meter import BROKERS
from tests.simulation.growth.metered import MeteredFleet
from tests.simulation.model_backend import ModelBackend
from tests.simulation.model_broker import ModelBroker
from tests.support.world import is_ready

T = TypeVar("T")

CONNECTION = "pulsar"
_LOOK_SECONDS = 1.0
# What goes on for longer in virtual time will never end.
_MOST_SECONDS = 20_000.0


@dataclass(frozen=True, slots=True)
class TopicShape:
    """What the topics of a fleet look like.

    Args:
        segments: active ones.
        subscriptions: declared ones.
    """

    segments: int = 10
    subscriptions: int = 2


class WholeFleet(MeteredFleet[SimulatedReplica]):
    """Servers that answer everything and count it, and replicas of the operator. Implements `Around`.

    Args:
        loop: the time.
        settings: of every replica.
        shape: of every topic.
    """

    def __init__(self, loop: VirtualLoop, settings: OperatorSettings, shape: TopicShape) -> None:
        super().__init__(loop, settings)
        self.shape = shape
        self.clock = LoopClock(loop)
        self.network = Network(loop, self.chances)
        self.broker = ModelBroker(clock=self.clock)
        self._load = LoadSample(0, 60.0, {})
        spec = {"adminUrl": "http://model:8080", "auth": {"none": {}}}
        self.make(CONNECTIONS, CONNECTION, spec)

    # What users do

    def make(self, resource: Any, name: str, spec: Body) -> None:
        """Create an object."""
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
        self.server.user("POST", resource.path(NAMESPACE), body)

    def make_topics(self, count: int) -> None:
        """Declare topics `t0` and so on."""
        for number in range(count):
            spec = {
                "topic": f"public/default/t{number}",
                "connectionRef": {"name": CONNECTION},
                "segments": {"initial": self.shape.segments},
                "subscriptions": [{"name": f"subscription-{one}"} for one in range(self.shape.subscriptions)],
            }
            self.make(TOPICS, f"t{number}", spec)

    def request(self, topic: str, kind: str, name: str, **block: Any) -> None:
        """Ask for an operation on a topic."""
        spec = {"scalableTopic": topic, "type": kind, kind[:1].lower() + kind[1:]: block}
        self.make(SEGMENT_OPERATIONS, name, spec)

    def _replica(self, name: str) -> SimulatedReplica:
        return SimulatedReplica(name, self.settings, self)

    # Waiting

    def topics(self) -> Iterator[Body]:
        """All ScalableTopics."""
        return self.server.all(TOPICS.plural)

    async def until(self, holds: Callable[[], bool], what: str) -> float:
        """Wait until something holds; answers how long that took, seconds."""
        began = self.loop.time()
        while not holds():
            assert self.loop.time() - began < _MOST_SECONDS, f"never: {what}"
            await asyncio.sleep(_LOOK_SECONDS)
        return self.loop.time() - began

    async def until_ready(self) -> float:
        """Wait until every topic is Ready; answers how long that took."""
        return await self.until(lambda: all(map(is_ready, self.topics())), "all topics are Ready")

    # What replicas ask

    def ask_brokers(
        self, sender: Sender, verb: str, target: str, nature: Nature, effect: Callable[[], T]
    ) -> Callable[[bool], T]:
        """An effect for the network: one request to the brokers."""
        self.meter.count(BROKERS, verb)
        return lambda _: effect()

    def backend(self, line: BrokerLine) -> ModelBackend:
        """Brokers over a line."""
        return ModelBackend(self.broker, line, self.clock)

    def load(self) -> LoadSample | None:
        """Every segment has a load between that of a merge and that of a split."""
        names = [name for name, topic in self.broker.topics.items() if topic.record is not None]
        if len(names) != len(self._load.segments):
            rates = Rates(5_000.0)
            self._load = LoadSample(0, 60.0, {name: SegmentSample(rates) for name in names})
        return replace(self._load, at_ms=self.clock.now_ms())

    def open_watch(self, replica: SimulatedReplica, relister: Relister) -> Callable[[], None]:
        """Tell a replica of changes until what is answered is called."""
        watch = Watch(
            *(self.server, replica, replica._cache, replica._on_change, relister.ask, self.loop, self.chances),
            WatchFaults(),
        )
        return watch.close
