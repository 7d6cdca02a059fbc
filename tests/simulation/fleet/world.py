"""The world of a story about whole replicas: servers, clients, a network, and replicas that come and go."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.cluster.election import LeaseTimes
from scalable_topics_operator.cluster.kube_client import Resource
from scalable_topics_operator.cluster.lease_record import LEASES, LeaseRecord
from scalable_topics_operator.cluster.lease_record import SHARD as LEASE_OF_SHARD
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import (
    CONNECTIONS,
    SEGMENT_OPERATIONS,
    SUBSCRIPTIONS,
    TOPICS,
)
from scalable_topics_operator.cluster.shards import shard_of
from scalable_topics_operator.controllers.coordinator import SessionTimes
from scalable_topics_operator.controllers.reconcile_times import ReconcileTimes
from scalable_topics_operator.controllers.relist import Relister
from scalable_topics_operator.controllers.timestamps import timestamp_now
from scalable_topics_operator.load.sample import LoadSample, SegmentSample
from scalable_topics_operator.operations.topic_state import TopicState
from scalable_topics_operator.settings import OperatorSettings
from tests.simulation.auditor import SETTINGS, Violation
from tests.simulation.faults import Call, Nature
from tests.simulation.fleet.api_server import Body, ModelApiServer
from tests.simulation.fleet.consumers import ConsumerGroup
from tests.simulation.fleet.mirrors import make_mirror, update_mirror
from tests.simulation.fleet.names import NAME, NAMESPACE
from tests.simulation.fleet.network import Network, Sender, Server
from tests.simulation.fleet.replica import BrokerLine, SimulatedReplica
from tests.simulation.fleet.virtual_time import VirtualLoop
from tests.simulation.fleet.watches import Watch, WatchFaults
from tests.simulation.model_backend import ModelBackend
from tests.simulation.model_clock import ModelClock
from tests.simulation.world import TOPIC, World

T = TypeVar("T")

SHARDS = 2
FOREIGN: Mapping[str, Any] = {"futureField": {"of": "a later release"}}
"""What a later release keeps in every ScalableTopic's status."""

_GROUP_PATH = f"/apis/{TOPICS.api_version}"
_TOPIC_PATH = TOPICS.path(NAMESPACE, NAME)
_RING = 65536
_CONSUMER_STEPS = 4
_SHARD = shard_of(str(TOPIC), SHARDS)


def make_settings(*, auto_scale: bool) -> OperatorSettings:
    """How every replica of a story runs: as by default, but looking around more often."""
    return OperatorSettings(
        shards=SHARDS,
        # Fewer than by default, since each of them is a task that wakes; there are few objects.
        workers=4,
        lease=LeaseTimes(15.0),
        relist_seconds=60.0,
        times=ReconcileTimes(drift_seconds=45.0, drift_per_second=1000.0, prune_seconds=15.0),
        operations=SETTINGS,
        auto_scale_enabled=auto_scale,
        auto_scale_interval_seconds=5.0,
        sessions=SessionTimes(grace_seconds=20.0, handover_seconds=10.0),
    )


