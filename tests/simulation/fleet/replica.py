"""One operator replica: the real process, put onto models of what it reaches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from scalable_topics_operator.api.connection import ScalableTopicConnection
from scalable_topics_operator.backends.admin.cluster_api import ClusterProbe
from scalable_topics_operator.cluster.event_recorder import EventRecorder
from scalable_topics_operator.cluster.installation import Installation, find_installation
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.leadership import Leadership
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.connections import ConnectionController, ConnectionHandle
from scalable_topics_operator.controllers.coordinator import Coordinator
from scalable_topics_operator.controllers.namespace_policies import NamespacePolicies
from scalable_topics_operator.controllers.relist import Relister
from scalable_topics_operator.load.sample import LoadSample
from scalable_topics_operator.operations.acting import seconds_to_act
from scalable_topics_operator.operations.errors import BackendUnavailable
from scalable_topics_operator.operator_process import WATCHED, OperatorProcess
from scalable_topics_operator.settings import OperatorSettings
from scalable_topics_operator.starting import reached, unless
from tests.simulation.faults import Nature
from tests.simulation.fleet.kube_client import ModelKubeClient
from tests.simulation.fleet.network import Network, NoAnswer, Sender, Server
from tests.simulation.model_backend import ModelBackend

T = TypeVar("T")
CLUSTER_ID = "cluster-1"
_BROKER_TIMEOUT_SECONDS = 10.0


class Around(Protocol):
    """What a replica is put into."""

    network: Network

    def sends(self, sender: Sender, what: str, target: str) -> None:
        """A replica sends something that changes something."""

    def ask_api(self, sender: Sender, method: str, path: str, params: Mapping[str, str], data: str | None) -> Any:
        """An effect for the network: one request to the API server."""

    def ask_brokers(self, sender: Sender, verb: str, target: str, nature: Nature, effect: Callable[[], T]) -> Any:
        """An effect for the network: one request to the brokers."""

    def backend(self, line: BrokerLine) -> ModelBackend:
        """Brokers over a line."""

    def load(self) -> LoadSample | None:
        """What the brokers show now."""

    def open_watch(self, replica: SimulatedReplica, relister: Relister) -> Callable[[], None]:
        """Tell a replica of changes until what is answered is called."""


def client_of(around: Around, sender: Sender, **how: Any) -> KubeClient:
    """The client of the API server, over the network of a story."""

    async def ask(
        method: str, path: str, params: Mapping[str, str], data: str | None, timeout_seconds: float
    ) -> tuple[int, str]:
        if method != "GET":
            around.sends(sender, method, path)
        effect = around.ask_api(sender, method, path, params, data)
        try:
            answer: tuple[int, str] = await around.network.exchange(
                sender, Server.API_SERVER, effect, timeout_seconds=timeout_seconds, note=f"{method} {path}"
            )
        except NoAnswer as lost:
            if not lost.status:
                raise TimeoutError(str(lost)) from lost
            return lost.status, ""
        return answer

    return ModelKubeClient(ask, **how)


class BrokerLine:
    """A replica's way to the brokers. Implements what `ModelBackend` needs of a line.

    Args:
        around: the world.
        sender: the replica.
    """

    def __init__(self, around: Around, sender: Sender) -> None:
        self._around = around
        self._sender = sender

    async def call(self, verb: str, target: str, nature: Nature, effect: Callable[[], T]) -> T:
        """Send one request, as the admin client does: never once the replica may not act any more (R6)."""
        timeout_seconds = seconds_to_act(time.monotonic(), _BROKER_TIMEOUT_SECONDS)
        if not timeout_seconds:
            raise BackendUnavailable(f"{verb} {target}: nothing was sent: another replica may lead this topic by now")
        if nature is not Nature.READ:
            self._around.sends(self._sender, verb, target)
        try:
            answer: T = await self._around.network.exchange(
                self._sender,
                Server.BROKERS,
                self._around.ask_brokers(self._sender, verb, target, nature, effect),
                timeout_seconds=timeout_seconds,
                note=f"{verb} {target}",
            )
        except NoAnswer as lost:
            raise BackendUnavailable(str(lost)) from lost
        return answer


@dataclass(slots=True)
class _ModelCredentials:
    async def refresh(self) -> None:
        """There are none."""


@dataclass(slots=True)
class _ModelAdmin:
    line: BrokerLine

    async def probe(self) -> ClusterProbe:
        """Find the cluster."""
        found = ClusterProbe("4.2.4", "model", CLUSTER_ID, (), True, (), False)
        return await self.line.call("probe", "cluster", Nature.READ, lambda: found)

    async def close(self) -> None:
        """There is nothing to close."""


class ModelConnections(ConnectionController):
    """Connections that lead to the brokers of a story."""

    line: BrokerLine
    around: Around

    async def _opened(self, key: ObjectKey, body: Body) -> ConnectionHandle:
        metadata = body["metadata"]
        handle = self._handles.get(key)
        if handle is not None and (handle.uid, handle.generation) == (metadata["uid"], metadata["generation"]):
            return handle
        spec = ScalableTopicConnection.model_validate(body).spec
        handle = self._handles[key] = ConnectionHandle(
            metadata["uid"],
            metadata["generation"],
            spec,
            _ModelAdmin(self.line),  # type: ignore[arg-type]
            _ModelCredentials(),  # type: ignore[arg-type]
            backend=self.around.backend(self.line),
        )
        return handle


class ModelLoads:
    """Samples of the load, as brokers would show it.

    Args:
        around: the world.
    """

    def __init__(self, around: Around) -> None:
        self._around = around

    def sample(self, connection: ObjectKey) -> LoadSample | None:
        """What the brokers show now."""
        return self._around.load()

    def is_silent(self, connection: ObjectKey) -> bool:
        """Samples always come."""
        return False


class LoopLeadership(Leadership):
    """Leadership kept by the loop of the story, since a thread would have a time of its own."""

    connect: Callable[..., KubeClient]

    def start(self) -> None:
        self._woken = asyncio.Event()
        self._standing = asyncio.create_task(self._stand())

    async def stop(self) -> None:
        self._stopping = True
        self._woken.set()
        await asyncio.wait((self._standing,))
        self._holds = {}
        self._leaders = {}

    def _ask(self, request: Any) -> None:
        super()._ask(request)
        self._woken.set()

    async def _stand(self) -> None:
        error: Exception | None = None
        try:
            await self._elect()
        except Exception as unexpected:
            error = unexpected
        self._end(error)

    def _connect(self) -> KubeClient:
        return self.connect(timeout_seconds=self._times.renew_seconds, tries=1)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()


class SimulatedReplica(OperatorProcess):
    """An operator process in a story: its controllers, queues, caches and elections are the real ones.

    Args:
        name: of the replica.
        settings: how it runs.
        around: the world.
    """

    def __init__(self, name: str, settings: OperatorSettings, around: Around) -> None:
        super().__init__(settings)
        self._identity = self.name = name
        self._around = around
        self._line = BrokerLine(around, self)
        self._stop = asyncio.Event()
        self._waking: asyncio.Event | None = None
        self._running: asyncio.Task[None] | None = None
        self.is_dead = False
        self.leadership: LoopLeadership | None = None

    # Its life

    def start(self) -> None:
        """Begin to run."""
        self._running = asyncio.create_task(self.run(self._stop))

    def die(self) -> None:
        """Die at once, as by SIGKILL; what was sent is on its way."""
        if self.is_dead:
            return
        self.is_dead = True
        if self._waking is not None:
            self._waking.set()
        assert self._running is not None
        self._running.cancel()

    async def leave(self) -> None:
        """End in good order, as by SIGTERM."""
        self._stop.set()
        await self.ended()
        self.is_dead = True

    async def ended(self) -> None:
        """Wait for the end of a dying one. Raises what ended it otherwise."""
        assert self._running is not None
        await asyncio.wait((self._running,))
        if not self._running.cancelled() and (error := self._running.exception()) is not None:
            raise error

    @property
    def is_stopped(self) -> bool:
        """Whether it is being kept from running."""
        return self._waking is not None

    def sleep(self, seconds: float) -> None:
        """Be stopped for so long, as by SIGSTOP."""
        if self.is_dead or self._waking is not None:
            return
        waking = self._waking = asyncio.Event()

        def wake() -> None:
            self._waking = None
            waking.set()

        asyncio.get_running_loop().call_later(seconds, wake)

    async def awake(self) -> None:
        """Wait while it is stopped. Raises CancelledError once it is dead."""
        if self._waking is not None:
            await self._waking.wait()
        if self.is_dead:
            raise asyncio.CancelledError

    # What it does

    async def run(self, stop: asyncio.Event) -> None:
        """What an operator process does, without the pages that it serves."""
        settings, kube = self._settings, self._client()
        relister = Relister(kube, self._cache, WATCHED, settings.namespaces, settings.relist_seconds, self._on_change)
        namespace, shards = settings.operator_namespace, settings.shards
        installation = await unless(stop, reached(lambda: find_installation(kube, namespace, shards)))
        await unless(stop, relister.first_round())
        if installation is None or stop.is_set():
            return
        events = EventRecorder(kube)
        connections = ModelConnections(
            *(kube, self._cache, events, self._metrics, self._shards, self._wake_topics_of),
            NamespacePolicies(self._book),
        )
        connections.line, connections.around = self._line, self._around
        loads: Any = ModelLoads(self._around)
        self._controllers = self._make_controllers(kube, events, connections, loads, installation)
        orphans = self._make_orphan_watch(kube, events, connections, installation)
        await self._lead(relister, {"orphans": orphans.run}, installation, "", stop)

    @property
    def coordinator(self) -> Coordinator | None:
        """Who reads what, as far as this replica leads it."""
        return self._coordinator

    def wake(self, key: ObjectKey) -> None:
        """Have an object reconciled."""
        self._queue.add(key)

    def known(self, key: ObjectKey) -> Body | None:
        """An object as it knows it."""
        return self._cache.get(key)

    def leads(self, key: ObjectKey) -> bool:
        """Whether it works on an object, and may act now."""
        return not self.is_dead and self._cache.get(key) is not None and self._shards.leads(key)

    def holds(self, shard: int) -> bool:
        """Whether it may act on a shard now, by its own reckoning."""
        return not self.is_dead and self.leadership is not None and self.leadership.hold(shard) is not None

    def term_of(self, shard: int) -> int | None:
        """The term in which it holds a shard now."""
        hold = self.leadership.hold(shard) if self.leadership is not None and not self.is_dead else None
        return hold.term if hold is not None else None

    def _client(self, **how: Any) -> KubeClient:
        return client_of(self._around, self, **how)

    def _make_leadership(
        self, installation: Installation, gateway: str, kind: type[Leadership] = LoopLeadership
    ) -> Leadership:
        leadership = super()._make_leadership(installation, gateway, kind)
        assert isinstance(leadership, LoopLeadership)
        leadership.connect = self._client
        self.leadership = leadership
        return leadership

    async def _show_gauges(self) -> None:
        """Nobody reads them."""
        await asyncio.get_running_loop().create_future()

    async def _watch(self, relister: Relister) -> None:
        close = self._around.open_watch(self, relister)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            close()
