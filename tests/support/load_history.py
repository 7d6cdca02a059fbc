"""Histories of load for tests: written as the stream writes them, or made up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from scalable_topics.layout import HashRange, TopicName, classic_segment_name
from segment_load.change_filter import STATE_SCHEMA
from segment_load.frames import local_frame
from segment_load.history_places import RAW, SAMPLE_SCHEMA, hour_of, place_of

NIL = (0.0, 0.0, 0.0, 0.0)


def segment_name(number: int, start: int = 0, end: int = 0xFFFF, topic: str = "t/n/a") -> str:
    return classic_segment_name(TopicName.parse(topic), HashRange(start, end), number)


@dataclass(frozen=True)
class Seen:
    """One segment in one batch; rates None where it does not count."""

    segment: str
    rates: tuple[float, float, float, float] | None = NIL
    broker: str = "b:1"
    backlog: Mapping[str, int] = field(default_factory=dict)


def state_of(spark: SparkSession, at_ms: int, seen: Iterable[Seen]) -> DataFrame:
    """What is known after a batch, as far as the history looks at it."""
    rows = [
        (
            *(one.segment, one.broker, at_ms, at_ms, None, 0, None, None, None, None, None, None, False, False, True),
            None if one.rates is None else list(one.rates),
            None if one.rates is None else dict(one.backlog),
        )
        for one in seen
    ]
    return local_frame(spark, rows, STATE_SCHEMA)


def write_loose(path: Path, batches: Mapping[int, Iterable[Seen]], query: str = "made-up") -> None:
    """Files as the stream leaves them, one a batch, by when it was."""
    types = StructType.fromDDL(SAMPLE_SCHEMA)
    assert isinstance(types, StructType)
    schema: Any = to_arrow_schema(types, timezone="UTC")
    for number, (at_ms, seen) in enumerate(sorted(batches.items())):
        rows = []
        for one in seen:
            rates = (None,) * 4 if one.rates is None else one.rates
            topic = "topic://" + one.segment.removeprefix("persistent://").rpartition("-segment-")[0]
            backlog = None if one.rates is None else list(one.backlog.items())
            at = datetime.fromtimestamp(at_ms / 1000, UTC)
            values = (at, topic, one.segment, one.broker, one.rates is not None, *rates, backlog)
            rows.append(dict(zip(types.fieldNames(), values, strict=True)))
        folder = path / place_of(RAW, hour_of(at_ms))
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"{query}-{number}.parquet")
