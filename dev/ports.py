"""Free TCP ports on loopback, for servers that start later and may restart on the same port.

A port is taken outside the range from which the kernel gives ports to outgoing connections, so nobody gets it
by chance while its server is down. Instances on one machine keep off each other's ports through a registry of
files; other programs are kept off by a bound socket until the port is handed over.
"""

import random
import socket
from collections.abc import Iterable
from pathlib import Path

from dev.errors import DevError

LOOPBACK = "127.0.0.1"
LOWEST_PORT = 10_000
FALLBACK_RANGE = (20_000, 30_000)
EPHEMERAL_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
ATTEMPTS = 2_000


class PortReservations:
    """The ports of one owner.

    Args:
        registry: directory shared by all owners of the machine; one file a port, holding the owner.
        owner: a file that exists as long as its ports are wanted. When it is gone they are free for others.
    """

    def __init__(self, registry: Path, owner: Path) -> None:
        self._registry = registry
        self._owner = owner
        self._held: dict[str, socket.socket] = {}

    def reserve(self, names: Iterable[str]) -> dict[str, int]:
        """Return a free port for each name. Each stays bound until `hand_over` names it."""
        self._registry.mkdir(parents=True, exist_ok=True)
        return {name: self._reserve_one(name) for name in names}

    def hand_over(self, *names: str) -> None:
        """Unbind the ports of these names: their server is about to bind them."""
        for name in names:
            if held := self._held.pop(name, None):
                held.close()

    def release(self, ports: Iterable[int]) -> None:
        """Give ports back. Those that another owner has got meanwhile are left alone."""
        self.hand_over(*list(self._held))
        for port in ports:
            if self._owner_of(port) == self._owner:
                self._file(port).unlink(missing_ok=True)

    def _reserve_one(self, name: str) -> int:
        lowest, highest = port_range(_ephemeral_range())
        for _ in range(ATTEMPTS):
            port = random.randint(lowest, highest)
            if not self._claim(port):
                continue
            if held := _bind(port):
                self._held[name] = held
                return port
            self._file(port).unlink(missing_ok=True)
        raise DevError(f"no free port found between {lowest} and {highest} on {LOOPBACK}")

    def _claim(self, port: int) -> bool:
        owner = self._owner_of(port)
        if owner is not None and not owner.exists():
            self._file(port).unlink(missing_ok=True)
        try:
            with self._file(port).open("x") as handle:
                handle.write(str(self._owner))
        except FileExistsError:
            return False
        return True

    def _owner_of(self, port: int) -> Path | None:
        try:
            content = self._file(port).read_text()
        except FileNotFoundError:
            return None
        # An owner that is just being written is somebody's: never this one's, never stale.
        return Path(content) if content else self._registry

    def _file(self, port: int) -> Path:
        return self._registry / str(port)


def port_range(ephemeral: tuple[int, int]) -> tuple[int, int]:
    """Return the range to pick from, inclusive, given the kernel's range of ephemeral ports."""
    if ephemeral[0] - LOWEST_PORT >= FALLBACK_RANGE[1] - FALLBACK_RANGE[0]:
        return LOWEST_PORT, ephemeral[0] - 1
    return FALLBACK_RANGE


def _ephemeral_range() -> tuple[int, int]:
    try:
        first, last = EPHEMERAL_RANGE_FILE.read_text().split()
    except (OSError, ValueError):
        return (0, 65_535)
    return int(first), int(last)


def _bind(port: int) -> socket.socket | None:
    candidate = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        candidate.bind((LOOPBACK, port))
    except OSError:
        candidate.close()
        return None
    return candidate
