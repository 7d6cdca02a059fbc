"""Which shard an object belongs to (DESIGN §6). Pure."""

from __future__ import annotations

import mmh3


def shard_of(name: str, shards: int) -> int:
    """The shard, 0..shards-1, of whatever is led together under a name; the same in every replica and release."""
    return int(mmh3.hash(name, signed=False)) % shards
