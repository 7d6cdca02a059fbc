"""What is known of segments after each batch, in versions by batch id: a batch done twice is done once (R35)."""

from __future__ import annotations

from collections.abc import Container

from pyspark.sql import DataFrame, SparkSession

from segment_load.change_filter import STATE_SCHEMA
from segment_load.hadoop_files import HadoopFiles

_VERSIONS_KEPT = 3
_DONE = "_SUCCESS"


class StateStore:
    """A folder of one query, local or of any Hadoop file system.

    Args:
        spark: the session.
        folder: of this query alone: batch ids begin anew with each.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark = spark
        parent, _, self._own = folder.rstrip("/").rpartition("/")
        self._files = HadoopFiles(spark, parent)

    def has(self, batch_id: int) -> bool:
        """Whether a batch has been worked out to its end."""
        return self._files.exists(f"{self._of(batch_id)}/{_DONE}")

    def read(self, batch_id: int) -> DataFrame:
        """What was known after a batch that there is."""
        return self._spark.read.schema(STATE_SCHEMA).parquet(self._files.of(self._of(batch_id)))

    def latest_before(self, batch_id: int) -> int | None:
        """The last batch before this one that was worked out; None if there is none."""
        return max((one for one in self.versions() if one < batch_id and self.has(one)), default=None)

    def write(self, batch_id: int, state: DataFrame, spared: Container[int] = ()) -> DataFrame:
        """Keep what is known after a batch; answers it as it is kept. Older versions go, but for those spared."""
        path = self._files.of(self._of(batch_id))
        state.coalesce(self._spark.sparkContext.defaultParallelism).write.mode("overwrite").parquet(path)
        for old in self.versions()[:-_VERSIONS_KEPT]:
            if old not in spared:
                self._files.delete(self._of(old))
        return self.read(batch_id)

    def forget_others(self) -> None:
        """Take away what other queries have left beside this one's folder: their checkpoint is gone."""
        for name in self._files.names():
            if name != self._own:
                self._files.delete(name)

    def versions(self) -> list[int]:
        """Batches of which there is something, in order; the last may not be whole."""
        names = self._files.names(self._own)
        return sorted(int(name.removeprefix("batch=")) for name in names if name.startswith("batch="))

    def _of(self, batch_id: int) -> str:
        return f"{self._own}/batch={batch_id}"
