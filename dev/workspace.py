"""What one part of an instance is given to work with."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dev.ports import PortReservations
from dev.processes import ProcessTable


@dataclass(frozen=True, slots=True)
class Workspace:
    """The place of a control plane or of brokers.

    Attributes:
        directory: for data, settings and credentials.
        ports: the port of each name the part asked for.
        reservations: holds those ports on the first start, until they are handed over.
        processes: where servers are started.
    """

    directory: Path
    ports: Mapping[str, int]
    reservations: PortReservations
    processes: ProcessTable
