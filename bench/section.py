"""A section of the report: what it compares, which servers it needs, and how it is measured."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bench.measurement import Measured


class Servers(StrEnum):
    """What is started for a section, and for it alone."""

    NONE = "none"
    CLASSIC = "an API server and a broker of Pulsar 4"
    BOTH = "an API server, a broker of Pulsar 4 and one of Pulsar 5"
    OWN = "nothing: it starts an API server and a broker of Pulsar 4 itself"


@dataclass(frozen=True, slots=True)
class Run:
    """How a section is to be measured.

    Args:
        rounds: how often, at least 1; what warms up is not among them.
        is_small: whether it is only to be seen that it works: sizes are tiny, and the numbers mean nothing.
        profile_to: folder for a profile of the operator's process, or of the library's; None for no profile.
    """

    rounds: int = 5
    is_small: bool = False
    profile_to: Path | None = None

    def size(self, full: int, small: int) -> int:
        """The size of this run: of a true one, or of one that is only to be seen to work."""
        return small if self.is_small else full


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the report.

    Args:
        key: its name in `ONLY=`, and in the JSON.
        title: its heading.
        prose: what is compared, and how.
        measure: measures it, with the servers that the environment names.
        servers: which these are.
        reasons: why a measurement is ahead or behind, by its name or the title of its group, and why a target is
            missed, by the text of the target.
        is_profiled: whether it runs the operator or the library under a profiler where it is asked to.
    """

    key: str
    title: str
    prose: str
    measure: Callable[[Run], Coroutine[Any, Any, Measured]]
    servers: Servers = Servers.NONE
    reasons: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    is_profiled: bool = False
