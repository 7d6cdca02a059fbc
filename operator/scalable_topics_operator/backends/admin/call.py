"""One admin call and its answer, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from scalable_topics.layout.json_fields import MALFORMED, parse_json
from scalable_topics_operator.backends.admin.packed_text import PackedText
from scalable_topics_operator.backends.admin.reasons import About, plain
from scalable_topics_operator.operations.errors import BackendUnavailable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One admin call.

    Args:
        operation: short constant name, used as a metric label.
        method: HTTP method.
        path: path from `paths`, already quoted.
        target: the object the call is about, for error texts.
        about: kind of that object.
        query: query parameters.
        body: sent as JSON unless it is None.
        idempotent: may be repeated after a failure with an unknown outcome.
        allow: statuses besides 2xx that the caller handles itself.
        right: the right the call needs, named when it is denied.
        owner_path: a GET that only the broker answers whom the call is for, while others redirect it; then the call
            is sent to that broker. For calls that brokers do not redirect themselves.
        lookup_path: a GET whose answer names that broker's address. Asked when the admin URL itself seemed to be the
            broker and then did not answer: it may be a proxy, which sends every call to whichever broker it likes.
        broker: `host:port` of the broker to ask, as the cluster lists it; empty for whoever answers.
        is_large: the answer may be of megabytes, so that it is worth a broker's while to compress it.
        is_kept_packed: its answer is kept as it came, and read from `Answer.packed`.
    """

    operation: str
    method: str
    path: str
    target: str
    about: About
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    idempotent: bool = True
    allow: frozenset[int] = frozenset()
    right: str | None = None
    owner_path: str | None = None
    lookup_path: str | None = None
    broker: str = ""
    is_large: bool = False
    is_kept_packed: bool = False

    @property
    def what(self) -> str:
        """Operation and object, for error texts."""
        return f"{self.operation} {plain(self.target)}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered.

    Args:
        status: HTTP status.
        text: the body if the status is a success.
        packed: the same, and `text` is empty, where the call says so.
        reason: the server's explanation if it is not.
        location: where a redirect leads.
        retry_after: the `Retry-After` header.
        message_headers: what the server tells of a message, by the lower-case rest of `X-Pulsar-…` names.
    """

    status: int
    text: str = ""
    reason: str = ""
    location: str = ""
    retry_after: str | None = None
    message_headers: Mapping[str, str] = field(default_factory=dict)
    packed: PackedText = field(default_factory=PackedText)

    def json(self, what: str) -> Any:
        """The body as JSON, None if it is empty. Raises BackendUnavailable, naming `what`, if it is not JSON."""
        if not self.text.strip():
            return None
        try:
            return parse_json(self.text)
        except ValueError:
            raise BackendUnavailable(f"{what}: the answer is not JSON") from None

    def read(self, what: str, reader: Callable[[Any], T]) -> T:
        """What `reader` makes of the body, which is None if it is empty.

        Every answer is read so, or by `mapping`: what has answered may be no broker, or one of another release.

        Args:
            what: operation and object.
            reader: takes the form for granted.

        Raises BackendUnavailable, naming `what`, if the body is no JSON or of another form.
        """
        try:
            return reader(self.json(what))
        except MALFORMED:
            raise BackendUnavailable(f"{what}: the answer is not as brokers give it") from None

    def mapping(self, what: str) -> dict[str, Any]:
        """The body as a JSON object. Raises BackendUnavailable, naming `what`, if it is none."""
        found = self.json(what)
        if not isinstance(found, dict):
            raise BackendUnavailable(f"{what}: the answer is not an object")
        return found
