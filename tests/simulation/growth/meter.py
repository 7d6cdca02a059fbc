"""What is counted while a fleet runs: calls, and how many of them came in one second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

Server = str

API_SERVER, BROKERS = "API server", "brokers"


class Meter:
    """Calls by server and kind, and the busiest second of each server.

    Args:
        time: the present, seconds.
    """

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._calls: Counter[tuple[Server, str]] = Counter()
        self._seconds: Counter[tuple[Server, int]] = Counter()

    def count(self, server: Server, kind: str, calls: int = 1) -> None:
        """Note calls that are made now."""
        self._calls[server, kind] += calls
        self._seconds[server, int(self._time())] += calls

    def calls(self, server: Server, *kinds: str) -> int:
        """How many there were, of some kinds or of all."""
        return sum(
            count for (where, kind), count in self._calls.items() if where == server and (not kinds or kind in kinds)
        )

    def busiest_second(self, server: Server) -> int:
        """Calls in the second that had most."""
        return max((count for (where, _), count in self._seconds.items() if where == server), default=0)

    def reset(self) -> None:
        """Begin anew."""
        self._calls.clear()
        self._seconds.clear()


def kind_of(method: str, path: str) -> str:
    """The kind of a request to the API server: what is done to what, `PATCH scalabletopics/status` for one."""
    parts = path.strip("/").split("/")
    parts = parts[3:] if parts[0] == "apis" else parts[2:]
    if parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    plural, name, subresource = (*parts, "", "")[:3]
    verb = "LIST" if method == "GET" and not name else method
    return f"{verb} {plural}{'/' + subresource if subresource else ''}"
