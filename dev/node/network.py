"""A network of its own for an instance with a node: its servers and pods see each other, and nothing sees beyond.

Whoever is to reach them enters the network: a process with `nsenter --net`, a thread of this process with
`Network.entered`. Other parts of the machine, such as files and processes, are the same inside.
"""

import ctypes
import hashlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dev import prerequisites
from dev.errors import DevError

NODE_ADDRESS = "10.200.0.1"
PREFIX_BITS = 24
BRIDGE = "br0"
NAMESPACES = Path("/run/netns")
OWN_NAMESPACE = "/proc/thread-self/ns/net"
FORWARDING = "net/ipv4/ip_forward"
CLONE_NEWNET = 0x40000000
NAME_LENGTH = 12
COMMAND_TIMEOUT_SECONDS = 30


class Network:
    """The network namespace of one instance.

    Args:
        directory: of the instance; tells networks apart.
    """

    def __init__(self, directory: Path) -> None:
        self.name = f"scalable-{hashlib.sha256(str(directory).encode()).hexdigest()[:NAME_LENGTH]}"
        self.file = NAMESPACES / self.name

    @property
    def exists(self) -> bool:
        """Whether it is there."""
        return self.file.exists()

    def create(self) -> None:
        """Make it unless it is there: loopback, and a bridge that bears the node's address and ends all routes."""
        if self.exists:
            return
        _ip("netns", "add", self.name)
        try:
            with self.entered():
                _ip("link", "set", "lo", "up")
                _ip("link", "add", BRIDGE, "type", "bridge")
                _ip("address", "add", f"{NODE_ADDRESS}/{PREFIX_BITS}", "dev", BRIDGE)
                _ip("link", "set", BRIDGE, "up")
                # Without a default route servers take the machine for offline; this one leads nowhere.
                _ip("route", "add", "default", "via", NODE_ADDRESS, "dev", BRIDGE)
                # /proc/sys/net shows the network of whoever looks.
                Path("/proc/sys", FORWARDING).write_text("1")
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove it with all that is in it. Harmless when it is not there."""
        if self.exists:
            _ip("netns", "delete", self.name)

    def command(self, command: Sequence[str]) -> list[str]:
        """Return the command that runs another one inside."""
        return ["nsenter", f"--net={self.file}", *command]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Have this thread inside, with the threads and processes that it starts meanwhile."""
        back = os.open(OWN_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
        try:
            inside = os.open(self.file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _enter(inside)
            finally:
                os.close(inside)
            try:
                yield
            finally:
                _enter(back)
        finally:
            os.close(back)


def _enter(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        raise DevError(f"a network cannot be entered: {os.strerror(ctypes.get_errno())}")


def _ip(*arguments: str) -> None:
    timeout = COMMAND_TIMEOUT_SECONDS
    command = [str(prerequisites.ip()), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise DevError(f"ip {' '.join(arguments)} failed: {done.stderr.strip()}")
