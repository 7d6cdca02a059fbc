"""Logs of consumers are judged as they come, and go when their consumers are gone."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from scalable_topics.layout import Part
from tests.support.consumption import acknowledged_line, received_line
from tests.support.consumption_judge import Forgotten
from tests.support.guarantee_checker import Numbered
from tests.support.soak.ledger import Ledger
from tests.support.soak.reading import Outages, Reading

_HOUR_NS = 3600 * 1_000_000_000
_STORED = {("p", "k"): 3}


@dataclass
class _Group:
    logs: list[Path]
    living_logs: frozenset[Path] = frozenset()
    forgotten: list[Forgotten] = field(default_factory=list)


def _received(counter: int) -> str:
    return received_line(Numbered("p", "k", counter).payload(), Part(1), (2, counter, -1))


def _later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    now_ns = time.monotonic_ns()
    monkeypatch.setattr(time, "monotonic_ns", lambda: now_ns + int(seconds * 1_000_000_000))


def _lacking(reading: Reading) -> list[int]:
    return [counter for _, counter in reading.ledger.lacking(_STORED)]


def test_a_log_is_read_bit_by_bit_and_deleted_when_its_consumer_is_gone(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(_received(0) + acknowledged_line(1) + _received(1)[:20])
    group = _Group([log], frozenset((log,)))
    reading = Reading(Ledger(ordered=True), [group], Outages(0, 0))
    reading.step(whole=True)()
    assert _lacking(reading) == [1, 2]
    with log.open("a") as file:
        file.write(_received(1)[20:] + _received(2) + acknowledged_line(2) + "R 12")
    reading.step(whole=True)()
    assert _lacking(reading) == []
    assert log.exists()
    group.living_logs = frozenset()
    reading.step(whole=True)()
    assert not log.exists()
    assert (reading.ledger.verdict.receipts, bool(reading.ledger.verdict)) == (3, False)


def test_one_that_received_nothing_leaves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.touch()
    log.with_suffix(".errors").touch()
    Reading(Ledger(ordered=True), [_Group([log])], Outages(0, 0)).step(whole=True)()
    assert not list(tmp_path.iterdir())


def test_what_several_wrote_is_told_in_the_order_of_its_time(tmp_path: Path) -> None:
    one, other = tmp_path / "one.log", tmp_path / "other.log"
    first = _received(0) + acknowledged_line(1)
    second = _received(1) + acknowledged_line(1)
    one.write_text(first + _received(2))
    other.write_text(second)
    for logs in ([one, other], [other, one]):
        reading = Reading(Ledger(ordered=True), [_Group(logs, frozenset(logs))], Outages(0, 0))
        reading.step(whole=True)()
        assert (reading.ledger.verdict.receipts, bool(reading.ledger.verdict)) == (3, False)


def test_what_is_new_is_judged_later_when_everything_of_that_time_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "a.log"
    log.write_text(_received(0) + acknowledged_line(1))
    reading = Reading(Ledger(ordered=True), [_Group([log], frozenset((log,)))], Outages(0, 0))
    reading.step()()
    assert reading.ledger.verdict.receipts == 0
    _later(monkeypatch, 11)
    reading.step()()
    assert (reading.ledger.verdict.receipts, _lacking(reading)) == (1, [1, 2])


def test_what_comes_while_a_broker_is_dead_is_judged_when_it_is_known_what_may_be_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "a.log"
    log.write_text(_received(0) + acknowledged_line(1))
    outages = Outages(before_ns=_HOUR_NS, after_ns=0)
    reading = Reading(Ledger(ordered=True), [_Group([log], frozenset((log,)))], outages)
    _later(monkeypatch, 1)
    outages.begin()
    _later(monkeypatch, 1)
    with log.open("a") as file:
        file.write(_received(0) + acknowledged_line(1))
    _later(monkeypatch, 60)
    reading.step()()
    assert reading.ledger.verdict.receipts == 1
    outages.end()
    reading.step()()
    verdict = reading.ledger.verdict
    assert (verdict.receipts, verdict.again, verdict.forgiven, verdict.repeated) == (2, 1, 1, [])


@pytest.mark.parametrize(("in_good_order", "forgiven"), [(False, 1), (True, 0)])
def test_what_was_acknowledged_before_an_unload_is_kept(
    in_good_order: bool, forgiven: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "a.log"
    log.write_text(_received(0) + acknowledged_line(1))
    outages = Outages(before_ns=_HOUR_NS, after_ns=0)
    reading = Reading(Ledger(ordered=True), [_Group([log], frozenset((log,)))], outages)
    _later(monkeypatch, 1)
    outages.begin(in_good_order=in_good_order)
    outages.end()
    _later(monkeypatch, 1)
    with log.open("a") as file:
        file.write(_received(0) + acknowledged_line(1))
    _later(monkeypatch, 60)
    reading.step()()
    verdict = reading.ledger.verdict
    assert (verdict.again, verdict.forgiven, len(verdict.repeated)) == (1, forgiven, 1 - forgiven)
