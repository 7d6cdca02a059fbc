"""The report as a value, and as the JSON that is kept: each section with when, where and of what it was measured."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from bench.measurement import Better, Group, Measured, Measurement, Of, Target

_VERSION = 1
# Differences below this are noise in any clock, and would only make the file longer.
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Machine:
    """Where something was measured.

    Args:
        cores: that the run might use.
        model: name of the processor.
        memory_mib: of the machine.
        kernel: name and release.
        python: version.
    """

    cores: int
    model: str
    memory_mib: int
    kernel: str
    python: str


@dataclass(frozen=True, slots=True)
class Occasion:
    """When something was measured, and of what.

    Args:
        machine: where.
        servers: versions of the brokers and their Java, in words; empty where there were none.
        commit: of this project, with a word on changes that were not committed.
        date: of the start, in UTC, `2026-11-30T17:25:00Z`.
        load_before: load average over the last minute before anything was started for it.
        duration_seconds: of the measuring, without servers' starts.
        rounds: how often it was measured.
        is_small: whether sizes were tiny, so that the numbers mean nothing.
    """

    machine: Machine
    servers: str
    commit: str
    date: str
    load_before: float
    duration_seconds: float
    rounds: int
    is_small: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """A section as it was measured.

    Args:
        occasion: when and where.
        measured: what.
        before: the one that this one has taken the place of.
    """

    occasion: Occasion
    measured: Measured
    before: "Result | None" = None


@dataclass(frozen=True, slots=True)
class Report:
    """Results by key of their section."""

    results: Mapping[str, Result] = field(default_factory=lambda: MappingProxyType({}))

    def with_result(self, key: str, occasion: Occasion, measured: Measured) -> "Report":
        """A report with a section measured anew, beside what was there until now.

        What was measured in tiny sizes is no predecessor of what was not.
        """
        before = self.results.get(key)
        if before is not None:
            before = replace(before, before=None) if before.occasion.is_small == occasion.is_small else None
        return Report({**self.results, key: Result(occasion, measured, before)})


def to_json(report: Report) -> str:
    """The text of the file that keeps a report; the same for equal reports."""
    content = {
        "version": _VERSION,
        "sections": {key: _written(result) for key, result in sorted(report.results.items())},
    }
    return json.dumps(content, indent=1) + "\n"


def from_json(text: str) -> Report:
    """Read it.

    Raises ValueError for the file of another version of this program.
    """
    content = json.loads(text)
    if content["version"] != _VERSION:
        raise ValueError(f"a report of version {content['version']}, and this program knows {_VERSION}")
    return Report({key: _read(found) for key, found in content["sections"].items()})


def rounded(value: float) -> float:
    """A value with the digits that are kept; whole numbers are kept whole."""
    return value if value == int(value) else float(f"{value:.{_DIGITS}g}")


def _written(result: Result) -> dict[str, Any]:
    found = asdict(result)
    found["before"] = _written(result.before) if result.before is not None else None
    for group in found["measured"]["groups"]:
        for one in group["measurements"]:
            one["values"] = [rounded(value) for value in one["values"]]
    return found


def _read(found: Mapping[str, Any]) -> Result:
    occasion = found["occasion"]
    measured = found["measured"]
    return Result(
        occasion=Occasion(**{**occasion, "machine": Machine(**occasion["machine"])}),
        measured=Measured(tuple(_group(one) for one in measured["groups"]), tuple(measured["notes"])),
        before=_read(found["before"]) if found["before"] is not None else None,
    )


def _group(found: Mapping[str, Any]) -> Group:
    return Group(**{**found, "measurements": tuple(_measurement(one) for one in found["measurements"])})


def _measurement(found: Mapping[str, Any]) -> Measurement:
    target = found["target"]
    return Measurement(
        **{
            **found,
            "values": tuple(found["values"]),
            "better": Better(found["better"]),
            "target": Target(**{**target, "of": Of(target["of"])}) if target is not None else None,
        }
    )
