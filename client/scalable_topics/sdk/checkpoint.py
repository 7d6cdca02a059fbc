"""Positions on all segments that a consumer reads, to be kept outside of Pulsar (pip-460 Checkpoint, R22)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from scalable_topics.layout import Part
from scalable_topics.layout.json_fields import MALFORMED, parse_json
from scalable_topics.sdk.errors import ClientError

_VERSION = 2
_WITHOUT_BUCKETS = 1


class SegmentPosition(NamedTuple):
    """A message within its segment; later ones compare greater.

    Args:
        ledger_id: ledger of the segment's topic.
        entry_id: entry within the ledger; -1 before the first.
        batch_index: place within the entry's batch; -1 outside batches.
    """

    ledger_id: int
    entry_id: int
    batch_index: int = -1


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where consumers of a group stood: everything up to these positions, and nothing behind them, had been received.

    It holds whatever splits and merges come later: a segment is read once those before it are read to their ends, so
    the positions tell of the segments that come before and after theirs, too.

    Args:
        topic: `topic://tenant/namespace/name`.
        group: the checkpoint group.
        positions: the last message received of each segment that is read whole, and of each entry bucket of one that is
            shared; where nothing was received, the one up to which the group had committed it before. Where there is a
            position of a bucket and one of its whole segment, the later one counts.
    """

    topic: str
    group: str
    positions: Mapping[Part, SegmentPosition]

    def merged(self, *others: Checkpoint) -> Checkpoint:
        """This one and those of other consumers of the group, taken at the same point of the application's progress.

        Where two of them name the same, it has gone from one to the other, who has read further.

        Raises:
            ClientError: they are of another topic or group.
        """
        positions = dict(self.positions)
        for other in others:
            if (other.topic, other.group) != (self.topic, self.group):
                raise ClientError(
                    f"a checkpoint of group {other.group} on {other.topic} does not belong to one of group "
                    f"{self.group} on {self.topic}"
                )
            for part, position in other.positions.items():
                positions[part] = max(position, positions.get(part, position), key=_order)
        return Checkpoint(self.topic, self.group, positions)

    def following(self, earlier: Checkpoint) -> Checkpoint:
        """This one, with what an earlier one had of the same segments beyond it.

        Who gets an entry bucket from another consumer knows how far the group has committed the segment, and nothing of
        the bucket until a message of it comes. So where segments are shared each checkpoint of the group is put behind
        the one that was kept before, and the first behind the one that was restored.

        Args:
            earlier: of the same topic and group, after which the group was not moved back.

        Raises:
            ClientError: it is of another topic or group.
        """
        segments = {part.segment_id for part in self.positions}
        positions = self.merged(
            Checkpoint(
                earlier.topic,
                earlier.group,
                {part: position for part, position in earlier.positions.items() if part.segment_id in segments},
            )
        ).positions
        whole = {part.segment_id: _order(position) for part, position in positions.items() if part.is_whole}
        return Checkpoint(
            self.topic,
            self.group,
            {
                part: position
                for part, position in positions.items()
                if part.is_whole or part.segment_id not in whole or _order(position) > whole[part.segment_id]
            },
        )

    def serialize(self) -> bytes:
        """Its form for storing; `Checkpoint.deserialize` reads it."""
        whole: dict[str, Any] = {}
        buckets: dict[str, Any] = {}
        for part, position in sorted(self.positions.items()):
            if part.is_whole:
                whole[str(part.segment_id)] = list(position)
            else:
                buckets.setdefault(str(part.segment_id), {})[str(part.bucket)] = list(position)
        data = {"version": _VERSION, "topic": self.topic, "group": self.group, "positions": whole, "buckets": buckets}
        return json.dumps(data, separators=(",", ":")).encode()

    @classmethod
    def deserialize(cls, data: bytes) -> Self:
        """Read what `serialize` made.

        Raises:
            ClientError: it is something else, or of a later release.
        """
        try:
            body = parse_json(data)
            version = body["version"]
            if version not in (_WITHOUT_BUCKETS, _VERSION):
                raise ClientError(
                    f"a checkpoint of version {str(version)[:20]} was made by a later release of scalable-topics"
                )
            positions = {Part(int(each)): _position(position) for each, position in body["positions"].items()}
            for each, buckets in body["buckets"].items() if version == _VERSION else ():
                positions |= {Part(int(each), int(bucket)): _position(where) for bucket, where in buckets.items()}
            return cls(str(body["topic"]), str(body["group"]), positions)
        except MALFORMED as error:
            raise ClientError(f"these bytes are not a checkpoint: {error!r}"[:200]) from None


def _order(position: SegmentPosition) -> tuple[int, int, float]:
    """All of an entry, as a group has committed it, is later than any message of its batch."""
    return position.ledger_id, position.entry_id, math.inf if position.batch_index < 0 else position.batch_index


def _position(numbers: Any) -> SegmentPosition:
    return SegmentPosition(*(int(number) for number in numbers))
