"""Where a message is stored: its segment, and its position within the segment."""

from __future__ import annotations

import struct
from typing import Any, Self

import pulsar

from scalable_topics.sdk.errors import ClientError

_VERSION = 1
_HEAD = struct.Struct(">BQ")


class MessageId:
    """Names one stored message for ever: the segment keeps its id through every change of the layout.

    Args:
        segment_id: the segment it was stored in.
        position: pulsar-client's id within the segment's topic; None if only the fact is known that it is stored,
            which happens when a send was settled from a sealed segment's tail (R15).

    Attributes:
        is_deserialized: it was stored and read again, so that pulsar-client does not know its batch any more.
    """

    __slots__ = ("_position", "is_deserialized", "segment_id")

    def __init__(self, segment_id: int, position: Any = None) -> None:
        self.segment_id = segment_id
        self._position = position
        self.is_deserialized = False

    @property
    def position(self) -> Any:
        """pulsar-client's id within the segment's topic, or None."""
        return self._position

    @property
    def ledger_id(self) -> int:
        """Ledger within the segment's topic; -1 if the position is not known."""
        return -1 if self._position is None else int(self._position.ledger_id())

    @property
    def entry_id(self) -> int:
        """Entry within the ledger; -1 if the position is not known."""
        return -1 if self._position is None else int(self._position.entry_id())

    @property
    def batch_index(self) -> int:
        """Place within the entry's batch; -1 outside batches."""
        return -1 if self._position is None else int(self._position.batch_index())

    def serialize(self) -> bytes:
        """Its form for storing; `MessageId.deserialize` reads it."""
        return _HEAD.pack(_VERSION, self.segment_id) + (b"" if self._position is None else self._position.serialize())

    @classmethod
    def deserialize(cls, data: bytes) -> Self:
        """Read what `serialize` made.

        Raises:
            ClientError: it is something else.
        """
        try:
            version, segment_id = _HEAD.unpack_from(data)
            if version != _VERSION:
                raise ClientError(f"a message id of version {version} was made by a later release of scalable-topics")
            rest = data[_HEAD.size :]
            message_id = cls(segment_id, pulsar.MessageId.deserialize(rest) if rest else None)
            message_id.is_deserialized = True
            return message_id
        except (struct.error, RuntimeError, ValueError) as error:
            raise ClientError(f"these bytes are not a message id: {error}") from None

    def _identity(self) -> tuple[int, int, int, int]:
        return self.segment_id, self.ledger_id, self.entry_id, self.batch_index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessageId) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        place = "?" if self._position is None else f"{self.ledger_id}:{self.entry_id}:{self.batch_index}"
        return f"MessageId(segment {self.segment_id} at {place})"
