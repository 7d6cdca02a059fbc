"""Upkeep of the history, an hour at a time: roll-ups, few files instead of many, and what is too old goes.

Each step can be done again: what it makes counts only with its `_SUCCESS`, and a step that died is done anew over what
it left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from segment_load.change_filter import RATES
from segment_load.hadoop_files import HadoopFiles
from segment_load.history_places import (
    DAY_MS,
    DONE,
    HOUR_MS,
    HOURS,
    MINUTES,
    RAW,
    SAMPLE_SCHEMA,
    date_start_ms,
    hours_of,
    place_of,
)

logger = logging.getLogger(__name__)

GRACE_MS = 600_000
"""How long after its end an hour is closed: batches that are late come before."""
READERS_MS = HOUR_MS
"""For how long readers that have begun with the many files of an hour still find them."""
_FILE_BYTES = 64 * 1024 * 1024
_READ_BYTES = 16 * 1024 * 1024


def roll_up(samples: DataFrame) -> DataFrame:
    """Minutes of segments, as `MINUTE_SCHEMA`, from samples. A minute is right only if all of it is among them."""
    backlog = F.aggregate(F.map_values("backlog"), F.lit(0).cast("bigint"), lambda sum_, one: sum_ + one)
    return (
        samples.withColumn("minute", F.date_trunc("minute", "at"))
        .groupBy("minute", "topic", "segment")
        .agg(
            F.max_by("broker", "at").alias("broker"),
            F.count("*").alias("seen"),
            F.count_if("counts").alias("samples"),
            *(one for rate in RATES for one in (F.avg(rate).alias(f"{rate}_avg"), F.max(rate).alias(f"{rate}_max"))),
            F.max(backlog).alias("backlog_max"),
        )
    )


class HistoryUpkeep:
    """Keeps the history in order.

    Args:
        spark: a session of its own, whose settings this changes.
        files: the history.
        retention_days: after how many whole days a date goes, 1 or more.
    """

    def __init__(self, spark: SparkSession, files: HadoopFiles, retention_days: int) -> None:
        self._spark = spark
        self._files = files
        self._retention_ms = retention_days * DAY_MS
        # Short tasks, so that those of the stream never wait for long.
        spark.conf.set("spark.sql.files.maxPartitionBytes", str(_READ_BYTES))

    def step(self, now_ms: int) -> bool:
        """Do one thing that is due; answers whether there was one.

        Args:
            now_ms: milliseconds since 1970.
        """
        return self._expire(now_ms) or self._close(now_ms) or self._clear(now_ms)

    def _expire(self, now_ms: int) -> bool:
        """Take away a date that is past retention."""
        for kind in (RAW, HOURS, MINUTES):
            for name in self._files.names(kind):
                start_ms = date_start_ms(name.removeprefix("date="))
                if start_ms is not None and start_ms + DAY_MS + self._retention_ms <= now_ms:
                    self._files.delete(f"{kind}/{name}")
                    logger.info("history: %s/%s is past retention and gone", kind, name)
                    return True
        return False

    def _close(self, now_ms: int) -> bool:
        """Make the roll-ups, or the few files, of the oldest hour that is over and has none."""
        made: tuple[tuple[str, Callable[[int], None]], ...] = ((MINUTES, self._roll_up), (HOURS, self._compact))
        loose = hours_of(self._files, RAW)
        for kind, make in made:
            todo = loose - hours_of(self._files, kind)
            over = [hour_ms for hour_ms in todo if hour_ms + HOUR_MS + GRACE_MS <= now_ms]
            if over:
                make(min(over))
                return True
        return False

    def _clear(self, now_ms: int) -> bool:
        """Take away the many files of an hour whose few files have been there for a while."""
        for hour_ms in hours_of(self._files, RAW) & hours_of(self._files, HOURS) & hours_of(self._files, MINUTES):
            done_ms = self._files.modified_ms(f"{place_of(HOURS, hour_ms)}/{DONE}")
            if done_ms + READERS_MS <= now_ms:
                self._files.delete(place_of(RAW, hour_ms))
                return True
        return False

    def _roll_up(self, hour_ms: int) -> None:
        rolled = roll_up(self._loose(hour_ms)).coalesce(self._files_for(hour_ms))
        rolled.sortWithinPartitions("topic", "segment", "minute").write.mode("overwrite").parquet(
            self._files.of(place_of(MINUTES, hour_ms))
        )

    def _compact(self, hour_ms: int) -> None:
        few = self._loose(hour_ms).repartition(self._files_for(hour_ms), "topic")
        few.sortWithinPartitions("topic", "segment", "at").write.mode("overwrite").parquet(
            self._files.of(place_of(HOURS, hour_ms))
        )

    def _loose(self, hour_ms: int) -> DataFrame:
        return self._spark.read.schema(SAMPLE_SCHEMA).parquet(self._files.of(place_of(RAW, hour_ms)))

    def _files_for(self, hour_ms: int) -> int:
        return 1 + self._files.size_bytes(place_of(RAW, hour_ms)) // _FILE_BYTES
