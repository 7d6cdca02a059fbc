"""Consumers of a segment beside one another: what brokers allow, and what a leader may record (pip-486, R21)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scalable_topics.layout import WHOLE, Part, Segment
from scalable_topics_operator.controllers.subscription_status import read_group


def parts_of(frame: Mapping[str, Any]) -> set[Part]:
    """What an assignment lists."""
    return {Part(segment["id"], bucket) for segment in frame["segments"] for bucket in segment["buckets"] or (WHOLE,)}


def given_twice(status: Mapping[str, Any]) -> str:
    """What a record gives somebody that has a bucket in common with what somebody may be reading; empty for nothing."""
    members = read_group(status).members
    held = [(name, part) for name in sorted(members) for part in sorted(members[name].held)]
    for name in sorted(members):
        for part in sorted(members[name].assigned):
            others = [one for one in held if part.conflicts_with(one[1]) and one != (name, part)]
            if others:
                return f"{part} is given to {name}, and {others[0][0]} may be reading {others[0][1]}"
    return ""


@dataclass
class KeySharedBroker:
    """Who is attached: Exclusive to a whole segment, or Key_Shared to the range of one bucket."""

    _attached: dict[Part, str] = field(default_factory=dict)
    _read: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))

    @property
    def attached(self) -> Mapping[Part, str]:
        """Everybody."""
        return dict(self._attached)

    def held_by(self, name: str) -> set[Part]:
        """What one consumer is attached to."""
        return {part for part, who in self._attached.items() if who == name}

    def consumers_of(self, segment_id: int) -> frozenset[str]:
        """Those that are attached to a segment, in whichever way."""
        return frozenset(who for part, who in self._attached.items() if part.segment_id == segment_id)

    def takes(self, part: Part) -> bool:
        """Whether a consumer may attach: no range twice, and nobody beside Exclusive."""
        return not any(part.conflicts_with(other) for other in self._attached)

    def attach(self, part: Part, name: str) -> None:
        """A consumer attaches to what is free."""
        assert self.takes(part)
        self._attached[part] = name

    def detach(self, part: Part) -> None:
        """A consumer leaves."""
        del self._attached[part]

    def forget_but(self, segment_ids: Collection[int]) -> None:
        """Other segments are deleted."""
        for part in [part for part in self._attached if part.segment_id not in segment_ids]:
            del self._attached[part]

    def read(self, part: Part, buckets: int) -> bool:
        """Everything of a part is acknowledged; answers whether everything of its segment is."""
        self._read[part.segment_id] |= set(range(buckets)) if part.is_whole else {part.bucket}
        return len(self._read[part.segment_id]) == buckets

    def read_on(self, segment_id: int) -> None:
        """More of a segment comes: none of its buckets is read to its end any more."""
        del self._read[segment_id]

    def check_all_read(self, segments: Iterable[Segment]) -> None:
        """Raises AssertionError unless there is a reader for every bucket of these."""
        for segment in segments:
            found = sorted(part.bucket for part in self._attached if part.segment_id == segment.segment_id)
            assert found in ([WHOLE], list(range(segment.buckets))), (
                f"segment {segment.segment_id} of {segment.buckets} buckets is read by {found}"
            )
