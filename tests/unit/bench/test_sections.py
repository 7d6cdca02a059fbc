"""The sections that there are, and counts of calls."""

from __future__ import annotations

import asyncio
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from bench.__main__ import chosen, main
from bench.function_calls import CallCounter
from bench.machine import versions
from bench.section import Servers
from bench.sections import BY_KEY, SECTIONS


def test_keys_and_titles_are_unique() -> None:
    assert len(BY_KEY) == len(SECTIONS)
    assert len({one.title for one in SECTIONS}) == len(SECTIONS)


def test_a_section_that_starts_its_brokers_itself_tells_of_what_they_are_as_others_do() -> None:
    assert BY_KEY["scale"].servers is Servers.OWN
    assert versions(Servers.OWN) == versions(Servers.CLASSIC)
    assert versions(Servers.OWN).startswith("Pulsar 4.")
    assert versions(Servers.NONE) == ""


def test_some_are_chosen_by_their_keys_in_the_order_of_the_page() -> None:
    assert [one.key for one in chosen("kernel, topics")] == ["topics", "kernel"]


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="kernels"):
        chosen("topics,kernels")


def test_a_profile_of_what_is_not_profiled_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Hours of measuring would leave neither a profile nor a report."""
    monkeypatch.setattr("sys.argv", ["bench", "--only", "topics,scale,kernel", "--profile-to", str(tmp_path)])
    with pytest.raises(SystemExit):
        main()
    assert "nothing is profiled in scale, kernel," in capsys.readouterr().err


def test_calls_of_python_and_of_c_are_counted() -> None:
    def work() -> None:
        len(str(1))
        nothing()

    def nothing() -> None:
        pass

    # `str` is a class, whose call is none of a function.
    assert CallCounter().of(work) == 3


async def test_what_others_do_while_a_coroutine_waits_is_not_counted() -> None:
    async def work(waits: bool) -> str:
        if waits:
            await asyncio.sleep(0.01)
        return "done"

    async def busy() -> None:
        for _ in range(100):
            len("x")
            await asyncio.sleep(0)

    alone, beside, still = CallCounter(), CallCounter(), CallCounter()
    assert await alone.along(work(True)) == "done"
    other = asyncio.create_task(busy())
    assert await beside.along(work(True)) == "done"
    await other
    assert beside.calls == alone.calls
    assert beside.waits == 1
    await still.along(work(False))
    assert (still.waits, still.calls < alone.calls) == (0, True)
