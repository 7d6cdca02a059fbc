"""From a message's key to its segment (pip-468 routing, pip-486 hash halves, R23, R25)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

import mmh3

from scalable_topics.layout.errors import LayoutArgumentError, LayoutStateError
from scalable_topics.layout.invariants import is_synthetic
from scalable_topics.layout.segment import Segment
from scalable_topics.layout.segment_layout import SegmentLayout


def key_hash(key: bytes | str) -> int:
    """Murmur3 x86 32-bit, seed 0, of the key (a string as UTF-8), unsigned: 0..4294967295."""
    return mmh3.hash(key, 0, signed=False)


def segment_hash(value: int) -> int:
    """The half of `key_hash` that chooses the segment: its high 16 bits."""
    return value >> 16


def bucket_hash(value: int) -> int:
    """The half of `key_hash` that chooses the entry bucket: its low 16 bits."""
    return value & 0xFFFF


def partition_of(value: int, partitions: int) -> int:
    """The partition that clients of an ordinary topic with so many (1 or more) choose for a `key_hash` (R25)."""
    return (value & 0x7FFFFFFF) % partitions


def routing_key(
    ordering_key: bytes | str | None, partition_key: bytes | str | None, *, base64_encoded: bool = False
) -> bytes | None:
    """The bytes that both hashes are taken of (R23): the ordering key if present, else the key, else None.

    Args:
        ordering_key: None if the message has none; an empty one counts as present.
        partition_key: None if the message has none; an empty one counts as present.
        base64_encoded: the partition key carries bytes as base64, which are decoded first.

    Raises:
        LayoutArgumentError: the partition key is said to be base64 and is not.
    """
    if ordering_key is not None:
        return _as_bytes(ordering_key)
    if partition_key is None:
        return None
    if not base64_encoded:
        return _as_bytes(partition_key)
    try:
        return base64.b64decode(partition_key, validate=True)
    except (binascii.Error, ValueError):
        raise LayoutArgumentError("the message key is marked as base64 but is not") from None


def route(layout: SegmentLayout, value: int) -> Segment:
    """The active segment that takes a message whose `key_hash` is `value`.

    Synthetic layouts route by `(value & 0x7fffffff) % N` over their segments in id order, as clients of
    ordinary partitioned topics do (R25); others by hash range.
    """
    if layout.is_synthetic:
        return layout.active[partition_of(value, len(layout.active))]
    return layout.find_active(segment_hash(value))


def route_among(segments: Iterable[Segment], value: int) -> Segment:
    """As `route`, over plain segments that need not make a layout; sealed ones are passed over.

    Raises:
        LayoutStateError: no active segment covers the hash.
    """
    active = [segment for segment in segments if segment.is_active]
    if is_synthetic(active):
        in_id_order = sorted(active, key=lambda segment: segment.segment_id)
        return in_id_order[partition_of(value, len(in_id_order))]
    wanted = segment_hash(value)
    for segment in active:
        if segment.hash_range.contains(wanted):
            return segment
    raise LayoutStateError(f"no active segment covers the hash {wanted:04x}")


def _as_bytes(key: bytes | str) -> bytes:
    return key.encode() if isinstance(key, str) else key
