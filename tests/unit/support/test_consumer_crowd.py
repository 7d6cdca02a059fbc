"""What is known of consumers that come and go."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from random import Random

from tests.support.consumer_crowd import _FORKING, Crowd, _Consumer
from tests.support.consumption import Kind
from tests.support.waiting import until

_LEFT = 2
"""Of this seed the first of two consumers leaves."""


def _take_leave(folder: Path) -> None:
    """A process that leaves when it is asked to, and not before it may."""
    signal.signal(signal.SIGTERM, lambda *_: (folder / "asked").touch())
    (folder / "begun").touch()
    while not (folder / "may-go").exists():
        time.sleep(0.01)


async def test_a_log_is_written_until_its_consumer_has_left(tmp_path: Path) -> None:
    """Whoever reads it as it comes deletes it then, and must have read to its end."""
    crowd = Crowd(Kind.QUEUE, 2, list, tmp_path, Random(_LEFT))
    leaving, staying = (
        _Consumer(name, tmp_path / f"{name}.log", _FORKING.Process(target=_take_leave, args=(tmp_path,)))
        for name in ("leaving", "staying")
    )
    leaving.process.start()
    crowd._living += [leaving, staying]
    await until((tmp_path / "begun").exists, what="it knows the signal")
    change = asyncio.create_task(crowd.change())
    try:
        await until((tmp_path / "asked").exists, what="it is asked to leave")
        assert crowd.size == 1
        assert crowd.living_logs == {leaving.log, staying.log}
    finally:
        (tmp_path / "may-go").touch()
        await change
    assert crowd.living_logs == {staying.log}
    assert crowd.happened == {"left": 1}
