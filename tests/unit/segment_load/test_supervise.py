"""The supervisor runs what the operator's files say, and nothing longer than they are touched (R34)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from segment_load.supervise import Supervisor

# A child that is like a pipeline in that it lives until its standard input ends.
_LIVES = "import sys; open(sys.argv[1], 'a').write('started\\n'); sys.stdin.read()"
_LINGERS = """
import pathlib, signal, sys, time
def end(*_):
    pathlib.Path(sys.argv[1] + ".told").write_text(str(time.monotonic()))
    time.sleep(2)
    sys.exit()
signal.signal(signal.SIGTERM, end)
pathlib.Path(sys.argv[1]).write_text("started")
time.sleep(60)
"""
_FAILS = "import sys; sys.exit('segment_load: the broker is away')"


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Bench:
    """A folder with one job, and a supervisor of it."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.job = folder / "uid"
        self.job.mkdir()
        self.log = folder / "log.txt"
        self.supervisor = Supervisor(folder, (sys.executable, "-c"), (), self.clock)

    def ask(self, code: str = _LIVES) -> None:
        (self.job / "job.json").write_text(json.dumps({"arguments": [code, str(self.log)]}))

    def touch(self) -> None:
        stamp = (self.job / "job.json").stat().st_mtime_ns + 1_000_000
        os.utime(self.job / "job.json", ns=(stamp, stamp))

    def look(self) -> dict[str, str] | None:
        self.supervisor.look()
        file = self.job / "state.json"
        found: dict[str, str] | None = json.loads(file.read_text()) if file.exists() else None
        return found

    def starts(self) -> int:
        return self.log.read_text().count("started") if self.log.exists() else 0

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.supervisor.end()


def test_a_job_is_run_and_ended_with_its_file(bench: Bench) -> None:
    assert bench.look() is None
    bench.ask()
    state = bench.look()
    assert state is not None
    assert (state["phase"], state["reason"]) == ("Running", "PipelineRunning")
    bench.until(lambda: bench.starts() == 1)
    (bench.job / "job.json").unlink()
    assert bench.look() is None, "no state says that nothing is at work any more"


def test_one_that_ends_is_started_again_later_and_says_why(bench: Bench) -> None:
    bench.ask(_FAILS)
    assert bench.look() is not None
    bench.until(lambda: (bench.look() or {}).get("phase") == "Failed")
    state = bench.look()
    assert state is not None
    assert state["message"] == "exit code 1; the broker is away"
    bench.ask()
    assert bench.look() is not None
    bench.until(lambda: bench.starts() == 1)


def test_a_job_that_nobody_touches_is_ended_and_goes_on_when_it_is_touched(bench: Bench) -> None:
    bench.ask()
    bench.look()
    bench.until(lambda: bench.starts() == 1)
    bench.clock.seconds = 14.0
    bench.touch()
    bench.look()
    bench.clock.seconds = 28.0
    assert bench.look() is not None, "it was touched 14 s ago"
    bench.clock.seconds = 29.5
    assert bench.look() is None
    bench.clock.seconds = 31.0
    assert bench.look() is None
    assert bench.starts() == 1
    bench.touch()
    assert bench.look() is not None
    bench.until(lambda: bench.starts() == 2)


def test_jobs_whose_operator_is_silent_are_ended_together(bench: Bench, tmp_path: Path) -> None:
    """Each takes a while, and together they may take no longer than the Lease allows."""
    logs = [tmp_path / f"log-{number}" for number in range(3)]
    for number, log in enumerate(logs):
        folder = tmp_path / f"job-{number}"
        folder.mkdir()
        (folder / "job.json").write_text(json.dumps({"arguments": [_LINGERS, str(log)]}))
    bench.look()
    bench.until(lambda: all(log.exists() for log in logs))
    bench.clock.seconds = 16.0
    bench.look()
    told = [float(Path(f"{log}.told").read_text()) for log in logs]
    assert max(told) - min(told) < 1.0, "none has waited for another's end"
    assert not list(tmp_path.glob("job-*/state.json"))


def test_a_state_that_a_supervisor_left_behind_is_taken_away(bench: Bench) -> None:
    (bench.job / "state.json").write_text("{}")
    assert bench.look() is None


def test_a_job_with_other_arguments_is_run_anew(bench: Bench) -> None:
    bench.ask()
    bench.look()
    bench.until(lambda: bench.starts() == 1)
    bench.ask(_LIVES + " # otherwise")
    bench.look()
    bench.until(lambda: bench.starts() == 2)


def test_a_file_that_is_no_job_is_told_of(bench: Bench) -> None:
    (bench.job / "job.json").write_text("{")
    state = bench.look()
    assert state is not None
    assert state["message"] == "job.json cannot be run: JSONDecodeError"


def test_it_ends_with_whoever_started_it_and_takes_its_pipelines_along(bench: Bench, tmp_path: Path) -> None:
    """However that one ends: standard input closes."""
    command = (sys.executable, "-m", "segment_load", "supervise", "--folder", str(tmp_path), "--end-with-stdin")
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        # What it runs is the real command, which ends at once for want of arguments.
        bench.ask()
        bench.until((bench.job / "state.json").exists)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0
        assert not (bench.job / "state.json").exists()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
