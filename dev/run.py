"""Run a command against an instance of its own, which is stopped whatever becomes of the command."""

import os
import signal
import subprocess
from collections.abc import Sequence
from types import FrameType

from dev.access import existing_cluster
from dev.console import say
from dev.instance import LocalCluster, Shape

END_TIMEOUT_SECONDS = 30


def run_with_cluster(command: Sequence[str], shape: Shape) -> int:
    """Run a command with the variables of a cluster set, and return its exit code.

    The cluster is the one that the environment names; if it names none, one is started for the command alone.
    Logs of a started cluster are kept if the command fails.
    """
    if existing_cluster():
        say("using the cluster that KUBECONFIG and PULSAR_ADMIN_URL name")
        return _run(command, {})
    signal.signal(signal.SIGTERM, _exit_on_signal)
    cluster = LocalCluster.private(shape)
    code = 1
    try:
        cluster.start()
        programs = f"{cluster.kubernetes.kubectl.parent}{os.pathsep}" if shape.kubernetes else ""
        code = _run(command, cluster.environment() | {"PATH": f"{programs}{os.environ['PATH']}"})
    finally:
        cluster.stop(keep_logs=code != 0)
        if code != 0:
            say(f"the servers' logs are in {cluster.logs}")
    return code


def _run(command: Sequence[str], variables: dict[str, str]) -> int:
    child = subprocess.Popen(command, env=os.environ | variables)
    try:
        return child.wait()
    finally:
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(END_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _exit_on_signal(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
