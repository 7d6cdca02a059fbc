"""Data source `pulsar_broker_statistics`: what every broker of a Pulsar cluster says of its topics (R34).

One partition a broker, read on the executors. A broker that gives no answer is a row that says so, never no load. What
brokers say cannot be asked for again: a batch that is read twice has the same time and, perhaps, other numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from scalable_topics_operator.load.statistics import read_bulk
from segment_load.broker_access import BrokerAccess, BrokerSilent
from segment_load.change_filter import RATES

SOURCE = "pulsar_broker_statistics"
SCHEMA = (
    "at timestamp, broker string, silence string, segment string, "
    "msg_rate_in double, bytes_rate_in double, msg_rate_out double, bytes_rate_out double, "
    "messages_in bigint, backlog map<string, bigint>"
)
"""One row a topic, with `segment` its full name; one a broker besides, with `segment` null: its heartbeat, or in
`silence` why it gave no answer. `at` is when the batch was planned, on the driver's clock, so that brokers and
executors whose clocks differ tell one time."""
_TYPES = pa.schema(
    [
        ("at", pa.timestamp("us", "UTC")),
        *((name, pa.string()) for name in ("broker", "silence", "segment")),
        *((name, pa.float64()) for name in RATES),
        ("messages_in", pa.int64()),
        ("backlog", pa.map_(pa.string(), pa.int64())),
    ]
)
"""`SCHEMA` in Arrow's words; Spark refuses to read what differs."""


class BrokerPartition(InputPartition):
    """What one task reads.

    Args:
        broker: `host:port`; empty where the brokers could not be listed.
        at_ms: when the batch was planned, milliseconds since 1970.
        silence: why the brokers could not be listed.
    """

    def __init__(self, broker: str, at_ms: int, silence: str = "") -> None:
        super().__init__(broker)
        self.broker = broker
        self.at_ms = at_ms
        self.silence = silence


def plan(access: BrokerAccess, at_ms: int) -> list[InputPartition]:
    """A partition for every broker that is listed now."""
    try:
        brokers = access.brokers()
    except BrokerSilent as silent:
        return [BrokerPartition("", at_ms, str(silent))]
    if not brokers:
        return [BrokerPartition("", at_ms, "the cluster lists no broker")]
    return [BrokerPartition(broker, at_ms) for broker in brokers]


def read(access: BrokerAccess, partition: BrokerPartition) -> Iterator[pa.RecordBatch]:
    """The rows of one broker, as one piece: row by row Spark would convert every value by itself."""
    at = datetime.fromtimestamp(partition.at_ms / 1000, UTC)
    silence, document = partition.silence, None
    if not silence:
        try:
            document = access.topic_loads(partition.broker)
        except BrokerSilent as silent:
            silence = str(silent)
    rows: list[tuple[Any, ...]] = [(at, partition.broker, silence or None, *[None] * 7)]
    rows += (
        (at, partition.broker, None, segment, *one.rates.values, one.messages_in, list(one.backlog.items()))
        for segment, one in read_bulk(document)
    )
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), _TYPES, strict=True)]
    yield pa.RecordBatch.from_arrays(columns, schema=_TYPES)


class BatchReader(DataSourceReader):
    """One look at all brokers."""

    def __init__(self, access: BrokerAccess) -> None:
        self._access = access

    def partitions(self) -> Sequence[InputPartition]:
        """One a broker."""
        return plan(self._access, time.time_ns() // 1_000_000)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """On an executor."""
        assert isinstance(partition, BrokerPartition)
        return read(self._access, partition)


class StreamReader(DataSourceStreamReader):
    """A look at all brokers a batch; an offset is the time of one."""

    def __init__(self, access: BrokerAccess) -> None:
        self._access = access

    def initialOffset(self) -> dict[str, int]:
        """Before the first look."""
        return {"atMs": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Now: there is no more to read than what brokers say now, whatever the limit."""
        return {"atMs": time.time_ns() // 1_000_000}

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[InputPartition]:
        """One a broker."""
        return plan(self._access, int(end["atMs"]))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """On an executor."""
        assert isinstance(partition, BrokerPartition)
        return read(self._access, partition)

    def commit(self, end: Mapping[str, int]) -> None:
        """Nothing is kept."""


class BrokerStatistics(DataSource):
    """`spark.read.format(SOURCE)` and `spark.readStream.format(SOURCE)`, with the options of `BrokerAccess`.

    Raises ValueError for options that cannot be used.
    """

    @classmethod
    def name(cls) -> str:
        """The format."""
        return SOURCE

    def schema(self) -> str:
        """`SCHEMA`."""
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """For a batch."""
        return BatchReader(BrokerAccess.from_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For a stream."""
        return StreamReader(BrokerAccess.from_options(self.options))
