"""Amounts and durations as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from scalable_topics_operator.api.quantities import Duration, Quantity
from scalable_topics_operator.autoscale.written_knobs import parse_duration_seconds, parse_quantity

_QUANTITY: TypeAdapter[int | str] = TypeAdapter(Quantity)
_DURATION: TypeAdapter[int | str] = TypeAdapter(Duration)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        (0, 0),
        (500, 500),
        ("0.5", 0.5),
        ("10k", 10_000),
        ("1.5M", 1_500_000),
        ("2G", 2_000_000_000),
        ("1T", 10**12),
        ("1Ki", 1024),
        ("50Mi", 52_428_800),
        ("0.5Gi", 2**29),
        ("1Ti", 2**40),
    ],
)
def test_quantities(text: int | str, amount: float) -> None:
    assert parse_quantity(text) == amount


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(0, 0), (90, 90), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("1d", 86_400), ("1.5h", 5400), ("250ms", 0.25)],
)
def test_durations(text: int | str, seconds: float) -> None:
    """Hazard A6-25959."""
    assert parse_duration_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "NaN", "-1", "1e3", "10K", "10 k", "50MB", "1k\n", "Mi"])
def test_other_quantities_are_refused(text: str) -> None:
    """Hazard A2-26434b: a threshold that is not a number must not get through."""
    with pytest.raises(ValueError, match="is not an amount such as 500, 10k or 50Mi"):
        parse_quantity(text)
    with pytest.raises(ValidationError):
        _QUANTITY.validate_python(text)


@pytest.mark.parametrize("text", ["", "90", "-5m", "5 m", "5min", "1h30", "NaN", "5m\n"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration such as 90s, 5m or 1h30m"):
        parse_duration_seconds(text)
    with pytest.raises(ValidationError):
        _DURATION.validate_python(text)


@given(number=st.integers(0, 10**6), suffix=st.sampled_from(["", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"]))
def test_whole_quantities_are_exact_and_grow_with_their_number(number: int, suffix: str) -> None:
    one = parse_quantity(f"1{suffix}")
    assert parse_quantity(f"{number}{suffix}") == number * one
    assert parse_quantity(f"{number}.0{suffix}") == number * one


@given(parts=st.lists(st.tuples(st.integers(0, 999), st.sampled_from(["s", "m", "h", "d"])), min_size=1, max_size=5))
def test_durations_are_the_sum_of_their_parts(parts: list[tuple[int, str]]) -> None:
    texts = [f"{number}{unit}" for number, unit in parts]
    assert parse_duration_seconds("".join(texts)) == sum(map(parse_duration_seconds, texts))


@given(text=st.text(max_size=12))
def test_any_text_is_a_quantity_for_both_judges_or_for_neither(text: str) -> None:
    try:
        _QUANTITY.validate_python(text)
    except ValidationError:
        with pytest.raises(ValueError, match="is not an amount"):
            parse_quantity(text)
    else:
        assert parse_quantity(text) >= 0
