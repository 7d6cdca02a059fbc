"""Topic and segment names: one function makes each name and one parses it (pip-468, 475).

A scalable topic `topic://t/n/x` is identified by tenant, namespace and local name alone. On Classic its
segments, claim and layout topic are ordinary persistent topics whose names are derived here; on Native the
brokers name segments with the `segment://` domain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from scalable_topics.layout.errors import LayoutArgumentError
from scalable_topics.layout.hash_range import HashRange

MAX_LOCAL_NAME_BYTES = 200
"""Longest local name of a scalable topic, in UTF-8 bytes: leaves room for the suffixes of derived names."""

LAYOUT_SUFFIX = "-layout"
"""Suffix of the layout topic (R20), reserved."""

_TOPIC = "topic://"
_PERSISTENT = "persistent://"
_SEGMENT = "segment://"
_DESCRIPTOR = r"(?P<range>[0-9a-f]{4}-[0-9a-f]{4})-(?P<id>0|[1-9][0-9]{0,18})"
_CLASSIC_SEGMENT = re.compile(rf"(?P<local>.+)-segment-{_DESCRIPTOR}", re.DOTALL)
_NATIVE_DESCRIPTOR = re.compile(_DESCRIPTOR)
_PARTITION = re.compile(r".*-partition-[0-9]+", re.DOTALL)
_PULSAR_ENTITY = re.compile(r"[-=:.\w]+", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class TopicName:
    """The identity of a topic, whichever domain it is spelled in.

    Args:
        tenant: Pulsar tenant.
        namespace: Pulsar namespace without the tenant.
        local: the name within the namespace.
    """

    tenant: str
    namespace: str
    local: str

    @classmethod
    def parse(cls, text: str) -> TopicName:
        """Read a topic name as users write it (pip-475).

        `topic://t/n/x`, `persistent://t/n/x` and `t/n/x` are the same topic; `x` is `public/default/x`.

        Raises:
            LayoutArgumentError: a `non-persistent://` or `segment://` name, or not tenant/namespace/name.
        """
        if text.startswith("non-persistent://"):
            raise LayoutArgumentError(f"{text!r}: non-persistent topics cannot be scalable topics")
        if text.startswith(_SEGMENT):
            raise LayoutArgumentError(f"{text!r} is a segment of a scalable topic, not a topic of its own")
        domain, separator, path = text.partition("://")
        if separator and domain + separator not in (_TOPIC, _PERSISTENT):
            raise LayoutArgumentError(f"{text!r} has the unknown domain {domain!r}; use topic:// or persistent://")
        parts = (path if separator else text).split("/")
        if not separator and len(parts) == 1:
            parts = ["public", "default", *parts]
        if len(parts) != 3 or not all(parts):
            raise LayoutArgumentError(f"{text!r} is not a topic name; write topic://tenant/namespace/name")
        return cls(*parts)

    @property
    def persistent(self) -> str:
        """The same identity in the persistent domain: the name that ordinary clients see."""
        return f"{_PERSISTENT}{self.tenant}/{self.namespace}/{self.local}"

    @property
    def pulsar_namespace(self) -> str:
        """`tenant/namespace`, as Pulsar's admin API writes it."""
        return f"{self.tenant}/{self.namespace}"

    def __str__(self) -> str:
        return f"{_TOPIC}{self.tenant}/{self.namespace}/{self.local}"


