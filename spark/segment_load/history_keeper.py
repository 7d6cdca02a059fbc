"""Keeps the history beside the stream, in a thread of its own: whatever becomes of it, batches go on (R35)."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque

from pyspark.sql import SparkSession

from segment_load.hadoop_files import HadoopFiles
from segment_load.history_places import STAGING
from segment_load.history_sink import HistorySink
from segment_load.history_upkeep import HistoryUpkeep
from segment_load.state_store import StateStore

logger = logging.getLogger(__name__)

_MOST_WAITING = 60
_UPKEEP_SECONDS = 300.0
_FIRST_PAUSE_SECONDS, _LAST_PAUSE_SECONDS = 5.0, 300.0
_CLOSE_SECONDS = 5.0
_LONGEST_REASON = 300
_POOL = "history"


class HistoryKeeper:
    """Takes batches in, keeps their samples in the order they came, and does the upkeep when none waits.

    A batch waits while the history cannot be written, and with it the state it is taken from. 60 may wait, which is ten
    minutes at the usual interval; of more the oldest are given up, and the log says so.

    Args:
        spark: the session.
        path: the history, of any Hadoop file system.
        retention_days: after how many whole days a date goes.
        store: what was known after each batch.
        query_id: of the stream's query.
        retry_seconds: before what has failed is tried again for the first time; then later and later.
    """

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        retention_days: int,
        store: StateStore,
        query_id: str,
        retry_seconds: float = _FIRST_PAUSE_SECONDS,
    ) -> None:
        self._spark = spark
        self._path = path
        self._retention_days = retention_days
        self._store = store
        self._query_id = query_id
        self._retry_seconds = retry_seconds
        self._waiting: deque[int] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="segment-load-history", daemon=True)
        self._made: tuple[HistorySink, HistoryUpkeep] | None = None
        self._upkeep_at = time.monotonic()
        self._job_group = f"history-{query_id}"

    def start(self) -> None:
        """Begin, with what an earlier run may have left."""
        self._thread.start()

    def add(self, batch_id: int) -> None:
        """Have the samples of a batch kept, whose state is there; returns at once."""
        with self._changed:
            if batch_id not in self._waiting:
                self._waiting.append(batch_id)
            while len(self._waiting) > _MOST_WAITING:
                logger.error("history: batch %d is given up: too many wait", self._waiting.popleft())
            self._changed.notify_all()

    @property
    def waiting(self) -> frozenset[int]:
        """Batches whose state is still needed."""
        with self._changed:
            return frozenset(self._waiting)

    def close(self) -> None:
        """End, soon; what waits is kept after the next start, if its state is still there."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(_CLOSE_SECONDS)
        if self._thread.is_alive():
            self._spark.sparkContext.cancelJobGroup(self._job_group)
            self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        context = self._spark.sparkContext
        context.setJobGroup(self._job_group, "history", interruptOnCancel=True)
        # Of cores that become free, each pool gets as many: the stream does not queue behind the upkeep.
        context.setLocalProperty("spark.scheduler.pool", _POOL)
        pause_seconds, is_begun = 0.0, False
        while not self._rest(pause_seconds):
            try:
                if not is_begun:
                    self._take_left()
                    is_begun = True
                self._work()
                pause_seconds = 0.0
            except Exception as error:
                if self._closed:
                    return
                pause_seconds = min(max(self._retry_seconds, 2 * pause_seconds), _LAST_PAUSE_SECONDS)
                # Of what the file system refuses, py4j itself tells no more than which method was called.
                why = str(getattr(error, "java_exception", error)).strip().partition("\n")[0][:_LONGEST_REASON]
                logger.warning(
                    "history in %s is not kept, %d batches wait; tried again in %.0f s: %s: %s",
                    *(self._path, len(self.waiting), pause_seconds, type(error).__name__, why),
                )

    def _rest(self, pause_seconds: float) -> bool:
        """Wait for something to do, or for as long as a failure asks; answers whether to end."""
        with self._changed:
            if pause_seconds:
                self._changed.wait_for(lambda: self._closed, pause_seconds)
            else:
                until_upkeep = max(0.0, self._upkeep_at - time.monotonic())
                self._changed.wait_for(lambda: self._closed or bool(self._waiting), until_upkeep)
            return self._closed

    def _take_left(self) -> None:
        """Put what an earlier run of the query may have left before what has come since."""
        left = [batch_id for batch_id in self._store.versions() if self._store.has(batch_id)]
        with self._changed:
            self._waiting = deque(sorted({*left, *self._waiting}))

    def _work(self) -> None:
        """Keep what waits, one batch at a time; then do one step of the upkeep if it is due."""
        sink, upkeep = self._opened()
        with self._changed:
            batch_id = self._waiting[0] if self._waiting else None
        if batch_id is not None:
            if self._store.has(batch_id):
                sink.keep(batch_id, self._store.read(batch_id))
            else:
                logger.warning("history: batch %d is lost: its state is gone", batch_id)
            with self._changed:
                if self._waiting and self._waiting[0] == batch_id:
                    self._waiting.popleft()
        elif time.monotonic() >= self._upkeep_at and not upkeep.step(time.time_ns() // 1_000_000):
            self._upkeep_at = time.monotonic() + _UPKEEP_SECONDS

    def _opened(self) -> tuple[HistorySink, HistoryUpkeep]:
        if self._made is None:
            files = HadoopFiles(self._spark, self._path)
            # What a run that died was about to move: its batch is done anew.
            files.delete(STAGING)
            upkeep = HistoryUpkeep(self._spark.newSession(), files, self._retention_days)
            self._made = HistorySink(files, self._query_id), upkeep
        return self._made
