"""The history as reports read it: every sample and every minute once, whatever upkeep is doing meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from segment_load.hadoop_files import HadoopFiles
from segment_load.history_places import HOUR_MS, HOURS, MINUTE_SCHEMA, MINUTES, RAW, SAMPLE_SCHEMA, hours_of, place_of
from segment_load.history_upkeep import roll_up

_RANGE = r"([0-9a-f]{4})-([0-9a-f]{4})-([0-9]+)$"


class HistoryMissing(Exception):
    """There is nothing to report on; the message says where nothing was found."""


@dataclass(frozen=True, slots=True)
class Period:
    """From when to when; milliseconds since 1970, None for as far as there is history.

    Args:
        from_ms: the first moment.
        to_ms: the first that does not belong to it any more.
    """

    from_ms: int | None = None
    to_ms: int | None = None

    def touches_hour(self, hour_ms: int) -> bool:
        """Whether any of an hour belongs to it."""
        begins = self.to_ms is None or hour_ms < self.to_ms
        return begins and (self.from_ms is None or self.from_ms < hour_ms + HOUR_MS)

    def holds(self, at: Column) -> Column:
        """Whether a timestamp belongs to it."""
        bounds = [F.lit(True)]
        if self.from_ms is not None:
            bounds.append(at >= F.timestamp_millis(F.lit(self.from_ms)))
        if self.to_ms is not None:
            bounds.append(at < F.timestamp_millis(F.lit(self.to_ms)))
        return reduce(Column.__and__, bounds)


def read_samples(spark: SparkSession, path: str, period: Period) -> DataFrame:
    """Samples, as `SAMPLE_SCHEMA`. Raises HistoryMissing if no hour of the period has any."""
    files = HadoopFiles(spark, path)
    closed = {hour_ms for hour_ms in hours_of(files, HOURS) if period.touches_hour(hour_ms)}
    loose = {hour_ms for hour_ms in hours_of(files, RAW) if period.touches_hour(hour_ms)} - closed
    _require(closed | loose, path)
    samples = _read(spark, files, SAMPLE_SCHEMA, {HOURS: closed, RAW: loose})
    return samples.where(period.holds(F.col("at")))


def read_minutes(spark: SparkSession, path: str, period: Period) -> DataFrame:
    """Minutes, as `MINUTE_SCHEMA`: those of upkeep, and of hours that are not closed yet from their samples.

    Raises HistoryMissing if no hour of the period has any.
    """
    files = HadoopFiles(spark, path)
    rolled = {hour_ms for hour_ms in hours_of(files, MINUTES) if period.touches_hour(hour_ms)}
    closed = {hour_ms for hour_ms in hours_of(files, HOURS) if period.touches_hour(hour_ms)} - rolled
    loose = {hour_ms for hour_ms in hours_of(files, RAW) if period.touches_hour(hour_ms)} - rolled - closed
    _require(rolled | closed | loose, path)
    parts = []
    if rolled:
        parts.append(_read(spark, files, MINUTE_SCHEMA, {MINUTES: rolled}))
    if closed | loose:
        parts.append(roll_up(_read(spark, files, SAMPLE_SCHEMA, {HOURS: closed, RAW: loose})))
    return reduce(DataFrame.unionByName, parts).where(period.holds(F.col("minute")))


def with_ring(frame: DataFrame) -> DataFrame:
    """With what a segment's name says: `segment_id`, and its hash range, `range_start` to `range_end`, both in it."""
    start, end, number = (F.regexp_extract("segment", _RANGE, part) for part in (1, 2, 3))
    return frame.withColumns(
        {
            "segment_id": number.cast("bigint"),
            "range_start": F.conv(start, 16, 10).cast("int"),
            "range_end": F.conv(end, 16, 10).cast("int"),
        }
    )


def _read(spark: SparkSession, files: HadoopFiles, schema: str, hours: dict[str, set[int]]) -> DataFrame:
    paths = [files.of(place_of(kind, hour_ms)) for kind, some in hours.items() for hour_ms in sorted(some)]
    return spark.read.schema(schema).parquet(*paths)


def _require(hours: set[int], path: str) -> None:
    if not hours:
        raise HistoryMissing(f"{path} holds no history of this period: see --history-path of the stream")
