"""A fleet of brokers that are but their statistics, rendered beforehand so that serving them costs next to nothing.

Every port is a broker. What is none of the statistics goes on to a real one, which keeps the records. `PUT /raised/N`
has N of every 100 segments say half as much again as before: a material change of each when N changes from or to 0.
"""

import argparse
import asyncio
import json
import random
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

PERIOD_SECONDS = 60
_SEGMENTS_A_TOPIC = 8
_TOPICS_A_BUNDLE = 10
_HEADROOM = 1.5
_CHUNK_BYTES = 65_536


def document(broker: int, segments: int, raised: int) -> dict[str, Any]:
    """One broker's answer in the broker's own form.

    Args:
        broker: its number.
        segments: how many it serves.
        raised: of how many in 100 the load is raised.
    """
    draw = random.Random(broker)
    found: dict[str, dict[str, Any]] = {}
    for number in range(segments):
        # From idle to hot: thresholds to merge and to split lie in between.
        rate = round(10 ** draw.uniform(0, 4.2), 3) * (_HEADROOM if number % 100 < raised else 1.0)
        topic, part = divmod(number, _SEGMENTS_A_TOPIC)
        step = 0x10000 // _SEGMENTS_A_TOPIC
        hash_range = f"{part * step:04x}-{(part + 1) * step - 1:04x}"
        name = f"persistent://acme/shop-{broker}/orders-{topic}-segment-{hash_range}-{part}"
        bundle = topic // _TOPICS_A_BUNDLE
        place = found.setdefault(f"0x{bundle:04x}0000_0x{bundle + 1:04x}0000", {"persistent": {}})
        place["persistent"][name] = _topic(rate, number)
    return {f"acme/shop-{broker}": found}


def _topic(rate: float, number: int) -> dict[str, Any]:
    """With one producer, one subscription and one consumer, as a broker of Pulsar 4 tells of it."""
    size = 512.0
    common = {
        "connectedSince": "2026-11-28T08:14:21.123456789Z",
        "clientVersion": "Pulsar-CPP-v4.2.0",
        "metadata": {},
    }
    publisher = {
        "msgRateIn": rate,
        "msgThroughputIn": rate * size,
        "averageMsgSize": size,
        "address": f"/10.0.{number % 250}.16:51234",
        "producerId": number,
        "producerName": f"fleet-0-{number}",
    }
    consumer = {
        "address": f"/10.0.{number % 250}.17:41234",
        "consumerName": f"{number:010x}",
        "availablePermits": 950,
        "msgRateOut": rate,
        "msgThroughputOut": rate * size,
        "msgRateRedeliver": 0.0,
        "avgMessagesPerEntry": 12,
        "messageAckRate": rate,
    }
    subscription = {
        "consumers": [consumer | common],
        "msgBacklog": 100 + number,
        "msgRateExpired": 0.0,
        "msgRateOut": rate,
        "messageAckRate": rate,
        "msgThroughputOut": rate * size,
        "msgRateRedeliver": 0.0,
        "numberOfEntriesSinceFirstNotAckedMessage": 1,
        "totalNonContiguousDeletedMessagesRange": 0,
        "type": "Exclusive",
        "filterProcessedMsgCount": 0,
        "filterAcceptedMsgCount": 0,
        "filterRejectedMsgCount": 0,
        "filterRescheduledMsgCount": 0,
    }
    return {
        "publishers": [publisher | common],
        "replication": {},
        "subscriptions": {"billing": subscription},
        "producerCount": 1,
        "averageMsgSize": size,
        "msgRateIn": rate,
        "msgRateOut": rate,
        "msgInCount": 1_000_000,
        "bytesInCount": 512_000_000,
        "msgOutCount": 1_000_000,
        "bytesOutCount": 512_000_000,
        "msgThroughputIn": rate * size,
        "msgThroughputOut": rate * size,
        "storageSize": 512_000_000,
        "backlogSize": 51_200,
        "pendingAddEntriesCount": 0,
        "filteredEntriesCount": 0,
    }


class Fleet:
    """The brokers of one process.

    Args:
        segments: of each broker.
        raised: which answers there are.
        real: `host:port` of the admin API of the broker that keeps the records.
    """

    def __init__(self, segments: int, raised: Sequence[int], real: str) -> None:
        self._segments = segments
        self._raised = raised
        self._host, _, self._port = real.partition(":")
        self._brokers: list[str] = []
        self._answers: dict[int, list[bytes]] = {}
        self._now = raised[0]

    async def listen(self, brokers: int) -> None:
        """Open the ports and render all answers."""
        for number in range(brokers):
            server = await asyncio.start_server(lambda *ends, number=number: self._serve(number, *ends), "127.0.0.1", 0)
            host, port = server.sockets[0].getsockname()
            self._brokers.append(f"{host}:{port}")
        for raised in self._raised:
            self._answers[raised] = [_rendered(document(one, self._segments, raised)) for one in range(brokers)]

    @property
    def first(self) -> str:
        """`host:port` of one that may be asked for the others."""
        return self._brokers[0]

    @property
    def answer_bytes(self) -> int:
        """How long one answer of all brokers is."""
        return sum(map(len, self._answers[self._now]))

    async def _serve(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            if path == "/admin/v2/broker-stats/topics":
                writer.write(self._answers[self._now][number])
            elif path == "/admin/v2/brokers":
                writer.write(_rendered(self._brokers))
            elif path == "/admin/v2/brokers/configuration/runtime":
                times = {"statsUpdateFrequencyInSecs": PERIOD_SECONDS, "statsUpdateInitialDelayInSecs": PERIOD_SECONDS}
                writer.write(_rendered({name: str(value) for name, value in times.items()}))
            elif path.startswith("/raised/"):
                self._now = int(path.rpartition("/")[2])
                writer.write(_rendered(self._now))
            else:
                await self._relay(head, reader, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # who asked has gone
        finally:
            writer.close()

    async def _relay(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        real_reader, real_writer = await asyncio.open_connection(self._host, int(self._port))
        real_writer.write(head)
        back = asyncio.create_task(_pass_on(real_reader, writer))
        await _pass_on(reader, real_writer)
        real_writer.close()
        await back


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK_BYTES):
        writer.write(data)
        await writer.drain()


def _rendered(body: Any) -> bytes:
    text = json.dumps(body, separators=(",", ":")).encode()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + text


async def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, required=True)
    parser.add_argument("--segments", type=int, required=True, help="of each broker")
    parser.add_argument("--raised", type=int, nargs="+", required=True, help="the answers to be had")
    parser.add_argument("--real-admin-url", required=True, help="of the broker that keeps the records")
    options = parser.parse_args()
    fleet = Fleet(options.segments, options.raised, urlsplit(options.real_admin_url).netloc)
    await fleet.listen(options.brokers)
    print(json.dumps({"admin_url": f"http://{fleet.first}", "answer_bytes": fleet.answer_bytes}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
