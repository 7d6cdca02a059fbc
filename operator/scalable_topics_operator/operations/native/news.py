"""What has become of a layout that brokers own since it was looked at last. Pure.

Brokers prune a drained segment within a minute and keep no history, nor do they tell who made a segment or how many
merges are in its ancestry: what the record knows of a segment is kept, and of new ones it is told from what they
replaced (hazard C1 of the peer: depth that is derived from what pruning edits, resets).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from scalable_topics.layout import CreatedBy, Segment, SegmentLayout, maker_of, merge_depth_of
from scalable_topics_operator.operations.pruned_segment import PrunedSegment


@dataclass(frozen=True, slots=True)
class Happened:
    """Segments that replaced others.

    Args:
        kind: how.
        parent_ids: segments that were replaced.
        child_ids: segments that replaced them.
        at_ms: when, milliseconds since 1970.
        epoch: of the layout then.
    """

    kind: CreatedBy
    parent_ids: tuple[int, ...]
    child_ids: tuple[int, ...]
    at_ms: int
    epoch: int


@dataclass(frozen=True, slots=True)
class News:
    """What a look at a layout brought.

    Args:
        layout: to be recorded.
        happened: splits, merges, rebuckets and migrations since, oldest first.
        pruned: segments that have left the layout since.
        replaced: it is another topic than the recorded one: that was deleted and made again.
    """

    layout: SegmentLayout
    happened: tuple[Happened, ...] = ()
    pruned: tuple[PrunedSegment, ...] = ()
    replaced: bool = False

    @property
    def kinds(self) -> Mapping[CreatedBy, int]:
        """When each kind of change happened last."""
        return {one.kind: one.at_ms for one in self.happened}


def news_of(before: SegmentLayout | None, found: SegmentLayout, *, now_ms: int) -> News:
    """Compare a layout as brokers have it with the recorded one.

    Args:
        before: as recorded; None where nothing is.
        found: as brokers have it.
        now_ms: wall clock, milliseconds since 1970.
    """
    if before is None or is_another(before, found):
        return News(found, replaced=before is not None)
    known = before.segments
    made: dict[int, Segment] = {}
    changes: dict[tuple[int, tuple[int, ...]], list[Segment]] = defaultdict(list)
    for segment_id, segment in found.segments.items():
        old = known.get(segment_id)
        if old is not None:
            made[segment_id] = replace(segment, created_by=old.created_by, merge_depth=old.merge_depth)
            continue
        parents = _replaced_by(segment, known, made)
        maker = maker_of(segment.hash_range, parents)
        made[segment_id] = replace(segment, created_by=maker, merge_depth=merge_depth_of(maker, parents))
        replaced_ids = tuple(sorted(parent.segment_id for parent in parents))
        changes[segment.created_at_epoch, replaced_ids].append(made[segment_id])
    layout = replace(found, segments=made)
    return News(layout, tuple(_happened(changes)), tuple(_pruned(known.values(), layout, now_ms)))


def is_another(before: SegmentLayout, found: SegmentLayout) -> bool:
    """Whether a topic of the same name took the place of the recorded one: brokers only ever count up, and never
    change what a segment is.
    """
    if found.epoch < before.epoch or found.next_segment_id < before.next_segment_id:
        return True
    return any(
        (old.hash_range, old.created_at_ms) != (segment.hash_range, segment.created_at_ms)
        for segment_id, segment in found.segments.items()
        if (old := before.segments.get(segment_id)) is not None
    )


def _replaced_by(segment: Segment, known: Mapping[int, Segment], made: Mapping[int, Segment]) -> list[Segment]:
    """What a new segment has replaced: its parents, or where these are pruned already what covered its range."""
    if segment.parent_ids:
        return [made[parent_id] for parent_id in segment.parent_ids]
    return [old for old in known.values() if old.is_active and old.hash_range.overlaps(segment.hash_range)]


def _happened(changes: Mapping[tuple[int, tuple[int, ...]], list[Segment]]) -> Iterable[Happened]:
    for (epoch, parent_ids), children in sorted(changes.items()):
        yield Happened(
            kind=children[0].created_by,
            parent_ids=parent_ids,
            child_ids=tuple(child.segment_id for child in children),
            at_ms=max(child.created_at_ms for child in children),
            epoch=epoch,
        )


def _pruned(known: Iterable[Segment], layout: SegmentLayout, now_ms: int) -> Iterable[PrunedSegment]:
    for segment in known:
        if segment.segment_id not in layout.segments:
            heirs = tuple(
                one.segment_id
                for one in layout.segments.values()
                if one.segment_id > segment.segment_id and one.hash_range.overlaps(segment.hash_range)
            )
            yield PrunedSegment.of(segment, child_ids=segment.child_ids or heirs, pruned_at_ms=now_ms)