def validate_scalable_name(topic: TopicName) -> None:
    """Refuse names that cannot be scalable topics on Classic.

    Raises:
        LayoutArgumentError: empty, `.`, `..`, longer than 200 bytes, with a slash, white space or control characters; a
            name Pulsar reads as a partition, or the operator as a segment (`…-segment-hhhh-hhhh-N`) or a
            layout topic (`…-layout`, R20); or a tenant or namespace with characters Pulsar refuses.
    """
    for part, text in (("tenant", topic.tenant), ("namespace", topic.namespace)):
        if _PULSAR_ENTITY.fullmatch(text) is None:
            raise LayoutArgumentError(f"{part} {text!r} may only hold letters, digits and -=:._ and not be empty")
    local = topic.local
    for text in (topic.tenant, topic.namespace, local):
        # URL libraries resolve these as steps in a path, so an admin call would reach another object.
        if text in {".", ".."}:
            raise LayoutArgumentError(f"{text!r} cannot be part of a topic name")
    if not local:
        raise LayoutArgumentError("a topic name cannot be empty")
    if "/" in local:
        raise LayoutArgumentError(f"topic name {local!r} holds a slash")
    if any(character.isspace() or not character.isprintable() for character in local):
        raise LayoutArgumentError(f"topic name {local!r} holds white space or control characters")
    size = len(local.encode())
    if size > MAX_LOCAL_NAME_BYTES:
        raise LayoutArgumentError(f"topic name {local!r} is {size} bytes long; at most {MAX_LOCAL_NAME_BYTES} fit")
    if _PARTITION.fullmatch(local):
        raise LayoutArgumentError(f"topic name {local!r} reads as a partition of another topic")
    if _CLASSIC_SEGMENT.fullmatch(local):
        raise LayoutArgumentError(f"topic name {local!r} reads as a segment of another scalable topic")
    if local.endswith(LAYOUT_SUFFIX):
        raise LayoutArgumentError(f"topic name {local!r} ends in {LAYOUT_SUFFIX}, which is kept for layout topics")


def segment_descriptor(hash_range: HashRange, segment_id: int) -> str:
    """`hhhh-hhhh-id`: range in lower-case hex, decimal id."""
    return f"{hash_range.descriptor}-{segment_id}"


def classic_segment_name(topic: TopicName, hash_range: HashRange, segment_id: int) -> str:
    """Name of a segment's topic on Classic: `persistent://t/n/{x}-segment-{hhhh}-{hhhh}-{id}`."""
    return f"{topic.persistent}-segment-{segment_descriptor(hash_range, segment_id)}"


def parse_classic_segment_name(name: str) -> tuple[TopicName, HashRange, int] | None:
    """Read a `persistent://` name as a segment on Classic; None if it is not exactly what
    `classic_segment_name` makes.
    """
    if not name.startswith(_PERSISTENT):
        return None
    parts = name.removeprefix(_PERSISTENT).split("/")
    if len(parts) != 3 or not all(parts):
        return None
    match = _CLASSIC_SEGMENT.fullmatch(parts[2])
    hash_range = _parse_range(match)
    if match is None or hash_range is None:
        return None
    return TopicName(parts[0], parts[1], match["local"]), hash_range, int(match["id"])


def native_segment_name(topic: TopicName, hash_range: HashRange, segment_id: int) -> str:
    """Name of a segment on Native (pip-468): `segment://t/n/x/{hhhh}-{hhhh}-{id}`."""
    descriptor = segment_descriptor(hash_range, segment_id)
    return f"{_SEGMENT}{topic.tenant}/{topic.namespace}/{topic.local}/{descriptor}"


def parse_native_segment_name(name: str) -> tuple[TopicName, HashRange, int] | None:
    """Read a `segment://` name; None if it is not exactly what `native_segment_name` makes."""
    if not name.startswith(_SEGMENT):
        return None
    parts = name.removeprefix(_SEGMENT).split("/")
    if len(parts) != 4 or not all(parts):
        return None
    match = _NATIVE_DESCRIPTOR.fullmatch(parts[3])
    hash_range = _parse_range(match)
    if match is None or hash_range is None:
        return None
    return TopicName(parts[0], parts[1], parts[2]), hash_range, int(match["id"])


def layout_topic_name(topic: TopicName) -> str:
    """Name of the topic on which layouts are published (R20): `persistent://t/n/{x}-layout`."""
    return f"{topic.persistent}{LAYOUT_SUFFIX}"


def _parse_range(match: re.Match[str] | None) -> HashRange | None:
    if match is None:
        return None
    try:
        return HashRange.parse_descriptor(match["range"])
    except LayoutArgumentError:
        return None
