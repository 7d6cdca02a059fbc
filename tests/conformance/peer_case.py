"""The peer's behaviour as data: one case a line of `peer_cases.jsonl`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    def key(self) -> tuple[str, str]:
        return self.area, self.name

    def __str__(self) -> str:
        return f"{self.area}: {self.name}"


def load_cases() -> list[PeerCase]:
    fields = PeerCase.__dataclass_fields__
    lines = CASES_FILE.read_text(encoding="utf-8").splitlines()
    return [PeerCase(**{key: value for key, value in json.loads(line).items() if key in fields}) for line in lines]
