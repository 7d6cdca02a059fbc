"""R16: which cursors count, from the statistics documents of a real broker (4.2.4, shortened)."""

from typing import Any

import pytest

from scalable_topics_operator.backends.classic.cursors import is_internal
from scalable_topics_operator.backends.classic.look import look_from
from scalable_topics_operator.operations.errors import BackendUnavailable
from scalable_topics_operator.operations.protocols import Position


def _subscription(durable: bool, backlog: int, consumers: int) -> dict[str, Any]:
    return {"isDurable": durable, "msgBacklog": backlog, "consumers": [{}] * consumers, "type": "Exclusive"}


STATS: dict[str, Any] = {
    "publishers": [{"producerName": "p"}],
    "subscriptions": {
        "sub": _subscription(True, 5, 1),
        "reader-ada4835a6e": _subscription(False, 5, 1),
        "__compaction": _subscription(True, 0, 0),
        "a/b c": _subscription(True, 2, 0),
        "made-in-between": _subscription(True, 0, 0),
    },
}
INTERNAL: dict[str, Any] = {
    "state": "Terminated",
    "lastConfirmedEntry": "40:4",
    "pendingAddEntriesCount": 2,
    "numberOfEntries": 5,
    "ledgers": [{"ledgerId": 38, "entries": 3}, {"ledgerId": 40, "entries": 0}],
    "cursors": {
        "sub": {"markDeletePosition": "40:-1"},
        "reader-ada4835a6e": {"markDeletePosition": "40:-1"},
        "__compaction": {"markDeletePosition": "40:4"},
        "a%2Fb+c": {"markDeletePosition": "40:2"},
        "deleted-in-between": {"markDeletePosition": "40:2"},
    },
}


def test_r16_readers_and_internal_cursors_do_not_count() -> None:
    look = look_from("persistent://t/n/x", STATS, INTERNAL)
    assert look.counting == {"sub", "a/b c"}
    assert set(look.cursors) == {"sub", "reader-ada4835a6e", "__compaction", "a/b c"}
    assert look.consumers == 2


def test_a_segment_is_shown_as_the_broker_has_it() -> None:
    look = look_from("persistent://t/n/x", STATS, INTERNAL)
    assert look.terminated
    assert look.last_confirmed == Position(40, 4)
    assert (look.pending_adds, look.entries, look.producers) == (2, 5, frozenset({"p"}))
    assert look.cursors["sub"].mark_delete == Position(40, -1)
    assert look.cursors["a/b c"].backlog == 2
    assert look.first_ledger_id == 38


@pytest.mark.parametrize("state", ["LedgerOpened", "ClosedLedger", "CreatingLedger", "Fenced", "None", None])
def test_r14_no_other_state_is_a_seal(state: str | None) -> None:
    assert not look_from("x", STATS, {**INTERNAL, "state": state}).terminated


@pytest.mark.parametrize(
    "damage", [{"lastConfirmedEntry": "x"}, {"lastConfirmedEntry": None}, {"numberOfEntries": None}]
)
def test_statistics_that_lack_something_are_no_look(damage: dict[str, Any]) -> None:
    with pytest.raises(BackendUnavailable, match="statistics of persistent://t/n/x"):
        look_from("persistent://t/n/x", STATS, {**INTERNAL, **damage})


@pytest.mark.parametrize(
    ("name", "internal"),
    [
        ("__compaction", True),
        ("__dedup", True),
        ("pulsar.repl.west", True),
        ("pulsar.dedup", True),
        ("orders", False),
        ("_one", False),
        ("pulsar", False),
    ],
)
def test_r16_internal_names(name: str, internal: bool) -> None:
    assert is_internal(name) is internal
