"""The faults of a soak are the same for the same seed, and of every kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from tests.support.soak.schedule import Fault, Lane, plan

_TWENTY_MINUTES = 1200.0
_FIRST = (42.723, "NAMESPACE_UNLOADED", 0.486069)


def test_a_seed_has_the_same_faults_and_another_one_has_others() -> None:
    assert plan(15, _TWENTY_MINUTES) == plan(15, _TWENTY_MINUTES)
    assert plan(15, _TWENTY_MINUTES) != plan(16, _TWENTY_MINUTES)


def test_the_plan_of_a_seed_is_the_same_on_every_machine() -> None:
    """What a page of evidence names can be told again."""
    (first, *_) = [one for one in plan(15, _TWENTY_MINUTES) if one.lane is Lane.SERVERS]
    assert (round(first.at_seconds, 3), first.fault.name, round(first.pick, 6)) == _FIRST


def test_a_longer_run_begins_as_a_shorter_one() -> None:
    longer = [one for one in plan(15, 8 * 3600.0) if one.at_seconds < _TWENTY_MINUTES]
    assert longer == plan(15, _TWENTY_MINUTES)


@pytest.mark.parametrize("seed", range(20))
def test_twenty_minutes_have_every_fault_at_least_twice(seed: int) -> None:
    counts = Counter(one.fault for one in plan(seed, _TWENTY_MINUTES))
    assert counts.keys() == set(Fault)
    assert min(counts.values()) >= 2, counts


@pytest.mark.parametrize("seed", range(5))
def test_faults_are_in_order_within_the_time_and_not_all_at_once(seed: int) -> None:
    planned = plan(seed, _TWENTY_MINUTES)
    times = [one.at_seconds for one in planned]
    assert times == sorted(times)
    assert 0 < times[0] < times[-1] < _TWENTY_MINUTES
    of_lanes = defaultdict(list)
    for one in planned:
        of_lanes[one.lane].append(one.at_seconds)
    assert of_lanes.keys() == set(Lane)
    assert all(later - at >= 3.0 for lane in of_lanes.values() for at, later in pairwise(lane))


def test_eight_hours_have_as_much_of_everything_as_their_length_says() -> None:
    short, long = (Counter(one.fault for one in plan(15, hours * 3600.0)) for hours in (2, 8))
    assert all(3.2 < long[fault] / short[fault] < 4.8 for fault in Fault)
