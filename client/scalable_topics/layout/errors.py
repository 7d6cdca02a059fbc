"""Errors of the layout kernel."""

from __future__ import annotations


class LayoutError(ValueError):
    """Something the layout kernel refuses; the text says what and why, in words a user understands."""


class LayoutArgumentError(LayoutError):
    """The request itself is wrong: an unknown id, a sealed segment, a malformed name or record."""


class LayoutStateError(LayoutError):
    """The request is well formed, but the layout or range it meets does not allow it."""
