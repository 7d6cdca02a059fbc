"""What consumers in processes of their own have logged, told to the judge of their subscription as it comes."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Protocol

from tests.support.consumption import LogReader, Receipt
from tests.support.consumption_judge import Forgotten
from tests.support.soak.ledger import Ledger

_CHUNK_BYTES = 16 * 1024 * 1024
# So long after its time everything is in the logs.
_BEHIND_NS = 10_000_000_000


class Consumers(Protocol):
    """Consumers of one subscription that come and go, such as a `Crowd`."""

    @property
    def logs(self) -> Sequence[Path]:
        """What they have written, those too that are gone."""

    @property
    def living_logs(self) -> frozenset[Path]:
        """Those that are still written."""

    @property
    def forgotten(self) -> Sequence[Forgotten]:
        """Acknowledgements that those who were killed may have taken along."""


class Outages:
    """Brokers that die or let go of segments, and what acknowledgements are lost with it.

    pulsar-client tells nobody whether a broker has an acknowledgement, and drops what it is given while it attaches
    anew. Most of the time the next one makes up for it: unless the segment changes hands first.

    Args:
        before_ns: positions of cursors are kept at last after so long.
        after_ns: until clients have found the broker that serves a segment now.
    """

    def __init__(self, before_ns: int, after_ns: int) -> None:
        self._before_ns = before_ns
        self._after_ns = after_ns
        self._began_ns: int | None = None
        self._lost_from_ns = 0
        self.forgotten: list[Forgotten] = []

    def begin(self, *, in_good_order: bool = False) -> None:
        """One dies now, or lets go in good order: then nothing is lost of what was acknowledged before."""
        self._began_ns = time.monotonic_ns()
        self._lost_from_ns = self._began_ns - (0 if in_good_order else self._before_ns)

    def end(self) -> None:
        """It serves again."""
        assert self._began_ns is not None
        end_ns = time.monotonic_ns() + self._after_ns
        self.forgotten.append(Forgotten(self._lost_from_ns, end_ns, self._began_ns))
        self._began_ns = None

    def until_ns(self, now_ns: int) -> int:
        """Up to when it is known what may have been forgotten."""
        return now_ns if self._began_ns is None else min(now_ns, self._began_ns)


class Reading:
    """Reads the logs of a subscription's consumers, and deletes those of consumers that are gone.

    Args:
        ledger: is told.
        groups: all consumers of the subscription.
        outages: of brokers.
    """

    def __init__(self, ledger: Ledger, groups: Sequence[Consumers], outages: Outages) -> None:
        self.ledger = ledger
        self._groups = groups
        self._outages = outages
        self._offsets: dict[Path, int] = {}
        self._readers: dict[Path, LogReader] = {}
        self._waiting: list[tuple[int, int, Receipt]] = []
        self._order = count()

    def step(self, *, whole: bool = False) -> Callable[[], None]:
        """What to do in a thread: read what is new, and judge what is old enough, or all of it."""
        living = frozenset[Path]().union(*(group.living_logs for group in self._groups))
        logs = [log for group in self._groups for log in group.logs]
        forgotten = [*self._outages.forgotten, *(one for group in self._groups for one in group.forgotten)]
        now_ns = time.monotonic_ns()
        until_ns = self._outages.until_ns(now_ns if whole else now_ns - _BEHIND_NS)
        return lambda: self._advance(logs, living, forgotten, until_ns)

    def _advance(
        self, logs: Iterable[Path], living: frozenset[Path], forgotten: Sequence[Forgotten], until_ns: int
    ) -> None:
        for log in logs:
            self._read(log)
            if log not in living:
                self._remove(log)
        while self._waiting and self._waiting[0][0] <= until_ns:
            self.ledger.tell(heapq.heappop(self._waiting)[2], forgotten)

    def _read(self, log: Path) -> None:
        reader = self._readers.setdefault(log, LogReader(log.stem))
        with log.open("rb") as file:
            file.seek(self._offsets.get(log, 0))
            while text := file.read(_CHUNK_BYTES):
                # A line that is only half there is read once it is whole.
                whole = text[: text.rfind(b"\n") + 1]
                for line in whole.decode().splitlines():
                    for _, receipt in reader.read(line):
                        at_ns = receipt.acknowledged_at_ns or receipt.at_ns
                        heapq.heappush(self._waiting, (at_ns, next(self._order), receipt))
                self._offsets[log] = self._offsets.get(log, 0) + len(whole)
                if len(text) < _CHUNK_BYTES:
                    return
                file.seek(self._offsets[log])

    def _remove(self, log: Path) -> None:
        log.unlink()
        with suppress(FileNotFoundError):
            log.with_suffix(".errors").unlink()
        self._offsets.pop(log, None)
        del self._readers[log]
