"""The consumers of one ordered subscription and what each may read: every change a new value (DESIGN §9, R21). Pure.

A segment that is to move is first taken from its reader, who keeps it as `releasing` until it says that it has let go,
and only then given to the next: at no time may two consumers read it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.assignment.barrier import readable_segments
from scalable_topics_operator.assignment.sharing import share


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
        assigned: ids of the segments it may read.
        releasing: ids of the segments that were taken from it and that it may still be reading.
    """

    name: str
    incarnation: str
    registered_at: str
    assigned: frozenset[int] = frozenset()
    releasing: frozenset[int] = frozenset()

    @property
    def held(self) -> frozenset[int]:
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

    def join(self, name: str, incarnation: str, holds: Iterable[int], at: str) -> Group:
        """A consumer registers, for the first time or again.

        One that was away keeps what it had (pip-468). What it does not hold any more of what was taken from it is
        released. What it holds and nobody else does is its own again, if it was forgotten meanwhile (R7).

        Args:
            name: of the consumer.
            incarnation: of the consumer object; another one takes over from the former.
            holds: ids of the segments it reads now.
            at: RFC 3339.
        """
        known = self.members.get(name)
        held = frozenset(holds)
        if known is None:
            others: frozenset[int] = frozenset().union(*(member.held for member in self.members.values()))
            return self._with(Member(name, incarnation, at, held - others - self.drained))
        return self._with(replace(known, incarnation=incarnation, releasing=known.releasing & held))

    def release(self, name: str, incarnation: str, segments: Collection[int]) -> Group:
        """A consumer has let go of segments; without effect unless they were taken from this incarnation."""
        member = self.members.get(name)
        if member is None or member.incarnation != incarnation:
            return self
        return self._with(replace(member, releasing=member.releasing - frozenset(segments)))

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

    def settle(self, layout: SegmentLayout, term: int, most_readers: Mapping[int, int] | None = None) -> Group:
        """Assign what may be read now.

        Args:
            layout: of the topic.
            term: leadership term.
            most_readers: as for `share`.
        """
        drained = self.drained & layout.segments.keys()
        segments = [segment.segment_id for segment in readable_segments(layout, drained)]
        readers = share(segments, self.members, self._claims(layout, segments), most_readers or {})
        wanted: defaultdict[str, set[int]] = defaultdict(set)
        for segment, names in readers.items():
            for name in names:
                wanted[name].add(segment)
        kept = _without_read(self.members, layout.segments.keys() - drained)
        return replace(self, drained=drained)._assigned(_moved(kept, wanted), term, layout.epoch)

    def _claims(self, layout: SegmentLayout, segments: Collection[int]) -> dict[int, list[str]]:
        """Who reads each segment now, and who has read its parents: keys stay with their readers if they can."""
        readers: defaultdict[int, list[str]] = defaultdict(list)
        for name in sorted(self.members):
            for segment in self.members[name].assigned:
                readers[segment].append(name)
        claims = {}
        for segment in segments:
            # Only as long as nobody has it: afterwards it is the parents' readers' no more than anybody's.
            is_moving = any(segment in member.releasing for member in self.members.values())
            parents = () if readers[segment] or is_moving else layout.segment(segment).parent_ids
            claims[segment] = [*readers[segment], *(name for parent in parents for name in readers[parent])]
        return claims

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
    return {
        name: replace(member, assigned=member.assigned & unread, releasing=member.releasing & unread)
        for name, member in members.items()
    }


def _moved(members: Mapping[str, Member], wanted: Mapping[str, Set[int]]) -> dict[str, Member]:
    """Members after what they shall not have any more was taken, and what nobody else may be reading was given."""
    taken = {}
    for name, member in members.items():
        unwanted = member.assigned - wanted.get(name, frozenset())
        taken[name] = replace(member, assigned=member.assigned - unwanted, releasing=member.releasing | unwanted)
    holders: defaultdict[int, set[str]] = defaultdict(set)
    readers: defaultdict[int, set[str]] = defaultdict(set)
    for name, member in taken.items():
        for segment in member.held:
            holders[segment].add(name)
        for segment in wanted.get(name, ()):
            readers[segment].add(name)
    return {
        name: _give(member, [one for one in wanted.get(name, ()) if holders[one] <= readers[one]])
        for name, member in taken.items()
    }


def _give(member: Member, segments: Iterable[int]) -> Member:
    given = frozenset(segments)
    return replace(member, assigned=member.assigned | given, releasing=member.releasing - given)
