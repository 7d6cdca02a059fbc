"""The operator as its own process, as it runs in production, that a test may stop or kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_START_SECONDS = 60.0
_STOP_SECONDS = 20.0
FAST_FLAGS = (
    "--relist-seconds=20",
    "--drift-seconds=3",
    "--drift-per-second=1000",
    "--observe-seconds=2",
    "--prune-seconds=1",
    "--settle-window-seconds=0",
    "--force-delete-after-seconds=5",
)


class RunningOperator:
    """One operator process.

    Args:
        kubeconfig: how it reaches the API server.
        namespace: the one Kubernetes namespace it watches and keeps its installation record in.
        log_file: where its logs go; several lives append to it.
        flags: after the defaults, so that they win. Several replicas share a namespace.
        under: what Python runs the operator under, such as `-m cProfile`.
        start_seconds: how long it may take to begin its work.
    """

    def __init__(
        self,
        kubeconfig: Path,
        namespace: str,
        log_file: Path,
        flags: tuple[str, ...] = FAST_FLAGS,
        under: tuple[str, ...] = (),
        start_seconds: float = _START_SECONDS,
    ) -> None:
        self.namespace = namespace
        self.log_file = log_file
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        self._flags = (
            f"--namespaces={namespace}",
            f"--operator-namespace={namespace}",
            "--bind-port=0",
            "--gateway-port=0",
            "--log-level=DEBUG",
            "--lease-seconds=3",
            # Tests whose subject it is switch it on: idle topics of the others would be merged under them.
            "--auto-scale-enabled=false",
            *flags,
        )
        self._under = under
        self._start_seconds = start_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._read_from = 0
        self._told: dict[str, str] = {}

    def start(self) -> None:
        """Start it and wait until it has listed all objects. From a coroutine, call it in a thread."""
        self.launch()
        self.wait_until_working()

    def launch(self) -> None:
        """Start it."""
        self._told = {}
        self._read_from = self.log_file.stat().st_size if self.log_file.exists() else 0
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._under, "-m", "scalable_topics_operator", *self._flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
            )

    def wait_until_working(self) -> None:
        """Wait until it has listed all objects."""
        deadline = time.monotonic() + self._start_seconds
        while "work begins" not in self._new_log():
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the operator did not come up:\n{self._new_log()[-4000:]}")
            time.sleep(0.05)

    def stop(self) -> float:
        """SIGTERM, and wait for a clean end; answers the seconds it took."""
        if self._process is None or self._process.poll() is not None:
            return 0.0
        asked = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(timeout=_STOP_SECONDS)
        if code != 0:
            raise RuntimeError(f"the operator ended with {code}:\n{self._new_log()[-4000:]}")
        return time.monotonic() - asked

    def kill(self) -> None:
        """SIGKILL, in the middle of whatever it does."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def wait(self, seconds: float) -> int:
        """Wait for it to end by itself; answers its exit code. Raises TimeoutExpired. Call it in a thread."""
        if self._process is None:
            raise RuntimeError("the operator is not started")
        return self._process.wait(seconds)

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        if self._process is None:
            raise RuntimeError("the operator is not started")
        return self._process.pid

    @property
    def metrics_url(self) -> str:
        """Base URL of its metrics and health page."""
        return "http://" + self._said("metrics and health on ")

    @property
    def gateway_url(self) -> str:
        """Base URL of its gateway."""
        return "http://" + self._said("gateway on ")

    @property
    def gateway_address(self) -> str:
        """Host and port of its gateway; empty while it has not said so."""
        return self._said("gateway on ", otherwise="")

    @property
    def identity(self) -> str:
        """What it calls itself in Leases; empty while it has not said so."""
        return self._said("standing for election as ", otherwise="")

    def log_text(self) -> str:
        """All it has logged, over all its lives."""
        return self.log_file.read_text()

    def _said(self, beginning: str, otherwise: str | None = None) -> str:
        """The rest of the first message in this life that begins so; what was found once is not looked for again."""
        if beginning in self._told:
            return self._told[beginning]
        for line in self._new_log().splitlines():
            message = json.loads(line)["message"] if line.startswith("{") and line.endswith("}") else line
            if message.startswith(beginning):
                self._told[beginning] = str(message.removeprefix(beginning))
                return self._told[beginning]
        if otherwise is None:
            raise RuntimeError(f"the operator has not said {beginning!r} yet")
        return otherwise

    def _new_log(self) -> str:
        return self.log_file.read_bytes()[self._read_from :].decode()
