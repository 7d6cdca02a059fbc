"""The stream: brokers asked every interval, what is news written as records, and a pulse at the end of each batch."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from scalable_topics_operator.load.records import Pulse
from scalable_topics_operator.load.statistics import StatisticsTimes
from segment_load import record_sink
from segment_load.broker_access import BrokerAccess, BrokerSilent
from segment_load.broker_source import SOURCE, BrokerStatistics
from segment_load.change_filter import Look, advance, segments_of
from segment_load.history_keeper import HistoryKeeper
from segment_load.record_sink import PulseWriter, RecordTopic
from segment_load.state_store import StateStore
from segment_load.thresholds import Thresholds

logger = logging.getLogger(__name__)

_TIMES_SECONDS = 300.0
_COMPACTION_SECONDS = 600.0
_START_SECONDS = 120.0
_LONGEST_REASON = 300
_NEWS = "news or gone"


class BatchFailed(Exception):
    """A batch could not be done; the message says why in one line, and the log says more."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """What one stream works on.

    Args:
        access: the brokers.
        topic: where records go.
        folder: checkpoint and state, of any Hadoop file system.
        thresholds_file: what the operator publishes; empty for none.
        interval_seconds: between two batches.
        history_path: where samples are kept for reports, of any Hadoop file system; empty for nowhere.
        history_retention_days: after how many whole days they go, 1 or more.
    """

    access: BrokerAccess
    topic: RecordTopic
    folder: str
    thresholds_file: str = ""
    interval_seconds: float = 10.0
    history_path: str = ""
    history_retention_days: int = 30


class LoadStream:
    """One query and what it keeps between batches, all of which can be lost: then segments begin anew (R35).

    Args:
        spark: the session.
        settings: what it works on.
    """

    def __init__(self, spark: SparkSession, settings: StreamSettings) -> None:
        self._spark = spark
        self._settings = settings
        self._thresholds = Thresholds(settings.thresholds_file)
        self._times = StatisticsTimes()
        self._times_read_at = float("-inf")
        self._compacted_at = time.monotonic()
        self._started = threading.Event()
        self._query_id = ""
        self._began_at_ms: int | None = None
        self._last_at_ms: int | None = None
        self._pulses = PulseWriter(settings.topic, settings.access)
        self._history: HistoryKeeper | None = None

    def start(self) -> StreamingQuery:
        """Begin. Raises BrokerSilent when the topic of records cannot be made."""
        settings, access = self._settings, self._settings.access
        record_sink.prepare(settings.topic, access)
        self._spark.dataSource.register(BrokerStatistics)
        query = (
            self._spark.readStream.format(SOURCE)
            .options(**access.options())
            .load()
            .writeStream.foreachBatch(self.batch)
            .option("checkpointLocation", f"{settings.folder.rstrip('/')}/checkpoint")
            .trigger(processingTime=f"{settings.interval_seconds} seconds")
            .start()
        )
        self._query_id = query.id
        self._store().forget_others()
        if settings.history_path:
            self._history = HistoryKeeper(
                self._spark, settings.history_path, settings.history_retention_days, self._store(), query.id
            )
            self._history.start()
        self._started.set()
        return query

    def close(self) -> None:
        """Let go of the brokers, once the query has ended."""
        self._pulses.close()
        if self._history is not None:
            self._history.close()

    def batch(self, batch: DataFrame, batch_id: int) -> None:
        """Do one batch; done again, it writes again what it wrote, or what brokers say by then. Raises BatchFailed."""
        try:
            self._do(batch, batch_id)
        except Exception as error:
            logger.exception("batch %d has failed", batch_id)
            # Spark looks through the text with a pattern that overflows its stack on a long one, and hangs then.
            why = str(error).partition("\n")[0][:_LONGEST_REASON]
            raise BatchFailed(f"batch {batch_id}: {type(error).__name__}: {why}") from None

    def _do(self, batch: DataFrame, batch_id: int) -> None:
        if not self._started.wait(_START_SECONDS):
            raise RuntimeError("the query's id is not known")
        settings, store = self._settings, self._store()
        batch.persist()
        try:
            brokers = batch.where("segment is null").select("at", "broker", "silence").collect()
            at_ms = int(brokers[0]["at"].timestamp() * 1000)
            silent = {row["broker"]: row["silence"] for row in brokers if row["silence"] is not None}
            look = Look(at_ms, list(silent), self._read_times(blind="" in silent), settings.interval_seconds)
            # Worked out to its end, but perhaps not written: what brokers say now is for the next batch.
            state = store.read(batch_id) if store.has(batch_id) else self._work_out(store, batch, batch_id, look)
            # After a start, and when the topic is not as it was left, all that is known is told.
            is_whole = self._pulses.is_last()
            strays = 0
            if not is_whole:
                record_sink.prepare(settings.topic, settings.access)
                self._pulses.mark()
                strays = record_sink.write_strays(state, settings.topic, at_ms)
            record_sink.write(state.where(_NEWS) if is_whole else state, settings.topic, at_ms)
            (counts,) = state.agg(
                F.count_if(F.expr(_NEWS)).alias("news"),
                F.count_if(F.expr("not gone")).alias("segments"),
                F.count("*").alias("all"),
            ).collect()
        finally:
            batch.unpersist()
        pulse = Pulse(at_ms, look.times.unseen_seconds, self._is_settled(look), counts["segments"], silent)
        self._pulses.write(pulse, strays + counts["news" if is_whole else "all"])
        if self._history is not None:
            # After all that controllers wait for.
            self._history.add(batch_id)
        self._compact()

    def _store(self) -> StateStore:
        return StateStore(self._spark, f"{self._settings.folder.rstrip('/')}/state/{self._query_id}")

    def _work_out(self, store: StateStore, batch: DataFrame, batch_id: int, look: Look) -> DataFrame:
        last = store.latest_before(batch_id)
        if last is not None:
            known = store.read(last)
        else:
            known = record_sink.read_known(self._spark, self._settings.topic, look.at_ms)
        thresholds = self._thresholds.read(self._spark)
        if self._thresholds.problem:
            logger.warning("%s; those read before are used", self._thresholds.problem)
        spared = self._history.waiting if self._history is not None else frozenset()
        return store.write(batch_id, advance(segments_of(batch), known, thresholds, look), spared)

    def _read_times(self, *, blind: bool) -> StatisticsTimes:
        """When brokers renew their statistics. Raises BrokerSilent while that has never been known and is needed."""
        if time.monotonic() - self._times_read_at > _TIMES_SECONDS:
            try:
                self._times = self._settings.access.statistics_times()
                self._times_read_at = time.monotonic()
            except BrokerSilent as silent:
                if not blind and self._times_read_at == float("-inf"):
                    raise
                logger.warning("when brokers renew their statistics is not known: %s", silent)
        return self._times

    def _is_settled(self, look: Look) -> bool:
        """Whether all brokers have answered without a break for so long that what none tells of is not loaded."""
        most_gap_ms = 1000 * look.times.most_gap_seconds(look.interval_seconds)
        if look.silent or self._last_at_ms is None or not 0 <= look.at_ms - self._last_at_ms <= most_gap_ms:
            self._began_at_ms = look.at_ms
        self._last_at_ms = look.at_ms
        assert self._began_at_ms is not None
        return look.at_ms - self._began_at_ms >= 1000 * look.times.unseen_seconds

    def _compact(self) -> None:
        if time.monotonic() - self._compacted_at < _COMPACTION_SECONDS:
            return
        self._compacted_at = time.monotonic()
        try:
            record_sink.compact(self._settings.topic, self._settings.access)
        except BrokerSilent as silent:
            logger.warning("the topic of records is not compacted: %s", silent)
