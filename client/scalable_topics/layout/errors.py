"""Errors of the layout kernel."""

from __future__ import annotations

_MOST_CHARACTERS = 1000


class LayoutError(ValueError):
    """Something the layout kernel refuses; the text says what and why, in words a user understands.

    It may quote what somebody has written, and goes into conditions and logs: so it is cut off where it is long.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…")


class LayoutArgumentError(LayoutError):
    """The request itself is wrong: an unknown id, a sealed segment, a malformed name or record."""


class LayoutStateError(LayoutError):
    """The request is well formed, but the layout or range it meets does not allow it."""
