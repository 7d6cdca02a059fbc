"""What fleets of many topics have in common: servers whose requests are counted, and replicas that come and go."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from scalable_topics_operator.controllers.timestamps import timestamp_now
from scalable_topics_operator.settings import OperatorSettings
from tests.simulation.fleet.api_server import ModelApiServer
from tests.simulation.fleet.network import Sender
from tests.simulation.fleet.replica import SimulatedReplica
from tests.simulation.fleet.virtual_time import VirtualLoop
from tests.simulation.growth.meter import API_SERVER, Meter, kind_of

R = TypeVar("R", bound=SimulatedReplica)


class MeteredFleet(Generic[R]):
    """A part of `Around`: an API server that counts what it is asked, and whoever asks it.

    Args:
        loop: the time.
        settings: of every replica.
    """

    def __init__(self, loop: VirtualLoop, settings: OperatorSettings) -> None:
        self.loop = loop
        self.settings = settings
        self.chances = random.Random("growth")
        self.server = ModelApiServer(timestamp_now)
        self.meter = Meter(loop.time)
        self.replicas: list[R] = []

    def _replica(self, name: str) -> R:
        """One that is not started yet."""
        raise NotImplementedError

    def start_replica(self) -> R:
        """Start one more."""
        replica = self._replica(f"replica-{len(self.replicas) + 1:03}")
        self.replicas.append(replica)
        replica.start()
        return replica

    @property
    def alive(self) -> list[R]:
        """Those that run."""
        return [replica for replica in self.replicas if not replica.is_dead]

    async def stop(self) -> None:
        """End all that live."""
        await asyncio.gather(*(replica.leave() for replica in self.alive))

    def sends(self, sender: Sender, what: str, target: str) -> None:
        """Nobody judges here."""

    def ask_api(
        self, sender: Sender, method: str, path: str, params: Mapping[str, str], data: str | None
    ) -> Callable[[bool], tuple[int, str]]:
        """An effect for the network: one request to the API server."""
        self.meter.count(API_SERVER, kind_of(method, path))
        return lambda _: self.server.request(method, path, params, data)
