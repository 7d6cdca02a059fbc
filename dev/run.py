"""Run a command against an instance of its own, which is stopped whatever becomes of the command."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from types import FrameType

from dev.access import existing_cluster
from dev.console import say
from dev.instance import LocalCluster, Shape

END_TIMEOUT_SECONDS = 30
POLL_SECONDS = 0.1


def run_with_cluster(command: Sequence[str], shape: Shape) -> int:
    """Run a command with the variables of a cluster set, and return its exit code.

    The cluster is the one that the environment names; if it names none, one is started for the command alone.
    Logs of a started cluster are kept if the command fails.
    """
    if existing_cluster():
        say("using the cluster that KUBECONFIG and PULSAR_ADMIN_URL name")
        return _run(command, {})
    return run_with_own_cluster(command, shape)


def run_with_own_cluster(
    command: Sequence[str], shape: Shape, prepare: Callable[[LocalCluster], dict[str, str]] = lambda _: {}
) -> int:
    """Run a command with the variables of a cluster that is started for it alone, and return its exit code.

    Args:
        command: program and arguments.
        shape: of the cluster.
        prepare: called once it is up; answers further variables.

    Logs are kept if the command fails.
    """
    signal.signal(signal.SIGTERM, _exit_on_signal)
    cluster = LocalCluster.private(shape)
    code = 1
    try:
        cluster.start()
        programs = f"{cluster.kubernetes.kubectl.parent}{os.pathsep}" if shape.kubernetes else ""
        variables = cluster.environment() | {"PATH": f"{programs}{os.environ['PATH']}"} | prepare(cluster)
        code = _run(cluster.command(command), variables)
    finally:
        cluster.stop(keep_logs=code != 0)
        LocalCluster.stop_orphans()
        if code != 0:
            say(f"the servers' logs are in {cluster.logs}")
    return code


def _run(command: Sequence[str], variables: dict[str, str]) -> int:
    # At a terminal the command shares it, and Ctrl-C reaches both. Elsewhere it gets a session of its own, so
    # that all it has started can be ended with it.
    own_session = not os.isatty(0)
    child = subprocess.Popen(command, env=os.environ | variables, start_new_session=own_session)
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    except KeyboardInterrupt:
        _wait_for_end(child, END_TIMEOUT_SECONDS)
        raise
    finally:
        _end(child, os.killpg if own_session else os.kill)
    return child.wait()


def _end(child: subprocess.Popen[bytes], send: Callable[[int, int], None]) -> None:
    """End a command and, if `send` reaches a group, what it left behind. Its pid stays its own until then."""
    if not _has_ended(child):
        send(child.pid, signal.SIGTERM)
        _wait_for_end(child, END_TIMEOUT_SECONDS)
    send(child.pid, signal.SIGKILL)
    child.wait()


def _wait_for_end(child: subprocess.Popen[bytes], timeout_seconds: float) -> None:
    deadline = time.monotonic() + timeout_seconds
    while not _has_ended(child) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def _has_ended(child: subprocess.Popen[bytes]) -> bool:
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _exit_on_signal(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)
