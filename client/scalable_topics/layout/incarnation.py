"""Incarnations: whose layout it is, and how often it was rebuilt (R12)."""

from __future__ import annotations

from scalable_topics.layout.errors import LayoutArgumentError


def incarnation_of(uid: str, counter: int) -> str:
    """The form of an incarnation.

    Args:
        uid: of the object that declares the topic.
        counter: rises with every rebuild, 0 or more.
    """
    return f"{uid}.{counter}"


def parse_incarnation(text: str) -> tuple[str, int]:
    """Uid and counter of an incarnation. Raises LayoutArgumentError for anything else."""
    uid, _, counter = text.rpartition(".")
    if not uid or not counter.isdecimal():
        raise LayoutArgumentError(f"{text!r} is not an incarnation like uid.0")
    return uid, int(counter)
