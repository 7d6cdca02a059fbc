"""Thresholds that fit into one ConfigMap (R35)."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.load.fitting_thresholds import fitting_thresholds

THRESHOLDS = {"split": [1, 2, 3, 4], "merge": [0, 1, 1, 2]}


def test_what_fits_is_left_as_it_is() -> None:
    text = json.dumps({"topic://a/b/c": THRESHOLDS})
    fitting = fitting_thresholds(text.encode(), len(text))
    assert (fitting.text, fitting.left_out, fitting.remark()) == (text, 0, "")


@given(st.dictionaries(st.text(min_size=1), st.just(THRESHOLDS), min_size=1, max_size=30), st.integers(2, 2000))
def test_what_does_not_fit_loses_the_last_topics_and_says_how_many(
    topics: dict[str, dict[str, list[int]]], most_bytes: int
) -> None:
    whole = json.dumps(topics).encode()
    fitting = fitting_thresholds(whole, most_bytes)
    assert len(fitting.text.encode()) <= most_bytes
    kept = json.loads(fitting.text)
    assert list(kept.items()) == [(topic, topics[topic]) for topic in sorted(topics)[: len(kept)]] or kept == topics
    assert fitting.left_out == len(topics) - len(kept)
    assert bool(fitting.remark()) == bool(fitting.left_out)
