"""What lies between a consumer of a story and its leader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class Connected(Protocol):
    """A consumer.

    Attributes:
        connection: the one it has now.
        is_final: it was sent away for good.
    """

    connection: Connection | None
    is_final: bool

    def heard(self, frame: Mapping[str, Any]) -> None:
        """A frame has come, to be taken in later."""

    def lose(self) -> None:
        """Its connection is closed."""


@dataclass(slots=True, eq=False)
class Connection:
    """One connection: what comes over it counts while it is the consumer's. Implements `Outlet`.

    Args:
        consumer: whose it is or was.
    """

    consumer: Connected

    def send(self, frame: Mapping[str, Any]) -> None:
        """Send a frame."""
        if self._is_open:
            self.consumer.heard(frame)

    def refuse(self, status: int, reason: str, *, final: bool) -> None:
        """Say why, and close."""
        if self._is_open:
            self.consumer.lose()
            self.consumer.is_final = final

    def leave(self) -> None:
        """Close."""
        if self._is_open:
            self.consumer.lose()

    @property
    def _is_open(self) -> bool:
        return self.consumer.connection is self
