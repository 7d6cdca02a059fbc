"""One acknowledgement covers everything delivered before it, on all segments that are still held."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.sdk.deliveries import Deliveries

Holding = tuple[str, int]


def delivered(deliveries: Deliveries[Holding], holding: Holding, entry: int) -> int:
    """Deliver one message that is news."""
    number = deliveries.deliver(holding, (1, entry, -1), entry)
    assert number is not None
    return number


def test_one_acknowledgement_covers_every_segment() -> None:
    """Hazard A4-26616."""
    deliveries: Deliveries[Holding] = Deliveries()
    a, b = ("a", 0), ("b", 0)
    deliveries.hold(a)
    deliveries.hold(b)
    numbers = [delivered(deliveries, holding, entry) for entry in range(3) for holding in (a, b)]
    assert deliveries.acknowledge(numbers[2]) == {a: [1], b: [0]}
    assert deliveries.acknowledge(numbers[1]) == {}, "an earlier one takes nothing back"
    assert not deliveries.is_settled(a)
    assert deliveries.acknowledge(numbers[-1]) == {a: [2], b: [2]}
    assert deliveries.is_settled(a)


def test_what_a_broker_delivers_again_is_no_news() -> None:
    """It begins anew behind what is acknowledged; the application has the rest already."""
    deliveries: Deliveries[Holding] = Deliveries()
    a = ("a", 0)
    deliveries.hold(a)
    for entry in range(4):
        delivered(deliveries, a, entry)
    assert [deliveries.deliver(a, (1, entry, -1), entry) for entry in range(1, 6)] == [None, None, None, 4, 5]
    assert deliveries.acknowledge(5) == {a: [5]}


def test_a_message_of_a_segment_that_was_given_back_still_covers_the_others() -> None:
    deliveries: Deliveries[Holding] = Deliveries()
    a, b, again = ("a", 0), ("b", 0), ("a", 1)
    deliveries.hold(a)
    deliveries.hold(b)
    delivered(deliveries, b, 7)
    last = delivered(deliveries, a, 0)
    deliveries.give_back(a)
    assert deliveries.is_settled(a), "nothing of it can be acknowledged"
    deliveries.hold(again)
    assert deliveries.deliver(again, (1, 0, -1), 0) == last + 1, "not acknowledged, so it is news again"
    assert deliveries.acknowledge(last) == {b: [7]}
    assert not deliveries.is_settled(again)


def test_R22_a_segment_is_acknowledged_up_to_a_place_whatever_came_of_others() -> None:
    """Hazard A3-25719."""
    deliveries: Deliveries[Holding] = Deliveries()
    a, b = ("a", 0), ("b", 0)
    deliveries.hold(a)
    deliveries.hold(b)
    for entry in range(4):
        delivered(deliveries, a, entry)
        delivered(deliveries, b, entry)
    assert deliveries.acknowledge_to(a, (1, 2, -1)) == [2]
    assert deliveries.acknowledge_to(a, (1, 1, -1)) == [], "an earlier one takes nothing back"
    assert deliveries.acknowledge_to(b, (0, 9, -1)) == []
    assert not deliveries.is_settled(a)
    assert deliveries.acknowledge_to(a, (9, 9, 9)) == [3]
    assert deliveries.is_settled(a)
    assert not deliveries.is_settled(b)
    deliveries.give_back(b)
    assert deliveries.acknowledge_to(b, (9, 9, 9)) == []


def test_of_a_bucket_each_message_is_acknowledged() -> None:
    """Brokers refuse cumulative acknowledgements there."""
    deliveries: Deliveries[Holding] = Deliveries()
    whole, bucket = ("a", 0), ("b", 0)
    deliveries.hold(whole)
    deliveries.hold(bucket, one_by_one=True)
    numbers = [delivered(deliveries, holding, entry) for entry in range(4) for holding in (whole, bucket)]
    assert deliveries.acknowledge(numbers[4]) == {whole: [2], bucket: [0, 1]}
    assert deliveries.acknowledge_to(bucket, (1, 2, -1)) == [2]
    assert not deliveries.is_settled(bucket)
    assert deliveries.acknowledge(numbers[-1]) == {whole: [3], bucket: [3]}
    assert deliveries.is_settled(bucket)


@pytest.mark.parametrize("one_by_one", [True, False], ids=["bucket", "whole"])
def test_an_acknowledgement_that_was_lost_is_sent_again_when_the_message_comes_again(one_by_one: bool) -> None:
    """Of a bucket nothing else would ever say it, and it would never be drained (hazard A4-26208a)."""
    deliveries: Deliveries[Holding] = Deliveries()
    a = ("a", 0)
    deliveries.hold(a, one_by_one=one_by_one)
    first = delivered(deliveries, a, 0)
    delivered(deliveries, a, 1)
    deliveries.acknowledge(first)
    assert deliveries.deliver(a, (1, 0, -1), "0 again") is None
    assert deliveries.again(a, (1, 0, -1), "0 again") == (["0 again"] if one_by_one else [])
    assert deliveries.deliver(a, (1, 1, -1), "1 again") is None
    assert deliveries.again(a, (1, 1, -1), "1 again") == [], "it is not acknowledged yet"
    assert deliveries.acknowledge_to(a, (9, 0, -1)) == ["1 again"], "its batch counts as it came last"


def test_of_a_bucket_nothing_is_lost_whatever_the_order() -> None:
    """Producers that know nothing of buckets have brokers keep the order of each key only."""
    deliveries: Deliveries[Holding] = Deliveries()
    bucket = ("b", 0)
    deliveries.hold(bucket, one_by_one=True)
    last = [delivered(deliveries, bucket, entry) for entry in (5, 2, 7)][-1]
    assert deliveries.last_place(bucket) == (1, 7, -1)
    assert deliveries.acknowledge_to(bucket, (1, 4, -1)) == [2]
    assert deliveries.acknowledge(last) == {bucket: [5, 7]}


def test_what_is_remembered_of_a_bucket_is_bounded() -> None:
    deliveries: Deliveries[Holding] = Deliveries()
    bucket = ("b", 0)
    deliveries.hold(bucket, one_by_one=True)
    for entry in range(6000):
        deliveries.acknowledge(delivered(deliveries, bucket, entry))
    assert deliveries.deliver(bucket, (1, 5999, -1), 5999) is None
    assert deliveries.deliver(bucket, (1, 0, -1), 0) is not None, "twice rather than never"


def test_R22_what_is_skipped_is_acknowledged_with_what_came_before_it() -> None:
    deliveries: Deliveries[Holding] = Deliveries()
    whole, bucket = ("a", 0), ("b", 0)
    deliveries.hold(whole)
    deliveries.hold(bucket, one_by_one=True)
    assert deliveries.skip(whole, (1, 0, -1), 0) == [0], "nothing is open before it"
    number = delivered(deliveries, whole, 1)
    assert deliveries.skip(whole, (1, 2, -1), 2) == []
    assert not deliveries.is_settled(whole)
    assert deliveries.again(whole, (1, 1, -1), 1) == []
    assert deliveries.skip(whole, (1, 0, -1), 0) == [], "it comes again, as all does"
    assert deliveries.skip(whole, (1, 2, -1), 2) == []
    assert deliveries.last_place(whole) == (1, 2, -1)
    assert deliveries.acknowledge(number) == {whole: [2]}
    delivered(deliveries, bucket, 5)
    assert deliveries.skip(bucket, (1, 6, -1), 6) == [6], "it is acknowledged by itself"
    deliveries.give_back(bucket)
    assert deliveries.skip(bucket, (1, 7, -1), 7) == deliveries.again(bucket, (1, 7, -1), 7) == []


@given(st.lists(st.tuples(st.sampled_from(["deliver", "again", "acknowledge", "give back"]), st.integers(0, 99))))
def test_R24_it_agrees_with_a_list_of_everything(steps: list[tuple[str, int]]) -> None:
    """Against a model that keeps every delivery: each position acknowledged is the last one before the message (hazard
    A4-26616), and of a bucket each one before it.
    """
    deliveries: Deliveries[Holding] = Deliveries()
    holdings: list[Holding] = [("a", 0), ("b", 0), ("bucket", 0)]
    for holding in holdings:
        deliveries.hold(holding, one_by_one=holding[0] == "bucket")
    log: list[tuple[Holding, int]] = []
    next_entry = dict.fromkeys(holdings, 0)
    reached = dict.fromkeys(holdings, -1)
    for step, pick in steps:
        holding = holdings[pick % 3]
        match step:
            case "deliver":
                assert delivered(deliveries, holding, next_entry[holding]) == len(log)
                log.append((holding, next_entry[holding]))
                next_entry[holding] += 1
            case "again" if next_entry[holding]:
                entry = pick % next_entry[holding]
                assert deliveries.deliver(holding, (1, entry, -1), entry) is None
            case "acknowledge" if log:
                number = pick % len(log)
                before = dict(reached)
                for each, entry in log[: number + 1]:
                    if each in reached:
                        reached[each] = max(reached[each], entry)
                new = {
                    each: list(range(before[each] + 1, entry + 1)) if each[0] == "bucket" else [entry]
                    for each, entry in reached.items()
                    if entry > before[each]
                }
                assert deliveries.acknowledge(number) == new
            case "give back":
                deliveries.give_back(holding)
                del reached[holding]
                del next_entry[holding]
                holdings[pick % 3] = (holding[0], holding[1] + 1)
                deliveries.hold(holdings[pick % 3], one_by_one=holding[0] == "bucket")
                next_entry[holdings[pick % 3]] = 0
                reached[holdings[pick % 3]] = -1
        for each in holdings:
            assert deliveries.is_settled(each) == (reached[each] == next_entry[each] - 1)
        assert deliveries.places() == {
            each: (1, next_entry[each] - 1, -1) if next_entry[each] else () for each in holdings
        }
