"""`python -m segment_load supervise`: runs the pipelines that an operator beside it asks for in a folder (R34)."""

from __future__ import annotations

import argparse
import logging
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from scalable_topics_operator.load.back_off import BackOff
from scalable_topics_operator.load.pipeline_job import RunnerPhase, RunnerState
from scalable_topics_operator.load.supervised_job import (
    END_SECONDS,
    JOB_FILE,
    STATE_FILE,
    UNTOUCHED_SECONDS,
    decode_job,
    encode_state,
)
from segment_load.ending import told_to_end

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5
_UNUSABLE_SECONDS = 60.0
_RUNNING = RunnerState(RunnerPhase.RUNNING, "PipelineRunning")
_OWN_WORDS = "segment_load: "


def add_parser(jobs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to those of `python -m segment_load`."""
    parser = jobs.add_parser("supervise", help="run the pipelines that an operator asks for in a folder")
    parser.add_argument("--folder", required=True, help="shared with the operator alone: it holds secrets")
    parser.add_argument("--master", default="local[2]", help="Spark master of each pipeline (local[2])")
    parser.add_argument("--end-with-stdin", action="store_true", help="end when standard input is closed")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Supervise until told to end; answers the exit code."""
    ending = told_to_end(with_stdin=options.end_with_stdin)
    folder = Path(options.folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"segment_load: {options.folder}: {error.strerror}", file=sys.stderr)
        return 2
    supervisor = Supervisor(folder, (sys.executable, "-m", "segment_load"), ("--master", options.master))
    try:
        while not ending.wait(_LOOK_SECONDS):
            supervisor.look()
    finally:
        supervisor.end()
    return 0


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a job's file says, and when it was touched."""

    text: str
    touched_ns: int


@dataclass(slots=True)
class _Job:
    """One pipeline.

    Args:
        text: what its file says.
        touched_ns: the file's modification time as last seen.
        seen_seconds: monotonic time when that was new.
        process: the pipeline; None between two starts.
        began_seconds: monotonic time of its start.
        back_off: pauses before the next starts.
        due_seconds: monotonic time of it.
        reader: passes on what it says.
        words: what it said last in its own words; of one that has ended, with its exit code.
    """

    text: str
    touched_ns: int
    seen_seconds: float
    process: subprocess.Popen[str] | None = None
    began_seconds: float = 0.0
    back_off: BackOff = field(default_factory=BackOff)
    due_seconds: float = 0.0
    reader: threading.Thread | None = None
    words: list[str] = field(default_factory=list)


class Supervisor:
    """Runs a process for each job of a folder, and again when it ends.

    Args:
        folder: what to run is there.
        command: of `segment_load`.
        more: arguments that each gets besides its own.
        now: monotonic time in seconds.
    """

    def __init__(
        self, folder: Path, command: Sequence[str], more: Sequence[str], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = folder
        self._command = tuple(command)
        self._more = tuple(more)
        self._now = now
        self._jobs: dict[str, _Job] = {}

    def look(self) -> None:
        """Start what is due, end what may not run, and say how all stands."""
        now = self._now()
        folders = [folder for folder in sorted(self._folder.iterdir()) if folder.is_dir()]
        asked = {folder.name: found for folder in folders if (found := _asked(folder)) is not None}
        for name, job in self._jobs.items():
            if name in asked and asked[name].touched_ns != job.touched_ns:
                job.touched_ns, job.seen_seconds = asked[name].touched_ns, now
        other = {name for name, job in self._jobs.items() if name not in asked or asked[name].text != job.text}
        # Their operator is gone, or may not have them run any more; another one may begin soon.
        silent = {name for name, job in self._jobs.items() if now - job.seen_seconds > UNTOUCHED_SECONDS}
        self._end(other | silent)
        for name in other:
            del self._jobs[name]
        for folder in folders:
            found = asked.get(folder.name)
            if found is None:
                # That it is not there says that nothing is at work, which holds for one that died before it could.
                (folder / STATE_FILE).unlink(missing_ok=True)
                continue
            job = self._jobs.setdefault(folder.name, _Job(found.text, found.touched_ns, now))
            if folder.name not in silent - other:
                self._run(folder, job, now)

    def end(self) -> None:
        """End all pipelines."""
        self._end(self._jobs.keys())
        self._jobs.clear()

    def _run(self, folder: Path, job: _Job, now: float) -> None:
        process = job.process
        if process is None and now >= job.due_seconds:
            process = self._started(folder, job)
        if process is not None and process.poll() is not None:
            job.process = None
            if job.reader is not None:
                job.reader.join(_LOOK_SECONDS)
            job.due_seconds = now + random.uniform(0.5, 1.0) * job.back_off.after(now - job.began_seconds)
            job.words = [f"exit code {process.returncode}", *job.words]
            logger.error("%s: the pipeline has ended: %s", folder.name, "; ".join(job.words))
        if job.process is None:
            why = "; ".join(job.words) or "it could not be started"
            _tell(folder, RunnerState(RunnerPhase.FAILED, "PipelineEnded", why))
        else:
            _tell(folder, _RUNNING)

    def _started(self, folder: Path, job: _Job) -> subprocess.Popen[str] | None:
        try:
            job.process = subprocess.Popen(
                (*self._command, *decode_job(job.text), *self._more, "--end-with-stdin"),
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            job.words = [f"{JOB_FILE} cannot be run: {type(error).__name__}"]
            job.due_seconds = self._now() + _UNUSABLE_SECONDS
            return None
        job.began_seconds = self._now()
        logger.info("%s: pipeline started, process %d", folder.name, job.process.pid)
        job.words = []
        job.reader = threading.Thread(target=_pass_on, args=(job.process.stderr, job.words), daemon=True)
        job.reader.start()
        return job.process

    def _end(self, names: Collection[str]) -> None:
        running = {name: job.process for name, job in self._jobs.items() if name in names and job.process is not None}
        # All at once: each may take a while, and none may be at work when others take over.
        for name, process in running.items():
            logger.info("%s: the pipeline is ended", name)
            process.terminate()
            if process.stdin is not None:
                process.stdin.close()
        for name, process in running.items():
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._jobs[name].process = None
        for name in names:
            (self._folder / name / STATE_FILE).unlink(missing_ok=True)


def _asked(folder: Path) -> _Asked | None:
    """What a folder asks for; None if nothing."""
    try:
        return _Asked((folder / JOB_FILE).read_text(encoding="utf-8"), (folder / JOB_FILE).stat().st_mtime_ns)
    except OSError:
        return None


def _pass_on(stream: IO[str], words: list[str]) -> None:
    for line in stream:
        sys.stderr.write(line)
        if line.startswith(_OWN_WORDS):
            words[:] = [line.removeprefix(_OWN_WORDS).strip()]


def _tell(folder: Path, state: RunnerState) -> None:
    text, file, draft = encode_state(state), folder / STATE_FILE, folder / f".{STATE_FILE}"
    try:
        if file.read_text(encoding="utf-8") == text:
            os.utime(file)
            return
    except OSError:
        pass
    draft.write_text(text, encoding="utf-8")
    draft.replace(file)
