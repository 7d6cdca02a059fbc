"""Traffic by Pulsar's V5 client beside the demonstration on Pulsar 5."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from dev.access import PulsarAccess
from dev.demo_traffic import DemoTraffic
from dev.v5.process import V5Error, V5Process

_KEYS, _PER_SECOND, _TOTAL = 50, 200.0, 1_000_000
_DRAIN_SECONDS = 60.0
_PRODUCER, _QUEUE, _STREAM = "producer", "queue", "stream"
_NS = 1_000_000_000
STREAM_SUBSCRIPTION = "ledger"


class NativeTraffic(DemoTraffic):
    """A producer, a queue consumer on a subscription, and a stream consumer on one of its own.

    Args:
        access: the brokers.
        topic: the scalable topic.
        subscription: the queue consumer's.
        directory: for the log of the client's process.
    """

    def __init__(self, access: PulsarAccess, topic: str, subscription: str, directory: Path) -> None:
        super().__init__(access, topic, subscription)
        self._directory = directory
        self._sends: list[tuple[float, float]] = []
        self._numbers: defaultdict[str, list[int]] = defaultdict(list)
        self._came: dict[str, defaultdict[str, list[int]]] = {_QUEUE: defaultdict(list), _STREAM: defaultdict(list)}
        self._failure: V5Error | None = None

    @property
    def sends(self) -> list[tuple[float, float]]:
        """See `DemoTraffic.sends`."""
        return self._sends

    @property
    def received(self) -> int:
        """Messages that the stream consumer has received, each counted once."""
        return sum(len(set(numbers)) for numbers in self._came[_STREAM].values())

    def lost(self) -> int:
        """Messages stored that one of the consumers has not received."""
        return sum(
            len(set(numbers) - set(came[key])) for came in self._came.values() for key, numbers in self._numbers.items()
        )

    def repeated(self) -> int:
        """Messages that one of the consumers received more than once, which this client's may (measured)."""
        return sum(
            times > 1
            for came in self._came.values()
            for numbers in came.values()
            for times in Counter(numbers).values()
        )

    def disordered(self) -> int:
        """Messages that the stream consumer received although it had not received the one before it of the same key."""
        return sum(
            number > max(numbers[:place], default=-1) + 1
            for numbers in self._came[_STREAM].values()
            for place, number in enumerate(numbers)
        )

    async def _work(self) -> None:
        topic = f"topic://public/default/{self._topic}"
        service, token = self._access.service_url, self._access.client_token_file
        async with V5Process.connected(service, token, self._directory) as client:
            for name, subscription in ((_QUEUE, self._subscription), (_STREAM, STREAM_SUBSCRIPTION)):
                client.listen(name, self._hear)
                await client.call(name, topic=topic, subscription=subscription, name=name)
            client.listen(_PRODUCER, self._hear)
            keys = [f"customer-{number}" for number in range(_KEYS)]
            amounts = {"total": _TOTAL, "perSecond": _PER_SECOND, "sizeBytes": 0}
            await client.call("send", topic=topic, name=_PRODUCER, keys=keys, **amounts)
            await self._go_on()
            await client.call("stop", name=_PRODUCER)
            await client.until(
                lambda: self._failure is not None or not self.lost(), lambda: f"{self.lost()} missing", _DRAIN_SECONDS
            )
            for name in (_QUEUE, _STREAM):
                await client.call("stop", name=name)
        if self._failure is not None:
            raise self._failure

    def _hear(self, report: dict[str, Any]) -> None:
        match report["is"]:
            case "sent":
                key, number, _, called_at_ns, took_ns = report["message"]
                self._numbers[key].append(number)
                self._sends.append((called_at_ns / _NS, took_ns / _NS))
            case "received":
                for key, value, *_ in report["messages"]:
                    self._came[report["of"]][key].append(int(value.split("|")[1]))
            case "failed":
                self._failure = V5Error.read(report)
