"""Ordering keys that stand for entry buckets on brokers of Pulsar 4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import MAX_BUCKETS, bucket_hash, bucket_of, equal_splits, is_sticky_key, key_hash
from scalable_topics.layout.sticky_keys import sticky_keys


@pytest.mark.parametrize("buckets", [2, 3, 4, 7, 64, MAX_BUCKETS])
def test_the_key_of_a_bucket_falls_into_it(buckets: int) -> None:
    keys = sticky_keys(buckets)
    assert keys is not None
    splits = equal_splits(buckets)
    for bucket in range(buckets):
        key = keys.of_bucket(bucket)
        assert is_sticky_key(key)
        assert bucket_of(splits, bucket_hash(key_hash(key))) == bucket


@given(st.integers(2, 64), st.integers(0, 2**32 - 1))
def test_a_message_has_the_key_of_its_bucket(buckets: int, hash_value: int) -> None:
    keys = sticky_keys(buckets)
    assert keys is not None
    assert keys.of(hash_value) == keys.of_bucket(bucket_of(equal_splits(buckets), bucket_hash(hash_value)))
    assert keys.of(None) == keys.of_bucket(0), "as brokers of Pulsar 5 put messages without any key"


def test_they_are_as_the_contract_says() -> None:
    """Clients in other languages make the same ones."""
    keys = sticky_keys(4)
    assert keys is not None
    assert [keys.of_bucket(bucket) for bucket in range(4)] == ["\x1f1", "\x1f2", "\x1f3", "\x1f0"]


def test_one_bucket_needs_none() -> None:
    assert sticky_keys(0) is sticky_keys(1) is None
    assert not is_sticky_key("")
