"""One driver of the load pipeline over the bench's fleet, on so many cores; what it measured goes to a file as JSON."""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import requests
from pyspark.sql import DataFrame, SparkSession

from bench.process_tree import machine_busy_seconds, usage
from bench.segment_load_fleet import PERIOD_SECONDS
from segment_load.broker_access import BrokerAccess
from segment_load.change_filter import Look
from segment_load.record_sink import RecordTopic
from segment_load.session import make_session
from segment_load.state_store import StateStore
from segment_load.stream import LoadStream, StreamSettings

# Of how many in 100 segments the load is raised in each batch; the difference of two is the share that changes.
_WARM = (0, 100, 0, 0)
_MEASURED = (*(0,) * 3, *(1, 0) * 2, *(10, 0) * 2, *(100, 0) * 2)
# As soon as the last is done: how fast it can be, not how well it waits.
_INTERVAL_SECONDS = 0.01
_CALL_SECONDS = 30.0
_LONGEST_SECONDS = 1200.0


@dataclass(frozen=True, slots=True)
class Batch:
    """What one batch took.

    Args:
        share: how many in 100 segments changed.
        read_seconds: until what all brokers say is there.
        state_seconds: from then until what is known is worked out and kept.
        records_seconds: from then until records and pulse are stored.
        whole_seconds: of all this and of what Spark does about it.
        records: messages that the topic got, the pulse among them.
        record_bytes: of these, as the broker counts them.
        state_bytes: what is known, as it is kept.
        cpu_seconds: processor time of the driver and all its processes.
        other_cpu_seconds: of all else on the machine, such as the broker that keeps the records.
    """

    share: int
    read_seconds: float
    state_seconds: float
    records_seconds: float
    whole_seconds: float
    records: int
    record_bytes: int
    state_bytes: int
    cpu_seconds: float
    other_cpu_seconds: float


@dataclass(frozen=True, slots=True)
class _Counts:
    records: int
    record_bytes: int
    cpu_seconds: float
    machine_seconds: float
    at: float


class MeasuredStream(LoadStream):
    """The pipeline's own stream; changes the fleet after each batch and measures each.

    Args:
        spark: the session.
        settings: what it works on.
    """

    def __init__(self, spark: SparkSession, settings: StreamSettings) -> None:
        super().__init__(spark, settings)
        self.batches: list[Batch] = []
        self.is_done = False
        self._measured_settings = settings
        self._plan = self._changes()
        self._began_at = self._read_at = self._known_at = 0.0
        self._before: _Counts | None = None
        self._raised = self._raised_before = 0

    def batch(self, batch: DataFrame, batch_id: int) -> None:
        """Do one batch."""
        self._began_at = time.monotonic()
        super().batch(batch, batch_id)
        if self._before is not None:
            self.batches.append(self._batch(batch_id, self._before, self._count()))
        print(f"batch {batch_id}: {time.monotonic() - self._began_at:.1f} s", file=sys.stderr, flush=True)
        self._raised_before = self._raised
        following = next(self._plan, None)
        if following is None:
            self.is_done = True
            return
        self._raised, is_measured = following
        requests.put(f"{self._measured_settings.access.admin_url}/raised/{self._raised}", timeout=10).raise_for_status()
        self._before = self._count() if is_measured else None

    def _work_out(self, store: StateStore, batch: DataFrame, batch_id: int, look: Look) -> DataFrame:
        self._read_at = time.monotonic()
        known = super()._work_out(store, batch, batch_id, look)
        self._known_at = time.monotonic()
        return known

    def _changes(self) -> Iterator[tuple[int, bool]]:
        """What to raise after each batch, and whether to measure the one that follows."""
        counts_at = self._began_at + PERIOD_SECONDS
        while self._began_at < counts_at:
            yield 0, False
        yield from ((raised, False) for raised in _WARM)
        yield from ((raised, True) for raised in _MEASURED)

    def _batch(self, batch_id: int, before: _Counts, now: _Counts) -> Batch:
        cpu_seconds = now.cpu_seconds - before.cpu_seconds
        state = Path(self._measured_settings.folder) / "state"
        return Batch(
            share=abs(self._raised - self._raised_before),
            read_seconds=self._read_at - self._began_at,
            state_seconds=self._known_at - self._read_at,
            records_seconds=now.at - self._known_at,
            whole_seconds=now.at - before.at,
            records=now.records - before.records,
            record_bytes=now.record_bytes - before.record_bytes,
            state_bytes=sum(part.stat().st_size for part in state.glob(f"*/batch={batch_id}/*")),
            cpu_seconds=cpu_seconds,
            other_cpu_seconds=now.machine_seconds - before.machine_seconds - cpu_seconds,
        )

    def _count(self) -> _Counts:
        at = time.monotonic()
        settings = self._measured_settings
        topic = settings.access.send("GET", f"{settings.topic.path}/stats")
        return _Counts(
            topic["msgInCounter"], topic["bytesInCounter"], usage(os.getpid()).cpu_seconds, machine_busy_seconds(), at
        )


def main() -> int:
    """Measure and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--admin-url", "--service-url", "--token-file", "--records-topic", "--results-file"):
        parser.add_argument(name, required=True)
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--heap", required=True, help="of the driver's JVM, such as 2g")
    options = parser.parse_args()
    # One core is one core for Java, Python and collectors of garbage alike, as in a container of that size.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    access = BrokerAccess(options.admin_url, options.token_file, timeout_seconds=_CALL_SECONDS)
    topic = RecordTopic(options.records_topic, options.service_url, options.token_file)
    spark = make_session(f"local[{options.cores}]", spark_driver_memory=options.heap)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        with tempfile.TemporaryDirectory() as folder:
            stream = MeasuredStream(spark, StreamSettings(access, topic, folder, interval_seconds=_INTERVAL_SECONDS))
            query = stream.start()
            deadline = time.monotonic() + _LONGEST_SECONDS
            while query.isActive and not stream.is_done and time.monotonic() < deadline:
                time.sleep(0.2)
            query.stop()
            stream.close()
            if not stream.is_done:
                print(f"not done within {_LONGEST_SECONDS:g} s, or failed: {query.exception()}", file=sys.stderr)
                return 1
    finally:
        spark.stop()
    Path(options.results_file).write_text(json.dumps([asdict(one) for one in stream.batches]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
