"""What the process of the V5 client tells, as values."""

import pytest

from dev.v5.process import V5Error
from scalable_topics.layout import Part
from tests.support.consumption import Receipt
from tests.support.consumption_judge import judge_ordered
from tests.support.guarantee_checker import Latencies, Numbered
from tests.support.v5_reports import (
    Received,
    Sent,
    acknowledge,
    read_latencies,
    read_received,
)


def test_sent_message_has_its_times_in_seconds() -> None:
    told = {"of": "p", "is": "sent", "message": ["é", 3, 7, 2_500_000_000, 4_000_000]}
    assert Sent.read(told) == Sent(Numbered("p", "é", 3), 7, 2.5, 0.004)


def test_messages_received_later_are_not_those_that_an_acknowledgement_was_about() -> None:
    received = read_received({"messages": [["a", "p|0", 1, 10], [None, "p|0", 2, 10]]})
    acknowledge(received, {"count": 2, "atNs": 11})
    received += read_received({"messages": [["", "p|0", 1, 12]]})
    assert received == [
        Received("a", "p", 0, 1, 10, 11),
        Received(None, "p", 0, 2, 10, 11),
        Received("", "p", 0, 1, 12, None),
    ]
    acknowledge(received, {"count": 1, "atNs": 13})
    assert [one.acknowledged_at_ns for one in received] == [11, 11, 13]


def test_receipt_is_what_judges_know_and_an_empty_key_is_one() -> None:
    received = Received("", "p", 0, 1, 10, 11)
    assert received.receipt("c") == Receipt(Numbered("p", "", 0), Part(1), (), "c", 10, 11)
    assert not judge_ordered([Numbered("p", "", 0)], [received.receipt("c")])
    with pytest.raises(ValueError, match="no key"):
        Received(None, "p", 0, 1, 10).receipt("c")


def test_errors_and_latencies_are_read() -> None:
    error = V5Error.read({"of": "call-1", "is": "failed", "error": "a.B", "message": "not so"})
    assert (error.error, error.text, str(error)) == ("a.B", "not so", "a.B: not so")
    ended = {"of": "p", "is": "ended", "count": 2, "p50Ns": 1_000_000, "p99Ns": 2_000_000, "longestNs": 3_000_000}
    assert read_latencies(ended) == Latencies(2, 0.001, 0.002, 0.003)
