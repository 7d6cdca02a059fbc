"""The page of a report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.measurement import Measured, Measurement, Target
from bench.page import render, shown
from bench.report import Report
from bench.section import Section
from tests.unit.bench.reports import (
    MACHINE,
    at_least_share,
    beside_peer,
    count,
    delay,
    measured,
    occasion,
    rate,
    section,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (12, "12"),
        (123_456, "123,456"),
        (1234.5, "1,234"),
        (12.345, "12.3"),
        (1.2345, "1.23"),
        (0.00123, "0.00123"),
    ],
)
def test_values_are_shown_with_three_digits(value: float, text: str) -> None:
    assert shown(value) == text


def test_targets_come_first_with_why_they_are_missed() -> None:
    stalls = measured(
        delay("half", 80, target=Target("at most 100 ms", 100)),
        delay("most", 600, target=Target("at most 500 ms", 500)),
    )
    page = _page(
        section("stalls", "Stalls", [("at most 500 ms", "The collector."), ("at most 100 ms", "Quick.")]), stalls
    )
    assert "| [Stalls](#stalls) | at most 100 ms | 80 ms (half) | met |  |" in page
    assert "| [Stalls](#stalls) | at most 500 ms | 600 ms (most) | **missed** | The collector. |" in page


def test_a_ratio_is_shown_as_one() -> None:
    group = beside_peer(rate("peer", 100), rate("ours", 96, target=at_least_share(0.95)))
    assert "| [One](#one) | at least 0.95 of the peer's | 0.96 (ours) | met |  |" in _page(
        section("one", "One"), Measured((group,))
    )


def test_ahead_and_behind_are_told_with_reasons() -> None:
    group = beside_peer(rate("peer", 100), rate("ours", 50), rate("mine", 20), rate("other", 200))
    page = _page(section("one", "One", [("Beside a peer", "It is Python.")]), Measured((group,)))
    ahead, behind = page.index("**Ahead**:"), page.index("**Behind**:")
    better = "  - Beside a peer: other 200 messages/s, peer 100 messages/s (ratio 2.00, higher is better)"
    worse = (
        "- [One](#one). It is Python.\n"
        "  - Beside a peer: ours 50 messages/s, peer 100 messages/s (ratio 0.50, higher is better)\n"
        "  - Beside a peer: mine 20 messages/s, peer 100 messages/s (ratio 0.20, higher is better)\n"
    )
    assert ahead < page.index(better) < behind < page.index(worse)
    assert "**Level**: nothing." in page


def test_regressions_and_other_counts_are_told() -> None:
    page = _page(
        section("one", "One"),
        measured(rate("speed", 100), count("calls", 10)),
        measured(rate("speed", 50), count("calls", 9)),
    )
    assert "| [One](#one) | Table: speed | 100 messages/s | 50 messages/s | 0.50 |" in page
    assert "| [One](#one) | Table: calls | 10 calls | 9 calls | 0.90 |" in page
    assert "| speed | messages/s, higher is better | 50 | 50 to 50 | 1 | 0.50, **worse** |" in page


def test_without_a_report_before_nothing_is_compared() -> None:
    page = _page(section("one", "One"), measured(rate("speed", 1)))
    assert "Nothing is worse." in page
    assert "to the report before" not in page


def test_what_was_not_measured_is_named() -> None:
    report = Report().with_result("one", occasion(), measured(rate("m", 1)))
    page = render(report, [section("one", "One"), section("two", "Two")])
    assert "Not measured yet: Two." in page
    assert "## Two" not in page


def test_machines_are_told_apart() -> None:
    report = Report().with_result("one", occasion(), measured(rate("m", 1)))
    other = replace(occasion(), machine=replace(MACHINE, cores=64))
    page = render(report.with_result("two", other, measured(rate("m", 1))), [section("one", "A"), section("two", "B")])
    assert "\n1. 2 cores" in page
    assert "\n2. 64 cores" in page


def test_tiny_sizes_say_so() -> None:
    report = Report().with_result("one", occasion(is_small=True), measured(rate("m", 1)))
    assert "the numbers mean nothing" in render(report, [section("one", "One")])


def test_a_reason_for_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="slower"):
        _page(section("one", "One", [("slower", "It is.")]), measured(rate("speed", 1)))


def test_a_section_that_is_gone_is_refused() -> None:
    with pytest.raises(ValueError, match="one"):
        render(Report().with_result("one", occasion(), measured(rate("m", 1))), [])


def _page(of: Section, *found: Measured) -> str:
    report = Report()
    for one in found:
        report = report.with_result(of.key, occasion(), one)
    return render(report, [of])


def test_exact_counts_are_not_called_rounds() -> None:
    exact: Measurement = count("calls", 3)
    assert "| calls | calls, lower is better | 3 | 3 to 3 | exact |" in _page(section("one", "One"), measured(exact))
