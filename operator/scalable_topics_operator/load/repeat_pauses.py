"""How long to wait before something that does not last is made once more."""

from __future__ import annotations

from dataclasses import dataclass

_FIRST_SECONDS, _LONGEST_SECONDS = 10.0, 300.0
_LASTED_SECONDS = 600.0


@dataclass(slots=True)
class RepeatPauses:
    """The first repetition comes at once, the next later and later; what has lasted for ten minutes begins anew."""

    _made_at: float = float("-inf")
    _pause_seconds: float = 0.0

    def left_seconds(self, now: float) -> float:
        """How long it may not be made yet; `now` in seconds, of any clock that is always the same."""
        return max(0.0, self._made_at + self._pause_seconds - now)

    def made(self, now: float) -> None:
        """It is made."""
        if self._made_at == float("-inf") or now - self._made_at > _LASTED_SECONDS:
            self._pause_seconds = 0.0
        else:
            self._pause_seconds = min(max(2 * self._pause_seconds, _FIRST_SECONDS), _LONGEST_SECONDS)
        self._made_at = now
