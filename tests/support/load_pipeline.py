"""The load pipeline beside real brokers: segments with traffic, and a stream that may be stopped and started."""

from __future__ import annotations

import asyncio
import sys

import pulsar as pulsar_client
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from dev.access import PulsarAccess
from scalable_topics.layout import HashRange, TopicName, classic_segment_name
from scalable_topics_operator.load.records import PULSE, Pulse, SegmentRecord, decode_pulse, decode_record
from segment_load.stream import LoadStream, StreamSettings
from tests.support.pulsar_view import PulsarView
from tests.support.waiting import eventually

FOREIGN = b"hello"
"""A message that is no record."""
INTERVAL_SECONDS = 5.0
"""Between two batches. More than three times as much apart they do not count as one after the other, which a machine
that does other things besides must not reach."""


class Segments:
    """Segments of one topic, with a cursor each, and traffic on them."""

    def __init__(self, view: PulsarView, namespace: str, service_url: str, token: str) -> None:
        self._view = view
        self.topic = TopicName.parse(f"{namespace}/orders")
        self._client = pulsar_client.Client(service_url, authentication=pulsar_client.AuthenticationToken(token))
        self._tasks: list[asyncio.Task[None]] = []

    async def make(self, number: int, hash_range: HashRange | None = None) -> str:
        name = classic_segment_name(self.topic, hash_range or HashRange.full(), number)
        await self._view.create_topic(name)
        await self._view.create_subscription(name, "s")
        return name

    async def send(self, name: str, rate: float) -> None:
        producer = await asyncio.to_thread(self._client.create_producer, name)

        async def for_ever() -> None:
            while True:
                producer.send_async(b"x" * 100, lambda *_: None)
                await asyncio.sleep(1 / rate)

        self._tasks.append(asyncio.create_task(for_ever()))

    async def write(self, topic: str, key: str, message: bytes) -> None:
        producer = await asyncio.to_thread(self._client.create_producer, topic)
        await asyncio.to_thread(producer.send, message, partition_key=key)
        await asyncio.to_thread(producer.close)

    def hush(self) -> None:
        while self._tasks:
            self._tasks.pop().cancel()

    async def close(self) -> None:
        self.hush()
        await asyncio.to_thread(self._client.close)


def read_records(topic: str, pulsar: PulsarAccess) -> tuple[dict[str, SegmentRecord], Pulse | None]:
    """What a reader of the topic of records has in the end; a message that is `FOREIGN` is an empty record."""
    token = pulsar_client.AuthenticationToken(pulsar.superuser_token)
    client = pulsar_client.Client(pulsar.service_url, authentication=token)
    found: dict[str, SegmentRecord] = {}
    pulse = None
    try:
        reader = client.create_reader(topic, pulsar_client.MessageId.earliest, is_read_compacted=True)
        while reader.has_message_available():
            message = reader.read_next(5_000)
            key, data = message.partition_key(), message.data()
            if key == PULSE:
                pulse = decode_pulse(data)
            elif data == FOREIGN:
                found[key] = SegmentRecord("", 0)
            elif data:
                found[key] = decode_record(data)
            else:
                found.pop(key, None)
    finally:
        client.close()
    return found, pulse


class Pipeline:
    """A stream with a folder and a topic of its own, which may be stopped and started again."""

    def __init__(self, spark: SparkSession, settings: StreamSettings, pulsar: PulsarAccess) -> None:
        self._spark = spark
        self.settings = settings
        self._pulsar = pulsar
        self._stream: LoadStream | None = None
        self._query: StreamingQuery | None = None

    async def start(self) -> None:
        self._stream = LoadStream(self._spark, self.settings)
        self._query = await asyncio.to_thread(self._stream.start)

    async def stop(self) -> None:
        if self._query is not None and self._stream is not None:
            await asyncio.to_thread(self._query.stop)
            await asyncio.to_thread(self._stream.close)

    async def table(self) -> tuple[dict[str, SegmentRecord], Pulse | None]:
        """What a reader of the topic has in the end."""
        query = self._query
        assert query is None or query.isActive, query.exception()
        return await asyncio.to_thread(read_records, self.settings.topic.name, self._pulsar)

    async def until_told(self, name: str, what: str = "is told with rates", since_ms: int = 0) -> SegmentRecord:
        """Wait for rates of a segment that were read after `since_ms`, milliseconds since 1970."""

        def is_told(seen: tuple[dict[str, SegmentRecord], Pulse | None]) -> bool:
            record = seen[0].get(name)
            return record is not None and record.rates is not None and record.sampled_at_ms > since_ms

        found, _ = await eventually(
            self.table,
            is_told,
            what=f"{name} {what}",
            within_seconds=90,
            every_seconds=1.0,
        )
        return found[name]

    async def until_pulse_after(self, at_ms: int) -> tuple[dict[str, SegmentRecord], Pulse]:
        found, pulse = await eventually(
            self.table,
            lambda seen: seen[1] is not None and seen[1].at_ms > at_ms,
            what="a batch ends",
            within_seconds=60,
            every_seconds=0.5,
        )
        assert pulse is not None
        return found, pulse


async def start_job(settings: StreamSettings, stderr: int = asyncio.subprocess.DEVNULL) -> asyncio.subprocess.Process:
    """The stream as a process of its own, as people run it."""
    topic, access = settings.topic, settings.access
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "segment_load", "stream", "--master", "local[1]"),
        *("--interval-seconds", str(settings.interval_seconds)),
        *("--admin-url", access.admin_url, "--service-url", topic.service_url, "--token-file", access.token_file),
        *("--records-topic", topic.name, "--folder", settings.folder, "--timeout-seconds", "5"),
        stderr=stderr,
    )
