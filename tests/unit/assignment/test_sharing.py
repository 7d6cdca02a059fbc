"""Fair shares, as few moves as they take, and nothing that depends on who came first (pip-468, pip-486)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.assignment.sharing import Readers, deal_buckets, share

NAMES = st.sets(st.sampled_from([f"consumer-{number}" for number in range(12)]), max_size=12)


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[int], set[str], dict[int, list[str]]]:
    segments = draw(st.lists(st.integers(0, 40), unique=True, max_size=20))
    claims = {
        segment: draw(
            st.lists(st.sampled_from([f"consumer-{number}" for number in range(14)]), max_size=2, unique=True)
        )
        for segment in segments
    }
    return segments, draw(NAMES), claims


def _shares(dealt: Mapping[int, Readers], consumers: set[str]) -> list[int]:
    has = Counter(name for readers in dealt.values() for name in readers)
    return sorted(has[name] for name in consumers)


def _moved(dealt: Mapping[int, Readers], claims: Mapping[int, Sequence[str]], consumers: set[str]) -> int:
    """How many segments went from a consumer that is there to another one."""
    claimants = {one: next((name for name in claims[one] if name in consumers), None) for one in dealt}
    return sum(claimants[one] is not None and readers[0] != claimants[one] for one, readers in dealt.items())


@given(situations())
def test_every_segment_has_one_reader_and_shares_differ_by_one_at_most(
    situation: tuple[list[int], set[str], dict[int, list[str]]],
) -> None:
    """Hazard A3-25612."""
    segments, consumers, claims = situation
    dealt = share(segments, consumers, claims, {}, consumers)
    if not consumers:
        assert dealt == {}
        return
    assert set(dealt) == set(segments)
    assert all(len(readers) == 1 for readers in dealt.values())
    assert {name for readers in dealt.values() for name in readers} <= consumers
    shares = _shares(dealt, consumers)
    assert shares[-1] - shares[0] <= 1


@given(situations())
def test_no_more_segments_move_than_fair_shares_take(
    situation: tuple[list[int], set[str], dict[int, list[str]]],
) -> None:
    segments, consumers, claims = situation
    if not consumers:
        return
    claimed = Counter(next((name for name in claims[one] if name in consumers), None) for one in segments)
    least, one_more = divmod(len(segments), len(consumers))
    over = sorted((claimed[name] for name in consumers), reverse=True)
    fewest = sum(max(0, have - least - (place < one_more)) for place, have in enumerate(over))
    assert _moved(share(segments, consumers, claims, {}, consumers), claims, consumers) == fewest


@given(situations(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(
    situation: tuple[list[int], set[str], dict[int, list[str]]], shuffling: random.Random
) -> None:
    segments, consumers, claims = situation
    shuffled = list(consumers)
    shuffling.shuffle(shuffled)
    assert share(segments, shuffled, claims, {}, consumers) == share(segments, sorted(consumers), claims, {}, consumers)


@given(situations())
def test_what_was_dealt_stays_as_it_is(situation: tuple[list[int], set[str], dict[int, list[str]]]) -> None:
    segments, consumers, claims = situation
    dealt = share(segments, consumers, claims, {}, consumers)
    assert share(segments, consumers, dealt, {}, consumers) == dealt


def test_without_claims_it_is_round_robin() -> None:
    assert share([5, 6, 7, 8], {"c", "a", "b"}, {}, {}, ()) == {5: ("a",), 6: ("b",), 7: ("c",), 8: ("a",)}


def test_a_split_leaves_a_child_with_the_reader_of_its_parent() -> None:
    dealt = share([2, 3, 1], {"a", "b"}, {2: ["a"], 3: ["a"], 1: ["b"]}, {}, ())
    assert dealt == {2: ("a",), 3: ("a",), 1: ("b",)}
    fuller = share([2, 3, 1], {"a", "b", "c"}, {2: ["a"], 3: ["a"], 1: ["b"]}, {}, ())
    assert fuller == {2: ("a",), 3: ("c",), 1: ("b",)}


@given(situations(), st.dictionaries(st.integers(0, 40), st.integers(1, 5)), st.data())
def test_idle_consumers_share_what_may_be_shared(
    situation: tuple[list[int], set[str], dict[int, list[str]]], most: dict[int, int], data: st.DataObject
) -> None:
    segments, consumers, claims = situation
    sharers = consumers - data.draw(NAMES)
    dealt = share(segments, consumers, claims, most, sharers)
    if not consumers:
        assert dealt == {}
        return
    assert all(1 <= len(set(readers)) == len(readers) <= most.get(one, 1) for one, readers in dealt.items())
    assert all(set(readers) <= sharers for readers in dealt.values() if len(readers) > 1)
    idle = sharers.difference(*dealt.values())
    if len(consumers) > len(segments):
        room = [one for one, readers in dealt.items() if len(readers) < most.get(one, 1) and readers[0] in sharers]
        assert not (idle and room)
    again = share(segments, consumers, dealt, most, sharers)
    assert {one: set(readers) for one, readers in again.items()} == {one: set(dealt[one]) for one in segments}


@given(situations(), st.integers(2, 6))
def test_segments_are_shared_by_as_many_as_others(
    situation: tuple[list[int], set[str], dict[int, list[str]]], most: int
) -> None:
    """However they were shared before."""
    segments, consumers, claims = situation
    dealt = share(segments, consumers, claims, dict.fromkeys(segments, most), consumers)
    sizes = [len(readers) for readers in dealt.values()]
    assert not sizes or max(sizes) - min(sizes) <= 1


@given(st.integers(1, 64), st.data())
def test_buckets_are_dealt_in_fair_shares_and_no_more_of_them_move_than_that_takes(
    buckets: int, data: st.DataObject
) -> None:
    names = sorted(data.draw(st.sets(st.sampled_from([f"c{number}" for number in range(12)]), min_size=1)))[:buckets]
    owners = data.draw(st.lists(st.sampled_from([*names, None]), min_size=buckets, max_size=buckets))
    owned = {name: {bucket for bucket, owner in enumerate(owners) if owner == name} for name in names}
    dealt = deal_buckets(buckets, owned)
    assert sorted(bucket for some in dealt.values() for bucket in some) == list(range(buckets))
    sizes = sorted(len(some) for some in dealt.values())
    assert sizes[-1] - sizes[0] <= 1
    least, one_more = divmod(buckets, len(names))
    most_kept = sum(
        min(have, least + (place < one_more))
        for place, have in enumerate(sorted((len(some) for some in owned.values()), reverse=True))
    )
    assert sum(len(dealt[name] & owned[name]) for name in names) == most_kept
    assert deal_buckets(buckets, dealt) == dealt


def test_buckets_that_nobody_had_are_dealt_in_a_row() -> None:
    assert deal_buckets(5, {"b": set(), "a": set()}) == {"a": {0, 1, 2}, "b": {3, 4}}


@pytest.mark.parametrize(("consumers", "sizes"), [(4, [4]), (5, [4]), (1, [1])])
def test_a_segment_is_shared_by_as_many_as_it_has_buckets(consumers: int, sizes: list[int]) -> None:
    names = {f"consumer-{number}" for number in range(consumers)}
    assert [len(readers) for readers in share([0], names, {}, {0: 4}, names).values()] == sizes