class LoopClock(ModelClock):
    """The time of a virtual loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return round(self._loop.wall_seconds() * 1000)

    @property
    def seconds(self) -> float:
        """Monotonic."""
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class FleetWorld(World):
    """Everything.

    Args:
        loop: the time.
        chances: draw what goes wrong.
        settings: of every replica.

    Attributes:
        density: messages a second on the whole ring.
        most_policy_seconds: how long it takes brokers at most to read policies that were changed.
        hot: first and last hash of a range, and what comes on top there, messages a second on a whole ring.
        always_declared: subscriptions that the ScalableTopic declares all along.
    """

    def __init__(self, loop: VirtualLoop, chances: random.Random, settings: OperatorSettings) -> None:
        super().__init__(LoopClock(loop), FOREIGN)
        self.loop = loop
        self.settings = settings
        self.network = Network(loop, chances)
        self.watch_faults = WatchFaults()
        self.most_policy_seconds = 0.0
        self.broker.read_policies_later = self._read_policies_later  # type: ignore[method-assign]
        self.server = ModelApiServer(timestamp_now)
        self.server.judge(self._judge)
        self.replicas: list[SimulatedReplica] = []
        self.density = 0.0
        self.hot: tuple[int, int, float] = (0, 0, 0.0)
        self.always_declared: frozenset[str] = frozenset()
        self.led_since_seconds = 0.0
        self.started = 0
        self._chances = chances
        self._watches: list[Watch] = []
        self._turns = 0
        self._sender_term: int | None = None
        self.group = ConsumerGroup(self, chances, 0)

    # What users do

    def user(self, method: str, path: str, body: Body | None = None) -> Body:
        """A request of somebody else, which always arrives. Raises AssertionError when it is refused."""
        return self.server.user(method, path, body)

    def declare_connection(self) -> None:
        """Create the ScalableTopicConnection."""
        spec = {
            "adminUrl": "http://model:8080",
            "auth": {"none": {}},
            "probeIntervalSeconds": 20,
            "load": {"intervalSeconds": 5},
        }
        self._make(CONNECTIONS, {"metadata": {"name": "pulsar"}, "spec": spec})

    def declare_topic(self, *, initial: int, retain: bool = True, **spec: Any) -> None:
        """Create the ScalableTopic."""
        body: Body = {
            "metadata": {"name": NAME},
            "spec": {
                "topic": str(TOPIC),
                "connectionRef": {"name": "pulsar"},
                "segments": {"initial": initial},
                "deletionPolicy": "Retain" if retain else "Delete",
                **spec,
            },
        }
        self._make(TOPICS, body)
        self.user("PATCH", f"{_TOPIC_PATH}/status", {"status": dict(FOREIGN)})
        if self.group.consumers:
            self.group.declare()

    def change_topic(self, patch: Body) -> None:
        """Write to the ScalableTopic, if it is there."""
        if self.topic_body() is not None:
            self.user("PATCH", _TOPIC_PATH, patch)

    def delete_topic(self) -> None:
        """Delete the ScalableTopic, if it is there."""
        if self.topic_body() is not None:
            self.user("DELETE", _TOPIC_PATH)

    def request_operation(self, kind: str, **block: Any) -> None:
        """Create a SegmentOperation."""
        self._made += 1
        spec: Body = {"scalableTopic": NAME, "type": kind}
        if block:
            spec[kind[:1].lower() + kind[1:]] = block
        self._make(SEGMENT_OPERATIONS, {"metadata": {"name": f"operation-{self._made}"}, "spec": spec})

    def _make(self, resource: Resource, body: Body) -> None:
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        self.user("POST", resource.path(NAMESPACE), body)

    def topic_body(self) -> Body | None:
        """The ScalableTopic."""
        return self.server.get(ObjectKey(TOPICS.plural, NAMESPACE, NAME))

    def note(self, line: str) -> None:
        """Write a line of the trace, with the time."""
        super().note(f"{self.loop.time():9.2f} {line}")

    # Replicas

    def start_replica(self) -> SimulatedReplica:
        """Start one more."""
        self.started += 1
        replica = SimulatedReplica(f"replica-{self.started}", self.settings, self)
        self.replicas.append(replica)
        replica.start()
        self.note(f"{replica.name} starts")
        return replica

    @property
    def alive(self) -> list[SimulatedReplica]:
        """Replicas that run."""
        return [replica for replica in self.replicas if not replica.is_dead]

    def open_watch(self, replica: SimulatedReplica, relister: Relister) -> Callable[[], None]:
        """Tell a replica of changes until what is answered is called."""
        watch = Watch(
            self.server,
            replica,
            replica._cache,
            replica._on_change,
            relister.ask,
            self.loop,
            self._chances,
            self.watch_faults,
        )
        self._watches.append(watch)

        def close() -> None:
            watch.close()
            self._watches.remove(watch)

        return close

    def break_watch(self, replica: SimulatedReplica, seconds: float) -> None:
        """Let a replica hear nothing for so long."""
        for watch in self._watches:
            if watch.sender is replica:
                watch.break_for(seconds)

    # What replicas ask

    def backend(self, line: BrokerLine) -> ModelBackend:
        """Brokers over a line."""
        return ModelBackend(self.broker, line, self.clock)

    def sends(self, sender: Sender, what: str, target: str) -> None:
        """R6: whoever changes something of the topic may act on it at that moment, by its own reckoning."""
        of_topic = target.startswith((TOPIC.persistent, _TOPIC_PATH))
        replica = next(one for one in self.replicas if one is sender)
        # One that was killed in this very moment sends nothing.
        if not of_topic or replica.is_dead or replica.holds(_SHARD):
            return
        self.violated(f"R6: {sender.name} sends {what} {target} and does not lead the topic")

    def ask_api(
        self, sender: Sender, method: str, path: str, params: Mapping[str, str], data: str | None
    ) -> Callable[[bool], tuple[int, str]]:
        """An effect for the network: one request to the API server."""

        def effect(is_late: bool) -> tuple[int, str]:
            self._check_leaders()
            with self._sent_by(sender, is_late=is_late):
                answer = self.server.request(method, path, params, data)
            if method != "GET" and ("/leases/" not in path or answer[0] >= 300):
                self.note(f"{sender.name} {method} {path.removeprefix(_GROUP_PATH)} {answer[0]}")
            return answer

        return effect

    def ask_brokers(
        self, sender: Sender, verb: str, target: str, nature: Nature, effect: Callable[[], T]
    ) -> Callable[[bool], T]:
        """An effect for the network: one request to the brokers."""

        def take_effect(is_late: bool) -> T:
            self._check_leaders()
            self.calls.append(Call(len(self.calls), verb, target, nature))
            short = target.rpartition("/")[2]
            try:
                with self._sent_by(sender, is_late=is_late):
                    answer = effect()
            except Exception as error:
                self.note(f"{sender.name} {verb} {short}: {type(error).__name__}")
                raise
            if nature is not Nature.READ:
                self.note(f"{sender.name} {verb} {short}{' late' if is_late else ''}")
            return answer

        return take_effect

    def _read_policies_later(self, show: Callable[[], None]) -> None:
        self.loop.call_later(self._chances.uniform(0.0, self.most_policy_seconds), show)

    def load(self) -> LoadSample | None:
        """What the brokers show now: every hash is as busy as its neighbours, but for a hot range."""
        if self.network.is_cut("*", Server.BROKERS):
            return None
        segments = {}
        for body in self.objects:
            layout = None if body.gone else body.state.layout
            for segment in layout.active if layout is not None else ():
                first, last, extra = self.hot
                overlap = min(last, segment.hash_range.end) - max(first, segment.hash_range.start) + 1
                width = segment.hash_range.end - segment.hash_range.start + 1
                rate = self.density * width / _RING + max(0, overlap) * extra / _RING
                segments[self.name_of(segment)] = SegmentSample(Rates(rate, rate * 100, rate, rate * 100))
        return LoadSample(self.clock.now_ms(), 60.0, segments)

    # Clients

    async def let_clients_work(self) -> None:
        """Producers and readers go on for ever."""
        while True:
            await asyncio.sleep(self._chances.uniform(0.1, 1.0))
            self._turns += 1
            self.step(self._turns)
            if self.group.consumers:
                for _ in range(_CONSUMER_STEPS):
                    self.group.step()
            self.raise_violation()

    async def let_consumers_finish(self) -> None:
        """Consumers go on for ever, and nothing goes wrong with them."""
        while True:
            await asyncio.sleep(2.0)
            if self.group.consumers:
                self.group.go_on()

    # Judging

    def raise_violation(self) -> None:
        """Raise what must never be, if it was."""
        if self.auditor.first is not None:
            raise self.auditor.first

    def _check_leaders(self) -> None:
        """R5, R6: never do two replicas take themselves for the leader of one shard."""
        for shard in range(SHARDS):
            holding = [replica.name for replica in self.replicas if replica.holds(shard)]
            if len(holding) > 1:
                self.violated(f"R6: shard {shard} is held by {holding} at once")

    @contextmanager
    def _sent_by(self, sender: Sender, *, is_late: bool) -> Iterator[None]:
        """Let the auditor know while a request takes effect whose sender has given up, or does not lead any more."""
        replica = next(one for one in self.replicas if one is sender)
        is_late = is_late or not replica.holds(_SHARD)
        self._sender_term = replica.term_of(_SHARD)
        before = self.auditor.late
        if is_late:
            self.auditor.late = self.auditor.deposed = True
        try:
            yield
        finally:
            self.auditor.late = before
            self._sender_term = None

    def _judge(self, key: ObjectKey, before: Body | None, after: Body | None) -> None:
        """Keep the mirrors of ScalableTopics, and judge what is committed in them."""
        if key.plural == LEASES.plural:
            self._judge_lease(before, after)
        if key.plural == SUBSCRIPTIONS.plural:
            self.group.judge(before, after)
        if key.plural != TOPICS.plural:
            return
        if before is None:
            assert after is not None
            self.objects.append(make_mirror(after))
            return
        mirror = next(one for one in self.objects if one.uid == before["metadata"]["uid"])
        if after is None:
            mirror.gone = True
            if mirror.retain:
                self.auditor.status_lost()
            return
        state_before, intent_before = mirror.state, mirror.intent
        update_mirror(mirror, after, spec_changed=before["spec"] != after["spec"])
        if mirror.state != state_before:
            self._judge_term(state_before)
            # A replica may not have seen a change of the spec yet.
            declared = intent_before.subscriptions.keys() & mirror.intent.subscriptions.keys() & self.always_declared
            asked = mirror.intent.subscriptions
            intent = replace(mirror.intent, subscriptions={name: asked[name] for name in declared})
            # The story raises it; whoever commits must not hear of it.
            with contextlib.suppress(Violation):
                self.auditor.committed(mirror, state_before, mirror.state, intent)

    def _judge_lease(self, before: Body | None, after: Body | None) -> None:
        """R5: whoever acquires a shard does so in a higher term than anybody before."""
        was = LeaseRecord.parse(before) if before is not None else None
        now = LeaseRecord.parse(after) if after is not None else None
        if now is None or now.part != LEASE_OF_SHARD or not now.holder:
            return
        acquired = was is None or was.holder != now.holder or was.transitions != now.transitions
        if acquired:
            if now.shard == _SHARD:
                self.led_since_seconds = self.loop.time()
            self.note(f"{now.holder} leads shard {now.shard} in term {now.term}")
        if acquired and was is not None and now.term <= was.term:
            self.violated(f"R5: shard {now.shard} is acquired in term {now.term} after {was.term}")

    def _judge_term(self, before: TopicState) -> None:
        """R5: nobody goes on with a journal in a lower term than it was opened in."""
        if before.operation is not None and self._sender_term is not None:
            opened, term = before.operation.term, self._sender_term
            if term < opened:
                self.violated(f"R5: {before.operation.kind} was opened in term {opened} and is worked on in {term}")

    def violated(self, what: str) -> None:
        """Note what must never be; the first counts."""
        if self.auditor.first is None:
            self.auditor.first = Violation(what)
