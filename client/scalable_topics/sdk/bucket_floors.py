"""What a restored group has received of entry buckets beyond where its cursor stands (R22). Pure."""

from __future__ import annotations

import base64
import sys

import pulsar

from scalable_topics.layout import bucket_hash, bucket_of, equal_splits, key_hash
from scalable_topics.sdk.deliveries import Place
from scalable_topics.sdk.outgoing_message import ORDERING_KEY_PROPERTY
from scalable_topics.sdk.received_message import ReceivedMessage
from scalable_topics.sdk.session_frames import AssignedSegment


class BucketFloors:
    """Up to where messages of a segment, or of one of its buckets, are not to be delivered.

    Args:
        segment: as it is assigned.
    """

    def __init__(self, segment: AssignedSegment) -> None:
        self._bucket = segment.bucket if segment.is_shared else None
        self._splits = equal_splits(segment.bucket_count)
        self.by_bucket: dict[int, Place] = {
            floor.bucket: (floor.ledger_id, floor.entry_id, floor.batch_index) for floor in segment.floors
        }
        # One that is of no message stands for all of its entry.
        self._ends = {
            bucket: (ledger_id, entry_id, sys.maxsize if batch_index < 0 else batch_index)
            for bucket, (ledger_id, entry_id, batch_index) in self.by_bucket.items()
        }
        self._highest: Place = max(self._ends.values(), default=())

    def covers(self, place: Place, message: pulsar.Message) -> bool:
        """Whether the group has a message already.

        Of one without any key that does not say its bucket nobody knows, so it is not taken for one.

        Args:
            place: where it is.
            message: the same as pulsar-client received it.
        """
        if place > self._highest:
            return False
        bucket = self._bucket if self._bucket is not None else self._bucket_of(message)
        return bucket is not None and place <= self._ends.get(bucket, ())

    def _bucket_of(self, message: pulsar.Message) -> int | None:
        key = _sticky_key(message)
        return None if key is None else bucket_of(self._splits, bucket_hash(key_hash(key)))


def _sticky_key(message: pulsar.Message) -> str | bytes | None:
    """What falls into the message's bucket: the key that stands for that, or the routing key."""
    encoded = message.properties().get(ORDERING_KEY_PROPERTY)
    if encoded is not None:
        return base64.b64decode(encoded)
    ordering_key: str = message.ordering_key()
    return ordering_key or ReceivedMessage(message, 0).key
