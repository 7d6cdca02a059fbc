from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.backends.admin.retry import RetryPolicy, parse_retry_after

POLICY = RetryPolicy(attempts=6, base_seconds=0.1, cap_seconds=1.0, total_seconds=30.0)


def _highest(low: float, high: float) -> float:
    return high


def _lowest(low: float, high: float) -> float:
    return low


def test_the_bound_of_the_jitter_doubles_up_to_the_cap() -> None:
    bounds = [POLICY.wait_seconds(attempt, elapsed_seconds=0, uniform=_highest) for attempt in range(1, 6)]
    assert bounds == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0])


def test_the_jitter_is_full() -> None:
    assert POLICY.wait_seconds(5, elapsed_seconds=0, uniform=_lowest) == 0.0


def test_the_last_attempt_is_not_followed_by_a_wait() -> None:
    assert POLICY.wait_seconds(5, elapsed_seconds=0) is not None
    assert POLICY.wait_seconds(6, elapsed_seconds=0) is None


def test_no_repeat_starts_after_the_total_time() -> None:
    assert POLICY.wait_seconds(1, elapsed_seconds=29.95, uniform=_highest) is None
    assert POLICY.wait_seconds(1, elapsed_seconds=29.85, uniform=_highest) == pytest.approx(0.1)


def test_c53_the_server_is_not_asked_before_the_time_it_names() -> None:
    assert POLICY.wait_seconds(1, elapsed_seconds=0, retry_after_seconds=7.0, uniform=_lowest) == 7.0
    assert POLICY.wait_seconds(1, elapsed_seconds=0, retry_after_seconds=7.0, uniform=_highest) == pytest.approx(7.1)
    assert POLICY.wait_seconds(1, elapsed_seconds=0, retry_after_seconds=3600.0) is None


@given(st.integers(1, 10), st.floats(0, 60), st.none() | st.floats(0, 100))
def test_a_wait_is_bounded_whatever_happens(attempt: int, elapsed: float, retry_after: float | None) -> None:
    wait = POLICY.wait_seconds(attempt, elapsed_seconds=elapsed, retry_after_seconds=retry_after)
    if wait is not None:
        assert 0 <= wait <= POLICY.total_seconds - elapsed
        assert attempt < POLICY.attempts


@pytest.mark.parametrize("broken", [{"attempts": 0}, {"base_seconds": 0}, {"cap_seconds": float("nan")}])
def test_a_policy_without_sense_is_refused(broken: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"attempts|times"):
        RetryPolicy(**broken)  # type: ignore[arg-type]


def test_retry_after_is_read_in_both_forms() -> None:
    now = datetime(2026, 11, 27, 12, 0, 0, tzinfo=UTC)
    assert parse_retry_after(None) is None
    assert parse_retry_after(" 12 ") == 12.0
    assert parse_retry_after("Fri, 27 Nov 2026 12:00:30 GMT", now=now) == 30.0
    assert parse_retry_after("Fri, 27 Nov 2026 11:00:00 GMT", now=now) == 0.0
    assert parse_retry_after("soon") is None
    assert parse_retry_after("-3") is None
    assert parse_retry_after("٣") is None
