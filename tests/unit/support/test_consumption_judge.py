"""The judge of consumers finds what is wrong, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import Part
from tests.support.consumption import Receipt
from tests.support.consumption_judge import Forgotten, judge_ordered, judge_shared
from tests.support.guarantee_checker import Numbered

_S = 1_000_000_000


def _message(counter: int, key: str = "k") -> Numbered:
    return Numbered("p", key, counter)


def _receipt(counter: int, at: float, acked: float | None = None, consumer: str = "a", key: str = "k") -> Receipt:
    acknowledged_at = None if acked is None else int(acked * _S)
    return Receipt(_message(counter, key), Part(0), (1, counter, -1), consumer, int(at * _S), acknowledged_at)


def _counters(receipts: Sequence[Receipt]) -> list[int]:
    return [one.message.counter for one in receipts]


ALL = [_message(0), _message(1), _message(2)]
GOOD = [_receipt(0, 1, 2), _receipt(1, 1.1, 2), _receipt(2, 3, 4, "b")]


def test_what_comes_once_and_in_order_is_right() -> None:
    assert not judge_ordered(ALL, GOOD)
    assert not judge_shared(ALL, GOOD)
    assert judge_ordered(ALL, GOOD).receipts == judge_shared(ALL, GOOD).receipts == 3


def test_what_never_comes_is_lost() -> None:
    assert judge_ordered(ALL, GOOD[:2]).lost == [_message(2)]
    assert judge_shared(ALL, GOOD[1:]).lost == [_message(0)]


def test_what_comes_and_is_acknowledged_by_nobody_is_lost() -> None:
    """Whoever had it died: it would have had to come again."""
    dropped = [*GOOD[:2], _receipt(2, 3)]
    assert judge_ordered(ALL, dropped).lost == judge_shared(ALL, dropped).lost == [_message(2)]


def test_a_gap_is_disorder_whoever_reads() -> None:
    gap = [_receipt(0, 1, 2), _receipt(2, 1.1, 2), _receipt(1, 3, 4, "b")]
    assert _counters(judge_ordered(ALL, gap).disordered) == [2]
    assert _counters(judge_ordered(ALL, GOOD[1:]).disordered) == [1]
    assert not judge_shared(ALL, gap)


def test_a_gap_in_what_comes_again_is_disorder() -> None:
    again = [_receipt(0, 1), _receipt(1, 1.1), _receipt(0, 5, 6, "b"), _receipt(2, 5.1, 6, "b"), _receipt(1, 5.2, 6)]
    assert _counters(judge_ordered(ALL, again).disordered) == [2]


def test_the_order_is_that_of_the_clock_and_not_that_of_the_logs() -> None:
    assert not judge_ordered(ALL, GOOD[::-1])
    assert judge_ordered(ALL, [_receipt(0, 2, 3), _receipt(1, 1, 3), _receipt(2, 3, 4)]).disordered


def test_other_keys_do_not_matter() -> None:
    assert not judge_ordered([_message(0), _message(0, "other")], [_receipt(0, 2, 3), _receipt(0, 1, 3, key="other")])


def test_what_was_not_acknowledged_may_come_again() -> None:
    again = [_receipt(0, 1), _receipt(1, 1.1), _receipt(0, 5, 6, "b"), _receipt(1, 5.1, 6, "b"), _receipt(2, 5.2, 6)]
    judgement = judge_ordered(ALL, again)
    assert not judgement
    assert (judgement.again, judgement.forgiven) == (2, 0)


def test_what_was_acknowledged_may_not() -> None:
    assert [seconds for _, seconds in judge_ordered(ALL, [*GOOD, _receipt(2, 12, consumer="a")]).repeated] == [8.0]
    # That acknowledgement had not been sent.
    assert not judge_ordered(ALL, [*GOOD, _receipt(2, 4.05, 5)])


def test_acknowledged_the_second_time_it_may_not_come_a_third_time() -> None:
    again = [_receipt(0, 1), _receipt(0, 5, 6, "b"), _receipt(0, 8, 9)]
    assert [seconds for _, seconds in judge_ordered(ALL[:1], again).repeated] == [2.0]


def test_what_may_be_forgotten_may_come_again() -> None:
    again = [*GOOD, _receipt(2, 10, 11, consumer="a")]
    judgement = judge_ordered(ALL, again, [Forgotten(3 * _S, 5 * _S, 5 * _S)])
    assert not judgement
    assert (judgement.again, judgement.forgiven) == (1, 1)


@pytest.mark.parametrize(
    "forgotten",
    [
        Forgotten(5 * _S, 9 * _S, 9 * _S),
        Forgotten(1 * _S, 3 * _S, 3 * _S),
        Forgotten(3 * _S, 15 * _S, 11 * _S),
        Forgotten(3 * _S, 5 * _S, 5 * _S, "a"),
    ],
    ids=["acknowledged before", "acknowledged after", "nobody was dead yet", "by another consumer"],
)
def test_nothing_else_may(forgotten: Forgotten) -> None:
    again = [*GOOD, _receipt(2, 10, 11, consumer="a")]
    assert _counters([one for one, _ in judge_ordered(ALL, again, [forgotten]).repeated]) == [2]


def test_what_was_forgotten_once_is_acknowledged_again() -> None:
    """The second acknowledgement counts, whatever became of the first."""
    again = [*GOOD, _receipt(2, 10, 11, consumer="a"), _receipt(2, 14, 15, consumer="b")]
    judgement = judge_ordered(ALL, again, [Forgotten(3 * _S, 5 * _S, 5 * _S)])
    assert [seconds for _, seconds in judgement.repeated] == [3.0]


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 12))
def test_a_right_story_with_one_thing_wrong_is_wrong(seed: int, keys: int, count: int) -> None:
    random = Random(seed)
    stored = [_message(counter, f"k{key}") for key in range(keys) for counter in range(count)]
    story = _right_story(random, keys, count)
    assert not judge_ordered(stored, story)
    lost = random.choice(stored)
    assert lost in judge_ordered(stored, [one for one in story if one.message != lost]).lost
    end = max(one.at_ns for one in story) + 10 * _S
    repeated = random.choice([one for one in story if one.acknowledged_at_ns is not None]).message
    assert judge_ordered(stored, [*story, Receipt(repeated, Part(0), (), "z", end, end)]).repeated
    beyond = Numbered(repeated.producer, repeated.key, count + 1)
    assert judge_ordered(stored, [*story, Receipt(beyond, Part(0), (), "z", end, end)]).disordered


def _right_story(random: Random, keys: int, count: int) -> list[Receipt]:
    """Each key is read by consumers one after the other, who die or not, and begin where the last one acknowledged."""
    story: list[Receipt] = []
    for key in range(keys):
        at, done = random.uniform(1, 2), 0
        while done < count:
            upto = random.randint(done + 1, count)
            acknowledged = random.randint(done, upto)
            story += [
                _receipt(counter, at + counter / 1000, at + 1 if counter < acknowledged else None, f"{at}", f"k{key}")
                for counter in range(done, upto)
            ]
            at, done = at + random.uniform(2, 20), acknowledged
    return story
