"""Documents of brokers that are read as if they had the form that they should have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scalable_topics.layout.json_fields import MALFORMED
from scalable_topics_operator.operations.errors import BackendUnavailable

_MOST_CHARACTERS = 200


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Read such a document within.

    Args:
        what: which one it is, and of what.

    Raises BackendUnavailable, naming `what`, where it has another form: what has answered may be no broker, or one of
    another release.
    """
    try:
        yield
    except MALFORMED as error:
        raise BackendUnavailable(f"{what} cannot be read: {repr(error)[:_MOST_CHARACTERS]}") from None
