"""How many consumers there were of late is known of no shorter time than was watched (pip-486, hazard A2-26434a)."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.autoscale.demand import Demand

WINDOW, GAP = 600, 180
S = 1000


def watched(*looks: tuple[int, int]) -> Demand:
    """After looks at second and number of consumers."""
    demand = Demand()
    for second, consumers in looks:
        demand = demand.seen(consumers, second * S, window_seconds=WINDOW, most_gap_seconds=GAP)
    return demand


def minutes(count: int, consumers: int, start: int = 0) -> list[tuple[int, int]]:
    return [(start + 60 * number, consumers) for number in range(count)]


def test_nothing_is_said_of_a_window_that_is_not_over_yet() -> None:
    assert Demand().most(10**9) is None
    demand = watched(*minutes(10, 3))
    assert demand.most(599 * S) is None
    assert demand.most(600 * S) == 3


def test_the_most_of_the_window_counts_and_is_forgotten_after_it() -> None:
    demand = watched(*minutes(10, 3), (600, 8), *minutes(10, 2, start=660))
    assert demand.most(1200 * S) == 8
    assert demand.most(1201 * S) == 2


def test_what_nobody_saw_may_have_been_anything() -> None:
    """A gap, another leader and a clock that goes back begin the window anew."""
    known = watched(*minutes(20, 3))
    assert known.most(1200 * S) == 3
    after_a_gap = known.seen(3, (1140 + GAP + 1) * S, window_seconds=WINDOW, most_gap_seconds=GAP)
    assert after_a_gap.most(1330 * S) is None
    back = known.seen(3, 1139 * S, window_seconds=WINDOW, most_gap_seconds=GAP)
    assert back.most(1200 * S) is None
    longer = known.seen(3, 1200 * S, window_seconds=WINDOW + 1, most_gap_seconds=GAP)
    assert longer.most(1200 * S) is None


@given(st.lists(st.tuples(st.integers(1, 240), st.integers(0, 9)), min_size=1, max_size=60), st.integers(0, 200))
def test_it_is_what_a_list_of_all_looks_would_tell(steps: list[tuple[int, int]], then: int) -> None:
    looks: list[tuple[int, int]] = []
    for gap, consumers in steps:
        looks.append(((looks[-1][0] if looks else 0) + gap, consumers))
    now = looks[-1][0] + then
    since = looks[0][0]
    for (before, _), (after, _) in itertools.pairwise(looks):
        since = after if after - before > GAP else since
    within = [consumers for second, consumers in looks if second >= max(since, now - WINDOW)]
    found = watched(*looks)
    assert found.most(now * S) == (max(within) if now - since >= WINDOW else None)
    assert len(found.peaks) <= 10
