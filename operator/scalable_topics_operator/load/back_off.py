"""How long to wait before what has ended is begun again. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class BackOff:
    """Pauses that double while nothing lasts, and begin anew after what has lasted for longer than the longest of them.

    Args:
        first_seconds: the first pause.
        longest_seconds: the longest.
    """

    first_seconds: float = 2.0
    longest_seconds: float = 60.0
    _pause_seconds: float = 0.0

    def after(self, lasted_seconds: float) -> float:
        """Seconds to wait after something that lasted for so long."""
        pause_seconds = 0.0 if lasted_seconds > self.longest_seconds else 2 * self._pause_seconds
        self._pause_seconds = min(max(pause_seconds, self.first_seconds), self.longest_seconds)
        return self._pause_seconds
