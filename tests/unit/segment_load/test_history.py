"""The history: every sample once, whatever is repeated, cut off or cleared away meanwhile (R35)."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from segment_load.hadoop_files import HadoopFiles
from segment_load.history_keeper import HistoryKeeper
from segment_load.history_places import DAY_MS, DONE, HOUR_MS, HOURS, MINUTES, RAW, hours_of, place_of
from segment_load.history_reading import HistoryMissing, Period, read_minutes, read_samples, with_ring
from segment_load.history_sink import HistorySink
from segment_load.history_upkeep import GRACE_MS, READERS_MS, HistoryUpkeep
from segment_load.state_store import StateStore
from tests.support.load_history import Seen, segment_name, state_of, write_loose

pytestmark = pytest.mark.spark
# 2023-11-14 22:00 UTC.
START_MS = 1_699_999_200_000
A, B = segment_name(0), segment_name(1)


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> HadoopFiles:
    return HadoopFiles(spark, str(tmp_path / "history"))


@pytest.fixture
def upkeep(spark: SparkSession, files: HadoopFiles) -> HistoryUpkeep:
    return HistoryUpkeep(spark.newSession(), files, 2)


def samples(spark: SparkSession, files: HadoopFiles, period: Period | None = None) -> list[Row]:
    return read_samples(spark, files.folder, period or Period()).orderBy("at", "segment").collect()


def minutes(spark: SparkSession, files: HadoopFiles) -> list[Row]:
    return read_minutes(spark, files.folder, Period()).orderBy("minute", "segment").collect()


def an_hour(path: str, hour_ms: int = START_MS, batches: int = 4) -> None:
    """Batches whose minutes are spread over several of them."""
    write_loose(
        Path(path),
        {
            hour_ms + number * 20_000: [
                Seen(A, (float(number), 10.0, 0.0, 0.0), backlog={"s": number, "t": 1}),
                Seen(B, None),
            ]
            for number in range(batches)
        },
        query=str(hour_ms),
    )


def test_a_batch_is_kept_as_it_was_seen_and_once(spark: SparkSession, files: HadoopFiles) -> None:
    sink = HistorySink(files, "q")
    seen = [Seen(A, (1.0, 2.0, 3.0, 4.0), "b:1", {"s": 7}), Seen(B, None, "b:2")]
    for _ in range(2):
        sink.keep(3, state_of(spark, START_MS + 5_000, seen))
    (a, b) = samples(spark, files)
    assert a.asDict() == {
        "topic": "topic://t/n/a",
        "segment": A,
        "broker": "b:1",
        "counts": True,
        "backlog": {"s": 7},
        "msg_rate_in": 1.0,
        "bytes_rate_in": 2.0,
        "msg_rate_out": 3.0,
        "bytes_rate_out": 4.0,
        "at": a["at"],
    }
    assert int(a["at"].timestamp() * 1000) == START_MS + 5_000
    assert (b["broker"], b["counts"], b["msg_rate_in"], b["backlog"]) == ("b:2", False, None, None)
    assert [one.name for one in Path(files.of(place_of(RAW, START_MS))).glob("*.parquet")] == ["q-3.parquet"]
    sink.keep(4, state_of(spark, START_MS + 9_000, []))
    assert len(samples(spark, files)) == 2, "nothing was seen, so nothing is kept"


def test_minutes_are_right_whether_rolled_up_or_not_and_across_batches(
    spark: SparkSession, files: HadoopFiles, upkeep: HistoryUpkeep
) -> None:
    an_hour(files.folder)
    before = minutes(spark, files)
    first, idle, second, _ = before
    assert (first["seen"], first["samples"], first["msg_rate_in_avg"], first["msg_rate_in_max"]) == (3, 3, 1.0, 2.0)
    assert first["backlog_max"] == 3
    assert (idle["seen"], idle["samples"], idle["msg_rate_in_avg"], idle["backlog_max"]) == (3, 0, None, None)
    assert (second["seen"], second["msg_rate_in_avg"]) == (1, 3.0)
    assert not upkeep.step(START_MS + HOUR_MS + GRACE_MS - 1), "late batches may come"
    assert upkeep.step(START_MS + HOUR_MS + GRACE_MS)
    assert hours_of(files, MINUTES) == {START_MS}
    assert minutes(spark, files) == before
    shutil.rmtree(files.of(RAW))
    assert minutes(spark, files) == before


def test_many_files_become_few_and_readers_never_see_half_or_double(
    spark: SparkSession, files: HadoopFiles, upkeep: HistoryUpkeep
) -> None:
    an_hour(files.folder)
    an_hour(files.folder, START_MS + HOUR_MS)
    before = samples(spark, files), minutes(spark, files)
    now_ms = START_MS + 2 * HOUR_MS + GRACE_MS
    steps = 0
    while upkeep.step(now_ms):
        steps += 1
        assert (samples(spark, files), minutes(spark, files)) == before
    assert steps == 4, "roll-ups and few files of two hours; what a reader may have open stays"
    assert hours_of(files, RAW) == hours_of(files, HOURS) == {START_MS, START_MS + HOUR_MS}
    later_ms = time.time_ns() // 1_000_000 + READERS_MS + 60_000
    ours = HistoryUpkeep(spark.newSession(), files, 100_000)
    while ours.step(later_ms):
        assert (samples(spark, files), minutes(spark, files)) == before
    assert hours_of(files, RAW) == set()
    assert len(list(Path(files.of(place_of(HOURS, START_MS))).glob("*.parquet"))) == 1


def test_a_batch_that_comes_when_its_hour_is_closed_changes_nothing(
    spark: SparkSession, files: HadoopFiles, upkeep: HistoryUpkeep
) -> None:
    sink = HistorySink(files, "q")
    state = state_of(spark, START_MS, [Seen(A)])
    sink.keep(1, state)
    while upkeep.step(START_MS + HOUR_MS + GRACE_MS):
        pass
    before = samples(spark, files)
    shutil.rmtree(files.of(RAW))
    sink.keep(1, state)
    assert hours_of(files, RAW) == set()
    assert samples(spark, files) == before


@pytest.mark.parametrize("kind", [MINUTES, HOURS])
def test_a_step_that_died_is_invisible_and_done_anew(
    spark: SparkSession, files: HadoopFiles, upkeep: HistoryUpkeep, kind: str
) -> None:
    an_hour(files.folder)
    before = samples(spark, files), minutes(spark, files)
    now_ms = START_MS + HOUR_MS + GRACE_MS
    while START_MS not in hours_of(files, kind):
        assert upkeep.step(now_ms)
    folder = Path(files.of(place_of(kind, START_MS)))
    # Died when the files were in their place, and before it said so.
    (folder / DONE).unlink()
    (folder / "_temporary" / "0").mkdir(parents=True)
    assert (samples(spark, files), minutes(spark, files)) == before
    while upkeep.step(now_ms):
        pass
    assert (folder / DONE).exists()
    assert not (folder / "_temporary").exists()
    assert len(list(folder.glob("*.parquet"))) == 1
    assert (samples(spark, files), minutes(spark, files)) == before


def test_clearing_away_that_died_half_way_is_invisible(
    spark: SparkSession, files: HadoopFiles, upkeep: HistoryUpkeep
) -> None:
    an_hour(files.folder)
    before = samples(spark, files), minutes(spark, files)
    while upkeep.step(START_MS + HOUR_MS + GRACE_MS):
        pass
    for file in list(Path(files.of(place_of(RAW, START_MS))).glob("*.parquet"))[::2]:
        file.unlink()
    assert (samples(spark, files), minutes(spark, files)) == before


_ONE_STEP = """
import sys
from segment_load.hadoop_files import HadoopFiles
from segment_load.history_upkeep import HistoryUpkeep
from segment_load.session import make_session
spark = make_session("local[1]")
HistoryUpkeep(spark, HadoopFiles(spark, sys.argv[1]), 2).step(int(sys.argv[2]))
HistoryUpkeep(spark, HadoopFiles(spark, sys.argv[1]), 2).step(int(sys.argv[2]))
"""


def test_a_process_killed_while_it_makes_few_files_of_many_loses_and_doubles_nothing(
    spark: SparkSession, files: HadoopFiles, upkeep: HistoryUpkeep
) -> None:
    an_hour(files.folder, batches=150)
    before = samples(spark, files), minutes(spark, files)
    now_ms = START_MS + HOUR_MS + GRACE_MS
    process = subprocess.Popen([sys.executable, "-c", _ONE_STEP, files.folder, str(now_ms)], start_new_session=True)
    folder = Path(files.of(place_of(HOURS, START_MS)))
    try:
        while not (folder / "_temporary").exists():
            assert process.poll() is None, "it has ended before it could be killed"
            time.sleep(0.002)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert START_MS not in hours_of(files, HOURS)
    assert (samples(spark, files), minutes(spark, files)) == before
    while upkeep.step(now_ms):
        pass
    assert START_MS in hours_of(files, HOURS)
    assert (samples(spark, files), minutes(spark, files)) == before


def test_dates_past_retention_go_whole(spark: SparkSession, files: HadoopFiles, upkeep: HistoryUpkeep) -> None:
    midnight_ms = START_MS - START_MS % DAY_MS
    for hour_ms in (midnight_ms, midnight_ms + 23 * HOUR_MS, midnight_ms + DAY_MS):
        an_hour(files.folder, hour_ms)
    now_ms = midnight_ms + 3 * DAY_MS - 1
    while upkeep.step(now_ms):
        pass
    assert len(hours_of(files, HOURS)) == 3
    while upkeep.step(now_ms + 1):
        pass
    assert hours_of(files, HOURS) == hours_of(files, MINUTES) == {midnight_ms + DAY_MS}
    assert len(samples(spark, files)) == 8


def test_a_period_is_cut_out_and_nothing_is_said_to_be_there_that_is_not(
    spark: SparkSession, files: HadoopFiles
) -> None:
    an_hour(files.folder)
    an_hour(files.folder, START_MS + HOUR_MS)
    inside = Period(START_MS + 20_000, START_MS + HOUR_MS + 20_000)
    assert len(samples(spark, files, inside)) == 8
    with pytest.raises(HistoryMissing, match="holds no history of this period"):
        read_minutes(spark, files.folder, Period(START_MS + DAY_MS))
    with pytest.raises(HistoryMissing, match="nowhere holds no history"):
        read_samples(spark, files.folder + "/nowhere", Period())


def test_names_tell_where_on_the_ring_segments_are(spark: SparkSession, files: HadoopFiles) -> None:
    write_loose(Path(files.folder), {START_MS: [Seen(segment_name(12, 0x8000, 0xBFFF))]})
    (row,) = with_ring(read_samples(spark, files.folder, Period())).collect()
    assert (row["segment_id"], row["range_start"], row["range_end"]) == (12, 0x8000, 0xBFFF)


class Keeping:
    """A keeper over a state store of its own."""

    def __init__(self, spark: SparkSession, folder: Path, path: Path) -> None:
        self.spark = spark
        self.path = path
        self.store = StateStore(spark, f"{folder}/state/q")
        self.keeper = HistoryKeeper(spark, str(path), 100_000, self.store, "q", retry_seconds=0.2)

    def batch(self, number: int) -> None:
        self.store.write(number, state_of(self.spark, START_MS + number * 1000, [Seen(A)]), self.keeper.waiting)
        began = time.monotonic()
        self.keeper.add(number)
        assert time.monotonic() - began < 0.5, "it does not wait for the history"

    def until_kept(self, batches: int, within_seconds: float = 60.0) -> None:
        deadline = time.monotonic() + within_seconds
        while self._kept() != batches:
            assert time.monotonic() < deadline, f"{self._kept()} of {batches} batches are kept"
            threading.Event().wait(0.1)

    def _kept(self) -> int:
        # Upkeep may take the hour, which is long over, at any time.
        try:
            return read_samples(self.spark, str(self.path), Period()).count()
        except HistoryMissing:
            return 0


@pytest.fixture
def keeping(spark: SparkSession, tmp_path: Path) -> Iterator[Keeping]:
    made = Keeping(spark, tmp_path, tmp_path / "mount" / "history")
    yield made
    made.keeper.close()


def test_a_history_that_fails_delays_nothing_and_is_tried_again(
    keeping: Keeping, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    in_the_way = tmp_path / "mount"
    in_the_way.write_text("no folder")
    keeping.keeper.start()
    for number in range(8):
        keeping.batch(number)
    deadline = time.monotonic() + 60
    while "8 batches wait" not in caplog.text:
        assert time.monotonic() < deadline, caplog.text
        threading.Event().wait(0.1)
    assert keeping.store.versions() == list(range(8)), "what waits is spared"
    in_the_way.unlink()
    keeping.until_kept(8)
    keeping.batch(8)
    assert len(keeping.store.versions()) <= 4


def test_what_an_earlier_run_has_left_is_kept_at_the_next_start(keeping: Keeping) -> None:
    keeping.store.write(1, state_of(keeping.spark, START_MS, [Seen(A)]))
    keeping.keeper.start()
    keeping.until_kept(1)


def test_of_too_many_that_wait_the_oldest_are_given_up(keeping: Keeping, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(61):
        keeping.keeper.add(number)
    assert keeping.keeper.waiting == frozenset(range(1, 61))
    assert "batch 0 is given up" in caplog.text
    keeping.keeper.start()
