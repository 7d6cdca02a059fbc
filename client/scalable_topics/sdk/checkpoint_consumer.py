"""A checkpoint consumer on a scalable topic (pip-460, R22, docs/sessions.md)."""

from __future__ import annotations

from typing import ClassVar

from scalable_topics.sdk.checkpoint import Checkpoint, SegmentPosition
from scalable_topics.sdk.coordinated_consumer import CoordinatedConsumer
from scalable_topics.sdk.errors import ClientError
from scalable_topics.sdk.session_frames import ConsumerKind


class CheckpointConsumer(CoordinatedConsumer):
    """Receives the messages of a checkpoint group in the order of each key, for applications that keep their positions
    beside their own state; made by `Client.checkpoint_consumer`. Belongs to one event loop.

    The group has one durable cursor a segment, which moves only when a checkpoint is committed: it keeps data that may
    still be needed, and says what is read to its end. A consumer that begins goes on from there.
    """

    KIND: ClassVar[ConsumerKind] = ConsumerKind.CHECKPOINT

    @property
    def group(self) -> str:
        """Name of the checkpoint group."""
        return self.subscription

    def checkpoint(self) -> Checkpoint:
        """Where this consumer stands on the segments and entry buckets it reads, and on those that it is about to give
        back, which may be committed for `handover_seconds`.

        `scalable_topics.admin.AdminClient.restore` goes back to it, or on to it.

        Raises:
            SessionRefusedError, ConnectError, ClosedError: as of `receive`.
        """
        self._check()
        places = self._reading.places()
        return Checkpoint(self.topic, self.group, {part: SegmentPosition(*place) for part, place in places.items()})

    async def commit(self, checkpoint: Checkpoint) -> None:
        """Say that a checkpoint is kept safe: what comes before it is not needed any more.

        It counts for what this consumer reads; what others of the group read, they commit. It is sent to
        the brokers within 100 ms or at close; without a connection, once there is one.

        Args:
            checkpoint: taken of consumers of this group, not necessarily of this one.

        Raises:
            ClientError: it is of another topic or group.
            SessionRefusedError, ConnectError, ClosedError: as of `receive`; nothing is committed.
        """
        self._check()
        if (checkpoint.topic, checkpoint.group) != (self.topic, self.group):
            raise ClientError(
                f"a checkpoint of group {checkpoint.group} on {checkpoint.topic} cannot be committed by group "
                f"{self.group} on {self.topic}"
            )
        self._reading.acknowledge_to(checkpoint.positions)
