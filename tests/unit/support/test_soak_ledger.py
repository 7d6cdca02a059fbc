"""A ledger finds what the judge of whole runs finds, and keeps little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from scalable_topics.layout import Part
from tests.support.consumption import Receipt
from tests.support.consumption_judge import Forgotten, judge_ordered, judge_shared
from tests.support.guarantee_checker import Numbered
from tests.support.soak.ledger import Ledger

_SECOND = 1_000_000_000


def _receipt(counter: int, at: float, acknowledged: float | None = None, who: str = "a", segment: int = 0) -> Receipt:
    acknowledged_ns = None if acknowledged is None else int(acknowledged * _SECOND)
    place = (7, counter, -1)
    return Receipt(Numbered("p", "k", counter), Part(segment), place, who, int(at * _SECOND), acknowledged_ns)


def _told(receipts: Sequence[Receipt], forgotten: Sequence[Forgotten] = (), *, ordered: bool = True) -> Ledger:
    """A ledger that is told of each when it was received and when it was acknowledged."""
    ledger = Ledger(ordered)
    events = [(one.at_ns, 0, replace(one, acknowledged_at_ns=None)) for one in receipts]
    events += [(one.acknowledged_at_ns, 1, one) for one in receipts if one.acknowledged_at_ns is not None]
    for _, _, one in sorted(events, key=lambda event: event[:2]):
        ledger.tell(one, forgotten)
    return ledger


def _story(random: Random) -> tuple[list[Receipt], list[Forgotten]]:
    """Messages that come, mostly in order and mostly once, and mostly are acknowledged."""
    receipts: list[Receipt] = []
    forgotten = []
    at, counter = 100.0, 0
    while counter < 60:
        at += random.uniform(0.05, 2.0)
        if random.random() < 0.1:
            counter = max(0, counter - random.randint(1, 5))
        if random.random() < 0.02:
            counter += 1
        acknowledged = at + random.uniform(0.0, 3.0) if random.random() < 0.9 else None
        receipts.append(_receipt(counter, at, acknowledged, random.choice("ab")))
        counter += 1
        if random.random() < 0.05:
            died_ns = int(at * _SECOND)
            forgotten.append(Forgotten(died_ns - 3 * _SECOND, died_ns, died_ns, random.choice(["", "a"])))
    return receipts, forgotten


@pytest.mark.parametrize("seed", range(100))
def test_it_finds_what_the_judge_of_whole_runs_finds(seed: int) -> None:
    receipts, forgotten = _story(Random(seed))
    ledger = _told(receipts, forgotten)
    stored = [Numbered("p", "k", counter) for counter in range(65)]
    judged = judge_ordered(stored, receipts, forgotten)
    verdict = ledger.verdict
    assert [one.at_ns for one in verdict.disordered] == [one.at_ns for one in judged.disordered][:20]
    assert [one.at_ns for one in verdict.repeated] == [one.at_ns for one, _ in judged.repeated][:20]
    assert (verdict.again, verdict.forgiven, verdict.receipts) == (judged.again, judged.forgiven, judged.receipts)
    lacking = [counter for _, counter in ledger.lacking({("p", "k"): 65})]
    assert lacking == [message.counter for message in judged.lost]


@pytest.mark.parametrize("seed", range(50))
def test_a_shared_subscription_may_repeat_and_has_no_order(seed: int) -> None:
    receipts, _ = _story(Random(seed))
    Random(seed).shuffle(receipts)
    receipts = [replace(one, at_ns=index * _SECOND, acknowledged_at_ns=None) for index, one in enumerate(receipts)]
    ledger = _told(receipts, ordered=False)
    assert not ledger.verdict
    assert ledger.verdict.again == judge_shared([], receipts).again


def test_what_comes_from_two_places_is_stored_twice() -> None:
    for ordered in (True, False):
        ledger = _told([_receipt(0, 1), _receipt(0, 2, segment=3)], ordered=ordered)
        assert len(ledger.verdict.duplicated) == 1
        assert not _told([_receipt(0, 1), _receipt(0, 2)], ordered=ordered).verdict.duplicated


def test_it_keeps_no_more_than_some_minutes_of_messages() -> None:
    ledger = Ledger(ordered=True, kept_ns=60 * _SECOND)
    most = 0
    for counter in range(5_000):
        ledger.tell(_receipt(counter, counter / 10))
        ledger.tell(_receipt(counter, counter / 10, counter / 10 + 0.01))
        most = max(most, ledger.kept)
    assert most <= 602
    assert not ledger.verdict
    assert list(ledger.lacking({("p", "k"): 5_001, ("q", "k"): 1})) == [(("p", "k"), 5_000), (("q", "k"), 0)]


def test_what_was_acknowledged_longer_ago_than_it_knows_by_whom_is_repeated() -> None:
    ledger = Ledger(ordered=True, kept_ns=60 * _SECOND)
    always = [Forgotten(0, 10**15, 0)]
    for one in (_receipt(0, 1), _receipt(0, 1, 2), _receipt(1, 100), _receipt(1, 100, 101), _receipt(0, 200)):
        ledger.tell(one, always)
    assert [one.message.counter for one in ledger.verdict.repeated] == [0]
