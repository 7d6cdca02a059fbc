"""What there is to see of an ordered subscription, segment by segment (pip-486 metrics). Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from scalable_topics.layout import Part, SegmentLayout
from scalable_topics_operator.assignment.barrier import readable_segments
from scalable_topics_operator.assignment.group import Group


@dataclass(frozen=True, slots=True)
class SegmentReading:
    """Who reads a segment.

    Args:
        readers: names, by the entry buckets that each reads.
        withheld: how many buckets nobody may read yet, since their former reader has not let go of them.
        drains: several consumers share what is left of it, which is sealed.
    """

    readers: Mapping[int, str]
    withheld: int
    drains: bool

    @property
    def sharing(self) -> int:
        """How many consumers share it; 0 where one reads all of it."""
        consumers = len(set(self.readers.values()))
        return consumers if consumers > 1 else 0


def reading_of(group: Group, layout: SegmentLayout) -> dict[int, SegmentReading]:
    """What is read now of the segments that may be, by their ids."""
    given: defaultdict[int, dict[Part, str]] = defaultdict(dict)
    taken: defaultdict[int, set[Part]] = defaultdict(set)
    for name in sorted(group.members):
        member = group.members[name]
        for part in member.assigned:
            given[part.segment_id][part] = name
        for part in member.releasing:
            taken[part.segment_id].add(part)
    found = {}
    for segment in readable_segments(layout, group.drained):
        one, everything = segment.segment_id, range(segment.buckets)
        readers = {
            bucket: name
            for part, name in sorted(given[one].items())
            for bucket in (everything if part.is_whole else (part.bucket,))
        }
        held = {bucket for part in taken[one] for bucket in (everything if part.is_whole else (part.bucket,))}
        is_shared = len(set(readers.values())) > 1
        found[one] = SegmentReading(readers, len(held - readers.keys()), is_shared and not segment.is_active)
    return found
