"""The peer's behaviour as data: one case a line of `peer_cases.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.deliberate_differences import DIFFERENCES, Difference, Key

CASES_FILE = Path(__file__).with_name("peer_cases.jsonl")


@dataclass(frozen=True)
class PeerCase:
    area: str
    name: str
    given: dict[str, Any]
    when: str
    expect: dict[str, Any]
    machine: bool

    @property
    def key(self) -> Key:
        return self.area, self.name

    def __str__(self) -> str:
        return f"{self.area}: {self.name}"


def load_cases() -> list[PeerCase]:
    fields = PeerCase.__dataclass_fields__
    lines = CASES_FILE.read_text(encoding="utf-8").splitlines()
    return [PeerCase(**{key: value for key, value in json.loads(line).items() if key in fields}) for line in lines]


def judge(case: PeerCase, outcome: dict[str, Any], differences: Mapping[Key, Difference] = DIFFERENCES) -> None:
    """R38: the case passes, or is a listed difference that does differ."""
    difference = differences.get(case.key)
    if difference is None:
        assert _narrowed(outcome, case.expect) == case.expect
    else:
        assert _narrowed(outcome, difference.ours) == difference.ours
        assert _narrowed(outcome, case.expect) != case.expect, "no longer a difference: take it off the list"


def _narrowed(outcome: Any, wanted: Any) -> Any:
    """The parts of `outcome` that `wanted` speaks of."""
    if isinstance(outcome, dict) and isinstance(wanted, dict):
        return {key: _narrowed(outcome[key], wanted[key]) for key in wanted if key in outcome}
    return outcome
