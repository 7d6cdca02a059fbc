"""Medians and spreads of repeated measurements."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """How much was done a second, over several rounds."""

    name: str
    per_second: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle round."""
        return statistics.median(self.per_second)


def table(title: str, unit: str, rates: Sequence[Rate]) -> str:
    """A Markdown table: each rate with its median, its spread, and its ratio to the first."""
    base = rates[0].median
    lines = [f"## {title}\n", f"| | {unit}, median | lowest to highest | ratio |", "|---|---|---|---|"]
    lines += [
        f"| {rate.name} | {rate.median:,.1f} | {min(rate.per_second):,.1f} to {max(rate.per_second):,.1f} | "
        f"{rate.median / base:.2f} |"
        for rate in rates
    ]
    return "\n".join(lines) + "\n"
