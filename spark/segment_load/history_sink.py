"""What batches saw, kept as Parquet: one file a batch, which is there whole or not at all (R35)."""

from __future__ import annotations

import logging

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from segment_load.change_filter import RATES, topic_of
from segment_load.hadoop_files import HadoopFiles
from segment_load.history_places import DONE, HOURS, RAW, STAGING, hour_of, place_of

logger = logging.getLogger(__name__)


def samples_of(state: DataFrame) -> DataFrame:
    """What a batch saw, as `SAMPLE_SCHEMA`, from what was known after it."""
    return state.where("present").select(
        F.timestamp_millis("seen_ms").alias("at"),
        topic_of(F.col("segment")).alias("topic"),
        "segment",
        "broker",
        F.col("sampled").isNotNull().alias("counts"),
        *(F.col("sampled")[index].alias(rate) for index, rate in enumerate(RATES)),
        F.col("sampled_backlog").alias("backlog"),
    )


class HistorySink:
    """Keeps the samples of one query's batches.

    Args:
        files: the history.
        query_id: of the query: its batches have ids of their own.
    """

    def __init__(self, files: HadoopFiles, query_id: str) -> None:
        self._files = files
        self._query_id = query_id

    def keep(self, batch_id: int, state: DataFrame) -> None:
        """Keep what a batch saw; what is kept already is left as it is.

        A batch is worked out once, and its samples with it, so that a second time could only bring the same.

        Args:
            batch_id: of the batch.
            state: what was known after it.
        """
        at_ms = state.where("present").agg(F.max("seen_ms")).collect()[0][0]
        if at_ms is None:
            return
        name, folder = f"{self._query_id}-{batch_id}", place_of(RAW, hour_of(at_ms))
        if self._files.exists(f"{folder}/{name}.parquet"):
            return
        if self._files.exists(f"{place_of(HOURS, hour_of(at_ms))}/{DONE}"):
            logger.info("history: batch %d comes after its hour was closed, and is not kept (again)", batch_id)
            return
        staging = f"{STAGING}/{name}"
        samples_of(state).coalesce(1).write.mode("overwrite").parquet(self._files.of(staging))
        (part,) = (one for one in self._files.names(staging) if one.endswith(".parquet"))
        self._files.move(f"{staging}/{part}", folder, f"{name}.parquet")
        self._files.delete(staging)
