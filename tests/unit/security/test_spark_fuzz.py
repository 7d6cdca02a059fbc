"""What the pipeline reads: brokers' answers, and the thresholds that the operator publishes to it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given

from segment_load.broker_access import BrokerAccess, BrokerSilent, _Answer
from segment_load.thresholds import ThresholdsUnreadable, parse_thresholds
from tests.support.hostile import NESTED_TEXTS, OTHER_TEXTS, fuzzing, randomness, text_of
from tests.unit.security.broker_answers import ANSWERS

SECRET = "t0ken-of-the-pipeline"
THRESHOLDS = {"topic://a/b/c": {"split": [1, 2, 3, 4.5], "merge": [0, 0, 0, 0]}}
LOCATIONS = ("", "http://[", "http://b:8080/x", "https://b:8080/x", "//evil/x", "http://x@b:8080/", "\ud800")
"""Where a broker redirects to."""


@fuzzing(300)
@given(randomness)
@example(random.Random(0))
def test_thresholds(rng: random.Random) -> None:
    for text in (text_of(rng, THRESHOLDS), rng.choice((*NESTED_TEXTS, *OTHER_TEXTS))):
        try:
            rows = parse_thresholds(text.decode("utf-8", "replace"))
        except ThresholdsUnreadable:
            continue
        assert all(len(split) == len(merge) == 4 for _, split, merge in rows)


def test_no_answer_of_a_broker_ends_a_batch_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver takes `BrokerSilent` for a broker that is missing; any other error would end the stream."""
    (tmp_path / "token").write_text(SECRET)
    access = BrokerAccess("http://b:8080", token_file=str(tmp_path / "token"))
    answer: list[_Answer] = []
    monkeypatch.setattr(BrokerAccess, "_exchange", lambda self, method, url, body: answer[0])

    def ask(rng: random.Random, body: Any) -> None:
        status = rng.choice((200, 200, 200, 307, 401, 500))
        answer[:] = [_Answer(status, rng.choice(LOCATIONS), text_of(rng, body))]
        calls = (
            access.brokers,
            access.statistics_times,
            lambda: access.topic_loads("b:8080"),
            lambda: access.send("POST", "/admin/v2/x", 1),
        )
        for call in calls:
            try:
                call()
            except BrokerSilent as error:
                said = str(error)
                assert SECRET not in said
                assert len(said) < 20_000

    @fuzzing(150)
    @given(randomness)
    def check(rng: random.Random) -> None:
        ask(rng, rng.choice([ANSWERS["list-brokers"], ANSWERS["get-configuration"], ANSWERS["get-broker-stats"]]))

    check()
