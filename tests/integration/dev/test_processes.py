"""Only processes that were started here are ended, and all of those."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.errors import DevError, PortClashError
from dev.ports import LOOPBACK
from dev.processes import ProcessTable

PYTHON = sys.executable
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(99)
"""


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[ProcessTable]:
    table = ProcessTable(tmp_path / "pids", tmp_path / "logs")
    yield table
    table.kill(*table.names())


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_process_that_ignores_sigterm_is_killed(processes: ProcessTable) -> None:
    processes.start("deaf", [PYTHON, "-c", DEAF])
    processes.wait_until("deaf", lambda: "deaf" in processes.log("deaf").read_text(), 20)
    identity = processes.identity("deaf")
    assert identity is not None
    processes.stop("deaf", timeout_seconds=0.3)
    assert not exists(identity.pid)
    assert processes.names() == []


def test_a_recycled_pid_is_left_alone(processes: ProcessTable, tmp_path: Path) -> None:
    bystander = subprocess.Popen([PYTHON, "-c", "import time; time.sleep(99)"], start_new_session=True)
    try:
        record = tmp_path / "pids" / "server.json"
        record.parent.mkdir()
        record.write_text(json.dumps({"pid": bystander.pid, "start_ticks": 1}))
        assert processes.identity("server") is None
        processes.stop("server")
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_another_table_on_the_same_directory_ends_what_the_first_started(
    processes: ProcessTable, tmp_path: Path
) -> None:
    processes.start("server", ["/bin/sleep", "99"])
    other = ProcessTable(tmp_path / "pids", tmp_path / "logs")
    assert other.identity("server") == processes.identity("server") is not None
    other.stop("server")
    assert processes.identity("server") is None


def test_an_ended_child_counts_as_ended_before_it_is_reaped(processes: ProcessTable, tmp_path: Path) -> None:
    processes.start("brief", ["/bin/sleep", "99"])
    identity = processes.identity("brief")
    assert identity is not None
    os.kill(identity.pid, signal.SIGKILL)
    observer = ProcessTable(tmp_path / "pids", tmp_path / "logs")
    deadline = time.monotonic() + 10
    while observer.identity("brief") is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_server_that_ends_while_starting_is_reported_with_its_last_words(processes: ProcessTable) -> None:
    processes.start("broken", ["/bin/sh", "-c", "echo no such setting; exit 3"])
    with pytest.raises(DevError, match=r"broken ended by itself.*\n.*no such setting"):
        processes.wait_until("broken", lambda: False, 20)


def test_a_server_that_cannot_bind_is_told_apart(processes: ProcessTable) -> None:
    with socket.socket() as squatter:
        squatter.bind((LOOPBACK, 0))
        squatter.listen()
        port = str(squatter.getsockname()[1])
        processes.start("web", [PYTHON, "-m", "http.server", "--bind", LOOPBACK, port])
        with pytest.raises(PortClashError, match="web could not bind"):
            processes.wait_until("web", lambda: False, 20)


def test_a_server_that_is_never_ready_is_reported_with_its_log(processes: ProcessTable) -> None:
    processes.start("slow", ["/bin/sleep", "99"])
    with pytest.raises(DevError, match=r"slow was not ready within 0 s, see .*slow\.log"):
        processes.wait_until("slow", lambda: False, 0.1)


def test_logs_of_several_starts_are_kept_in_one_file(processes: ProcessTable) -> None:
    for word in ("first", "second"):
        processes.run("echo", ["/bin/echo", word], 20)
    assert processes.log("echo").read_text() == "first\nsecond\n"


def test_run_reports_a_failure_and_a_process_that_takes_too_long(processes: ProcessTable) -> None:
    with pytest.raises(DevError, match="fails ended by itself"):
        processes.run("fails", ["/bin/false"], 20)
    with pytest.raises(DevError, match="takes took more than"):
        processes.run("takes", ["/bin/sleep", "99"], 0.2)
    assert processes.names() == []
