"""Reports to judge and to render."""

from __future__ import annotations

from collections.abc import Sequence

from bench.measurement import Better, Group, Measured, Measurement, Of, Target
from bench.report import Machine, Occasion
from bench.section import Run, Section

MACHINE = Machine(2, "a processor", 24_000, "Linux 6", "CPython 3.11")


def occasion(commit: str = "0123456789ab", *, is_small: bool = False) -> Occasion:
    return Occasion(MACHINE, "Pulsar 4.2.4 on Java 21", commit, "2026-11-30T15:59:21Z", 0.25, 90.0, 3, is_small)


def rate(name: str, *values: float, target: Target | None = None) -> Measurement:
    return Measurement(name, "messages/s", values, Better.HIGHER, target)


def delay(name: str, *values: float, target: Target | None = None) -> Measurement:
    return Measurement(name, "ms", values, Better.LOWER, target)


def count(name: str, value: float) -> Measurement:
    return Measurement(name, "calls", (value,), Better.LOWER, is_exact=True)


def beside_peer(*rows: Measurement) -> Group:
    return Group("Beside a peer", rows, reference=rows[0].name, is_peer=True)


def measured(*rows: Measurement) -> Measured:
    return Measured((Group("Table", rows),))


def at_least_share(share: float) -> Target:
    return Target(f"at least {share} of the peer's", share, Of.RATIO)


def section(key: str, title: str, reasons: Sequence[tuple[str, str]] = ()) -> Section:
    return Section(key, title, f"What {key} is.", _measured_elsewhere, reasons=dict(reasons))


async def _measured_elsewhere(run: Run) -> Measured:
    raise AssertionError("a page is rendered without measuring")
