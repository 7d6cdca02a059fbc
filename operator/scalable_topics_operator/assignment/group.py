"""The consumers of one ordered subscription and what each may read: every change a new value (DESIGN §9, R21). Pure.

A segment or an entry bucket that is to move is first taken from its reader, who keeps it as `releasing` until it says
that it has let go, and only then given to the next: at no time may two consumers read it. A segment that goes from one
reader to several, or back, is let go of in the same way: whoever reads all of it keeps everybody else out (pip-486).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from scalable_topics.layout import Part, Segment, SegmentLayout
from scalable_topics_operator.assignment.barrier import readable_segments
from scalable_topics_operator.assignment.sharing import deal_buckets, share


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """Orders the assignments of a subscription.

    Args:
        term: leadership term of whoever made it.
        epoch: of the layout it was made from.
        counter: counts assignments within both.
    """

    term: int = 0
    epoch: int = 0
    counter: int = 0


@dataclass(frozen=True, slots=True)
class Member:
    """One registered consumer.

    Args:
        name: unique within the subscription, and the name of its Pulsar consumers.
        incarnation: of the consumer object; only the present one can leave.
        registered_at: RFC 3339.
        assigned: what it may read.
        releasing: what was taken from it and it may still be reading.
        shares: it knows how to read some buckets of a segment; others read whole segments only.
    """

    name: str
    incarnation: str
    registered_at: str
    assigned: frozenset[Part] = frozenset()
    releasing: frozenset[Part] = frozenset()
    shares: bool = False

    @property
    def held(self) -> frozenset[Part]:
        """What it may be reading: nobody else may."""
        return self.assigned | self.releasing


@dataclass(frozen=True, slots=True)
class Group:
    """The consumers of a subscription.

    Args:
        members: by name.
        drained: ids of segments that are read to their ends (R17), or out of scope (R18).
        version: of the last assignment.
    """

    members: Mapping[str, Member] = field(default_factory=dict)
    drained: frozenset[int] = frozenset()
    version: Version = field(default_factory=Version)

    def join(self, name: str, incarnation: str, holds: Iterable[Part], at: str, *, shares: bool = False) -> Group:
        """A consumer registers, for the first time or again.

        One that was away keeps what it had (pip-468). What it does not hold any more of what was taken from it is
        released. What it holds and nobody else does is its own again, if it was forgotten meanwhile (R7).

        Args:
            name: of the consumer.
            incarnation: of the consumer object; another one takes over from the former.
            holds: what it reads now.
            at: RFC 3339.
            shares: as of `Member`.
        """
        known = self.members.get(name)
        if known is None:
            return self._with(Member(name, incarnation, at, self._free_of(holds), shares=shares))
        releasing = known.releasing & frozenset(holds)
        return self._with(replace(known, incarnation=incarnation, releasing=releasing, shares=shares))

    def release(self, name: str, incarnation: str, parts: Collection[Part]) -> Group:
        """A consumer has let go of something; without effect unless that was taken from this incarnation."""
        member = self.members.get(name)
        if member is None or member.incarnation != incarnation:
            return self
        return self._with(replace(member, releasing=member.releasing - frozenset(parts)))

    def leave(self, name: str, incarnation: str) -> Group:
        """A consumer goes for good; without effect for a former incarnation (#26433)."""
        member = self.members.get(name)
        return self if member is None or member.incarnation != incarnation else self.without(name)

    def without(self, name: str) -> Group:
        """The group after one of its members was removed, who is known to read nothing any more."""
        return replace(self, members={one: member for one, member in self.members.items() if one != name})

    def let_go(self, name: str) -> Group:
        """The group after one of its members, who stays, is known to read nothing any more."""
        member = self.members.get(name)
        if member is None:
            return self
        return self._with(replace(member, assigned=frozenset(), releasing=frozenset()))

    def with_drained(self, segments: Iterable[int]) -> Group:
        """The group after segments were read to their ends."""
        return replace(self, drained=self.drained | frozenset(segments))

    def start_again(self) -> Group:
        """The group after its cursors were moved: what was drained may not be any more (R18)."""
        return replace(self, drained=frozenset())

    def withhold(self, term: int) -> Group:
        """Take everything from everybody, as before cursors are moved (R18)."""
        return self._assigned(_moved(self.members, {}), term, self.version.epoch)

    def settle(self, layout: SegmentLayout, term: int, *, fans_out: bool = True) -> Group:
        """Assign what may be read now.

        Args:
            layout: of the topic.
            term: leadership term.
            fans_out: whether several consumers may share what is left of a sealed segment.
        """
        drained = self.drained & layout.segments.keys()
        segments = readable_segments(layout, drained)
        # One consumer reads everything of a segment in any case, so that a segment of one bucket is never shared.
        most_readers = {one.segment_id: one.buckets if one.is_active or fans_out else 1 for one in segments}
        ids = [one.segment_id for one in segments]
        sharers = {name for name, member in self.members.items() if member.shares}
        readers = share(ids, self.members, self._claims(layout, ids), most_readers, sharers)
        wanted: defaultdict[str, set[Part]] = defaultdict(set)
        for segment in segments:
            for name, parts in self._parts(segment, readers.get(segment.segment_id, ())).items():
                wanted[name] |= parts
        kept = _without_read(self.members, layout.segments.keys() - drained)
        return replace(self, drained=drained)._assigned(_moved(kept, wanted), term, layout.epoch)

    def _parts(self, segment: Segment, readers: Sequence[str]) -> dict[str, set[Part]]:
        """What each reader of a segment is to have of it."""
        one = segment.segment_id
        if len(readers) <= 1:
            return {name: {Part(one)} for name in readers}
        owned = {
            name: {part.bucket for part in self.members[name].assigned if part.segment_id == one and not part.is_whole}
            for name in readers
        }
        dealt = deal_buckets(segment.buckets, owned)
        return {name: {Part(one, bucket) for bucket in buckets} for name, buckets in dealt.items()}

    def _claims(self, layout: SegmentLayout, segments: Collection[int]) -> dict[int, list[str]]:
        """Who reads each segment now, and who has read its parents: keys stay with their readers if they can."""
        readers: defaultdict[int, list[str]] = defaultdict(list)
        moving: defaultdict[int, list[str]] = defaultdict(list)
        for name in sorted(self.members):
            member = self.members[name]
            for segment in sorted({part.segment_id for part in member.assigned}):
                readers[segment].append(name)
            for segment in sorted({part.segment_id for part in member.releasing}):
                moving[segment].append(name)
        claims = {}
        for segment in segments:
            # Only as long as nobody has it: afterwards it is the parents' readers' no more than anybody's.
            parents = () if readers[segment] or moving[segment] else layout.segment(segment).parent_ids
            claims[segment] = [*readers[segment], *(name for parent in parents for name in readers[parent])]
            if len(self.members) > len(segments):
                # A segment that becomes shared is let go of by its reader, who is to be one of them.
                claims[segment] += [name for name in moving[segment] if not self.members[name].assigned]
        return claims

    def _free_of(self, parts: Iterable[Part]) -> frozenset[Part]:
        """Those that are not read to their ends, and that nobody else may be reading."""
        held = [part for member in self.members.values() for part in member.held]
        free: list[Part] = []
        for part in sorted(parts):
            if part.segment_id not in self.drained and not any(part.conflicts_with(one) for one in (*held, *free)):
                free.append(part)
        return frozenset(free)

    def _assigned(self, members: Mapping[str, Member], term: int, epoch: int) -> Group:
        if members == self.members:
            return self
        return replace(self, members=members, version=self._next_version(term, epoch))

    def _next_version(self, term: int, epoch: int) -> Version:
        before = self.version
        counter = before.counter + 1 if (before.term, before.epoch) == (term, epoch) else 0
        return Version(term, epoch, counter)

    def _with(self, member: Member) -> Group:
        return replace(self, members={**self.members, member.name: member})


def _without_read(members: Mapping[str, Member], unread: Set[int]) -> dict[str, Member]:
    """Members without the segments that are read to their ends or gone: nobody else is to have these."""

    def left(parts: Iterable[Part]) -> frozenset[Part]:
        return frozenset(part for part in parts if part.segment_id in unread)

    return {
        name: replace(member, assigned=left(member.assigned), releasing=left(member.releasing))
        for name, member in members.items()
    }


def _moved(members: Mapping[str, Member], wanted: Mapping[str, Set[Part]]) -> dict[str, Member]:
    """Members after what they shall not have any more was taken, and what nobody may be reading was given."""
    taken = {}
    for name, member in members.items():
        unwanted = member.assigned - wanted.get(name, frozenset())
        taken[name] = replace(member, assigned=member.assigned - unwanted, releasing=member.releasing | unwanted)
    held: defaultdict[int, list[tuple[str, Part]]] = defaultdict(list)
    for name, member in taken.items():
        for part in member.held:
            held[part.segment_id].append((name, part))
    return {
        name: _give(member, [part for part in wanted.get(name, ()) if _is_free(part, name, held[part.segment_id])])
        for name, member in taken.items()
    }


def _is_free(part: Part, name: str, held: Iterable[tuple[str, Part]]) -> bool:
    """Whether nothing that has a bucket in common with a part is held, but for the part itself by the same consumer."""
    return not any(part.conflicts_with(other) and (holder, other) != (name, part) for holder, other in held)


def _give(member: Member, parts: Iterable[Part]) -> Member:
    given = frozenset(parts)
    return replace(member, assigned=member.assigned | given, releasing=member.releasing - given)
