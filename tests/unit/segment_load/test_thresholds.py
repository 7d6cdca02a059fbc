"""The file of thresholds: what it says, and what is wrong with it in words."""

from __future__ import annotations

import json

import pytest

from segment_load.thresholds import ThresholdsUnreadable, parse_thresholds

_GOOD = {"topic://t/n/a": {"split": [1, 2, 3, 4], "merge": [0, 1, 2, 3]}}


def test_thresholds_are_read() -> None:
    assert parse_thresholds(json.dumps(_GOOD)) == [("topic://t/n/a", [1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0])]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("{", "it is no JSON"),
        ("[]", "no JSON object of topics"),
        ('{"topic://t/n/a": 1}', "topic://t/n/a: split must be a list of 4 rates"),
        ('{"topic://t/n/a": {"split": [1, 2, 3, 4], "merge": [1]}}', "merge must be a list of 4 rates"),
        ('{"topic://t/n/a": {"split": [1, 2, 3, "x"]}}', "split must be numbers"),
        ('{"topic://t/n/a": {"split": [1, 2, 3, -4]}}', "split must be 0 or more"),
        ('{"topic://t/n/a": {"split": [1, 2, 3, NaN]}}', "split must be 0 or more"),
    ],
)
def test_what_is_wrong_is_said(text: str, match: str) -> None:
    with pytest.raises(ThresholdsUnreadable, match=match):
        parse_thresholds(text)
