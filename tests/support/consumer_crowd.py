"""Consumers in processes of their own that join, leave and are killed."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from random import Random

from tests.support import consuming_process
from tests.support.consumption import Kind, Receipt, read_log
from tests.support.consumption_judge import Forgotten

# They are forked from a process that has imported everything: that takes a second of the processor, and they may come
# and go as often as that.
_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload([consuming_process.__name__])
_END_SECONDS = 60.0
# pulsar-client keeps an acknowledgement back for a tenth of a second, and a killed process takes it along.
_KEPT_BACK_NS = 1_000_000_000


@dataclass(slots=True)
class _Consumer:
    name: str
    log: Path
    process: ForkServerProcess

    @property
    def has_received(self) -> bool:
        """Whether there was a message for it."""
        return self.log.exists() and self.log.stat().st_size > 0


@dataclass(slots=True)
class Crowd:
    """The consumers of one subscription.

    Args:
        kind: what they are.
        most: so many at most, and one at least.
        command: the arguments of a consumer's process but for its kind, its name and its log.
        folder: of their logs.
        random: what happens to whom.
        handling_ms: how long each of them takes for a message before it acknowledges it.
        spares_new: nothing happens to those that have received nothing yet: where starting a process takes long, it
            would be killed before it is a consumer.
    """

    kind: Kind
    most: int
    command: Callable[[], list[str]]
    folder: Path
    random: Random
    handling_ms: float = 0.0
    spares_new: bool = False
    happened: Counter[str] = field(default_factory=Counter)
    forgotten: list[Forgotten] = field(default_factory=list)
    """Acknowledgements that those who were killed may have taken along."""
    _living: list[_Consumer] = field(default_factory=list)
    _leaving: list[_Consumer] = field(default_factory=list)
    _logs: list[Path] = field(default_factory=list)

    def join(self, name: str = "") -> None:
        """Another one begins."""
        number = len(self._logs)
        name = name or f"{self.kind}-{number}"
        log = self.folder / f"{self.kind}-{number}-{name}.log"
        arguments = [str(self.kind), *self.command(), name, str(log), str(self.handling_ms)]
        process = _FORKING.Process(target=consuming_process.main, args=(arguments, log.with_suffix(".errors")))
        process.start()
        self._logs.append(log)
        self._living.append(_Consumer(name, log, process))

    async def change(self) -> None:
        """Something happens to somebody; there are `most` of them mostly. Raises what has ended by itself."""
        self.check()
        if len(self._living) < self.most or len(self._living) == 1:
            self.happened["joined"] += 1
            self.join()
            return
        victims = [one for one in self._living if not self.spares_new or one.has_received]
        if not victims:
            self.happened["spared"] += 1
            return
        victim = self.random.choice(victims)
        self._living.remove(victim)
        match self.random.choice(["left", "killed", "restarted"]):
            case "left":
                self.happened["left"] += 1
                await self._leave(victim)
            case "killed":
                self.happened["killed"] += 1
                self._kill(victim)
            case _:
                self.happened["killed and started again under its name"] += 1
                self._kill(victim)
                self.join(victim.name)

    def restart(self, name: str) -> None:
        """Kill one and start it again under its name."""
        (victim,) = (one for one in self._living if one.name == name)
        self._living.remove(victim)
        self._kill(victim)
        self.join(name)

    def check(self) -> None:
        """Raises AssertionError if one has ended by itself."""
        for one in self._living:
            assert one.process.exitcode is None, f"consumer {one.name} has ended: {_said(one)}"

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._living)

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of those there are, by name."""
        return {one.name: one.process.pid for one in self._living if one.process.pid is not None}

    @property
    def living_logs(self) -> frozenset[Path]:
        """Logs that are still written, if there is anything to write."""
        return frozenset(one.log for one in (*self._living, *self._leaving))

    @property
    def logs(self) -> list[Path]:
        """What all consumers have written, those too that are gone."""
        return [log for log in self._logs if log.exists()]

    def receipts(self) -> list[Receipt]:
        """All that was received by now, by those too that are gone."""
        return [receipt for log in self.logs for receipt in read_log(log.stem, log.read_text())]

    async def end(self) -> None:
        """Have all of them leave. Raises what has ended by itself."""
        self.check()
        await asyncio.gather(*(self._leave(one) for one in self._living))
        self._living.clear()

    def kill(self) -> None:
        """Whatever happened, leave nothing running."""
        for one in (*self._living, *self._leaving):
            one.process.kill()
            one.process.join()

    async def _leave(self, one: _Consumer) -> None:
        one.process.terminate()
        # It has still something to acknowledge, and says so in its log.
        self._leaving.append(one)
        await asyncio.to_thread(one.process.join, _END_SECONDS)
        self._leaving.remove(one)
        code = one.process.exitcode
        if code is None:
            one.process.kill()
            raise AssertionError(f"consumer {one.name} does not leave: {_said(one)}")
        # One that has only just begun does not know the signal yet.
        assert code in (0, -signal.SIGTERM), f"consumer {one.name} has left with {code}: {_said(one)}"

    def _kill(self, one: _Consumer) -> None:
        now_ns = time.monotonic_ns()
        one.process.kill()
        one.process.join()
        self.forgotten.append(Forgotten(now_ns - _KEPT_BACK_NS, time.monotonic_ns(), now_ns, one.log.stem))


def _said(one: _Consumer) -> str:
    return one.log.with_suffix(".errors").read_text()[-2000:]
