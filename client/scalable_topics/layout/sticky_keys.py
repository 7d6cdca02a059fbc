"""Ordering keys that stand for entry buckets towards brokers which know only keys (pip-486 on Classic).

A broker of Pulsar 4 keeps the order of messages by the hash of the key that an entry carries outside: that of its first
message. Entries of one bucket whose outer keys differ overtake one another when their consumer changes or falls behind
(measured), and with them messages of one key. So all messages of a bucket carry one ordering key, which falls into the
bucket: what brokers of Pulsar 5 do with the first hash of the bucket.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import count

from scalable_topics.layout.entry_buckets import equal_splits
from scalable_topics.layout.hashing import bucket_hash, key_hash

_MARK = "\x1f"


class StickyKeys:
    """The ordering keys of one segment's buckets.

    Args:
        buckets: how many equal entry buckets it has, 2..1024.
    """

    def __init__(self, buckets: int) -> None:
        self._splits = equal_splits(buckets)
        found: dict[int, str] = {}
        for number in count():
            key = f"{_MARK}{number}"
            found.setdefault(bisect_right(self._splits, bucket_hash(key_hash(key))), key)
            if len(found) == buckets:
                break
        self._keys = tuple(found[bucket] for bucket in range(buckets))

    def of_bucket(self, bucket: int) -> str:
        """The ordering key of a bucket, by its index: U+001F and the least number, from 0, that falls into it."""
        return self._keys[bucket]

    def of(self, hash_value: int | None) -> str:
        """The ordering key of a message whose routing key has this hash; those without any key are of bucket 0."""
        return self._keys[0 if hash_value is None else bisect_right(self._splits, bucket_hash(hash_value))]


@lru_cache(maxsize=64)
def sticky_keys(buckets: int) -> StickyKeys | None:
    """The ordering keys of a segment with so many buckets, 0..1024; None where it has but one: keys stay as they are.

    Raises LayoutArgumentError outside of that.
    """
    return StickyKeys(buckets) if len(equal_splits(buckets)) else None


def is_sticky_key(ordering_key: str) -> bool:
    """Whether an ordering key stands for a bucket, and is none of the application's."""
    return ordering_key.startswith(_MARK)
