"""What brokers' statistics say is read as they write it, and nothing is made up where they do not (R34)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.load.statistics import Reading, StatisticsTimes, read_bulk, read_topic

SEGMENT = "persistent://t/n/a-segment-0000-ffff-0"
RATES = ("msgRateIn", "msgThroughputIn", "msgRateOut", "msgThroughputOut")


def bulk(name: str = SEGMENT, **changes: Any) -> dict[str, Any]:
    statistics = {
        "msgRateIn": 1.5,
        "msgThroughputIn": 300.0,
        "msgRateOut": 3.0,
        "msgThroughputOut": 600.0,
        "msgInCount": 7,
        "subscriptions": {"s": {"msgBacklog": 4}},
    }
    return {"t/n": {"0x00000000_0xffffffff": {"persistent": {name: {**statistics, **changes}}}}}


def test_the_bulk_answer_is_read() -> None:
    ((name, reading),) = read_bulk(bulk())
    assert name == SEGMENT
    assert reading.rates == Rates(1.5, 300.0, 3.0, 600.0)
    assert reading.messages_in == 7
    assert reading.backlog == {"s": 4}


def test_a_topics_own_statistics_are_read() -> None:
    statistics = {
        "msgRateIn": 1,
        "msgThroughputIn": 2,
        "msgRateOut": 3,
        "msgThroughputOut": 4,
        "msgInCounter": 9,
        "subscriptions": {},
    }
    reading = read_topic(statistics)
    assert reading is not None
    assert (reading.rates, reading.messages_in) == (Rates(1, 2, 3, 4), 9)


@pytest.mark.parametrize(
    "broken", [{"msgRateIn": None}, {"msgRateIn": "NaN"}, {"msgRateOut": -1}, {"subscriptions": 3}]
)
def test_what_cannot_be_read_is_not_known_rather_than_nothing(broken: dict[str, Any]) -> None:
    assert list(read_bulk(bulk(**broken))) == []


@given(st.recursive(st.none() | st.text() | st.integers(), lambda it: st.dictionaries(st.text(), it), max_leaves=20))
def test_no_document_breaks_it(document: Any) -> None:
    assert list(read_bulk(document)) == []


def test_what_very_many_idle_segments_say_is_kept_once_and_is_theirs() -> None:
    def read(**backlogs: int) -> Reading:
        subscriptions = {name: {"msgBacklog": backlog} for name, backlog in backlogs.items()}
        found = read_topic({**dict.fromkeys(RATES, 0.0), "subscriptions": subscriptions})
        assert found is not None
        return found

    idle, other, behind = read(a=0, b=0), read(a=0, b=0), read(a=0, b=7)
    assert (idle.rates, idle.backlog) == (Rates(), {"a": 0, "b": 0})
    assert idle.rates is other.rates
    assert idle.backlog is other.backlog
    assert read(b=0).backlog == {"b": 0}
    assert (behind.rates, behind.backlog) == (Rates(), {"a": 0, "b": 7})


def test_brokers_say_when_they_look_at_their_topics() -> None:
    found = {"statsUpdateFrequencyInSecs": "10", "statsUpdateInitialDelayInSecs": 30, "webServicePort": "8080"}
    assert StatisticsTimes.of(found) == StatisticsTimes(10.0, 30.0)
    assert StatisticsTimes.of({}) == StatisticsTimes(60.0, 60.0)


@pytest.mark.parametrize("setting", ["nan", "inf", "1e400", 10**400, "-1", "86401", "soon", "", None, [], {"a": 1}])
def test_a_period_that_cannot_be_meant_is_the_default(setting: Any) -> None:
    """The pipeline took one without end, which no number of milliseconds is: each batch ended with an error."""
    times = StatisticsTimes.of({"statsUpdateFrequencyInSecs": setting, "statsUpdateInitialDelayInSecs": "5"})
    assert times == StatisticsTimes(60.0, 5.0)
    assert int(times.unseen_seconds * 1000) == 120_000
