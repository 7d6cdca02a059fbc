"""The container runtime of a node: containerd with a socket, folders and mounts of its own."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from dev import prerequisites
from dev.errors import DevError
from dev.node.pause_image import PAUSE_IMAGE
from dev.processes import ProcessTable

PROCESS = "containerd"
ROOT = "root"
READY_TIMEOUT_SECONDS = 60
COMMAND_TIMEOUT_SECONDS = 60
POD_RANGE = "10.244.0.0/24"
# Each shim serves at a socket outside of containerd's folders, and one that is killed leaves it.
SHIM_ADDRESSES = "state/io.containerd.runtime.v2.task/*/*/address"
MOUNTS = Path("/proc/self/mounts")

# Version 2 of the format is read by containerd 1.6 and every later one. Where root may not lower the score of a
# process towards the out-of-memory killer, restricting it is what makes pods start at all.
SETTINGS = """\
version = 2
root = "{root}"
state = "{directory}/state"
oom_score = 0
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{directory}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""


class Runtime:
    """containerd of one instance.

    Args:
        directory: for its images, containers and settings.
        processes: where it is started.
    """

    def __init__(self, directory: Path, processes: ProcessTable) -> None:
        self._directory = directory
        self._processes = processes
        self._root = directory / ROOT
        self._socket = directory / "containerd.sock"

    @property
    def endpoint(self) -> str:
        """Its address for kubelet."""
        return f"unix://{self._socket}"

    def start(self) -> None:
        """Start it unless it is running, and wait until it answers."""
        tools = prerequisites.node_tools()
        (self._directory / "cni").mkdir(parents=True, exist_ok=True)
        settings = self._directory / "containerd.toml"
        settings.write_text(
            SETTINGS.format(
                root=self._root,
                directory=self._directory,
                socket=self._socket,
                pause=PAUSE_IMAGE,
                plugins=tools.network_plugins,
            )
        )
        (self._directory / "cni" / "pods.conflist").write_text(json.dumps(self._network(), indent=2))
        self._processes.start(PROCESS, [str(tools.containerd), "--config", str(settings)])
        self._processes.wait_until(PROCESS, lambda: self._ctr("version") == 0, READY_TIMEOUT_SECONDS)

    def load(self, name: str, write: Callable[[IO[bytes]], None]) -> None:
        """Have an image for pods, unless it is there already.

        Args:
            name: of the image, with its tag.
            write: writes its archive.

        Raises:
            DevError: it could not be loaded.
        """
        listed = subprocess.run(
            self._command("images", "list", "--quiet", f"name=={name}"),
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_SECONDS,
            check=False,
        )
        if name in listed.stdout.split():
            return
        command = self._command("images", "import", "-")
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert child.stdin is not None
        assert child.stderr is not None
        with child:
            with suppress(BrokenPipeError), child.stdin as stream:
                write(stream)
            errors = child.stderr.read().decode(errors="replace").strip()
        if child.returncode != 0:
            raise DevError(f"image {name} could not be imported: {errors}")

    def remove_pods(self, program: Path) -> None:
        """End and remove all pods, by the program that asks the runtime for it. Raises DevError."""
        command = [str(program), self.endpoint]
        timeout = COMMAND_TIMEOUT_SECONDS
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        if done.returncode != 0:
            raise DevError(f"pods could not be removed: {done.stderr.strip()}")

    @property
    def is_running(self) -> bool:
        """Whether it is running."""
        return self._processes.identity(PROCESS) is not None

    def stop(self) -> None:
        """Stop it, and end the processes beside pods that it has left, as it does after a crash."""
        self._processes.stop(PROCESS)
        for pid in self._left_over():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for address in self._directory.glob(SHIM_ADDRESSES):
            Path(address.read_text().removeprefix("unix://")).unlink(missing_ok=True)

    def unmount(self, directory: Path) -> None:
        """Undo every mount below a directory, the innermost first."""
        mounted = [line.split()[1] for line in MOUNTS.read_text().splitlines()]
        for path in reversed([path for path in mounted if Path(path).is_relative_to(directory)]):
            subprocess.run(
                ["umount", "--lazy", path], capture_output=True, timeout=COMMAND_TIMEOUT_SECONDS, check=False
            )

    def _network(self) -> dict[str, object]:
        addresses = {
            "type": "host-local",
            "ranges": [[{"subnet": POD_RANGE}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": str(self._directory / "addresses"),
        }
        bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipam": addresses}
        return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}

    def _left_over(self) -> list[int]:
        """The pids of containerd's shims, which know it by its socket."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(FileNotFoundError, ProcessLookupError):
                arguments = (process / "cmdline").read_bytes().split(b"\0")
                if b"shim" in arguments[0] and str(self._socket).encode() in arguments:
                    found.append(int(process.name))
        return found

    def _ctr(self, *arguments: str) -> int:
        timeout = COMMAND_TIMEOUT_SECONDS
        return subprocess.run(self._command(*arguments), capture_output=True, timeout=timeout, check=False).returncode

    def _command(self, *arguments: str) -> list[str]:
        ctr = prerequisites.node_tools().containerd.with_name("ctr")
        return [str(ctr), "--address", str(self._socket), "--namespace", "k8s.io", *arguments]
