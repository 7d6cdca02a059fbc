"""What a consumer of one segment sees of pulsar-client, for what no real one does on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Attached:
    """A consumer as a listener of pulsar-client gets it."""

    def __init__(self) -> None:
        self.is_running = True
        self.connected = True
        self.acknowledged: list[Any] = []
        self.closed = 0
        self._consumer = self

    def pause_message_listener(self) -> None:
        self.is_running = False

    def resume_message_listener(self) -> None:
        self.is_running = True

    def is_connected(self) -> bool:
        return self.connected

    def acknowledge(self, position: Any) -> None:
        # As pulsar-client does, it forgets what it gets without a connection.
        if self.connected:
            self.acknowledged.append(position)

    def acknowledge_cumulative(self, position: Any) -> None:
        if self.connected:
            self.acknowledged.append(("all up to", position))

    def close(self) -> None:
        self.closed += 1
        self.connected = False


class Client:
    """A pulsar-client whose attaching takes until it is told."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Pulsar:
    """Stands for the connection and for the way a consumer attaches."""

    def __init__(self, on_subscribe: Callable[[Callable[[Any, Any], None], Attached], None]) -> None:
        self.clients: list[Client] = []
        self.attached = Attached()
        self.before: list[Attached] = []
        self._on_subscribe = on_subscribe

    def connect(self) -> Client:
        self.clients.append(Client())
        return self.clients[-1]

    def subscribe(self, client: Any, schema: Any, size: int, listener: Callable[[Any, Any], None]) -> Attached:
        if not self.attached.connected:
            self.before.append(self.attached)
            self.attached = Attached()
        self._on_subscribe(listener, self.attached)
        return self.attached
