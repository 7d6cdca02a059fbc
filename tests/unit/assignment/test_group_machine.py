"""Whatever happens to a subscription: at no time two readers of a bucket, or of a segment and of buckets of it; and in
the end exactly one reader of each.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from scalable_topics.layout import WHOLE, Part, Segment, SegmentLayout
from scalable_topics_operator.assignment.barrier import readable_segments
from scalable_topics_operator.assignment.group import Group

_NAMES = st.sampled_from([f"consumer-{number}" for number in range(6)])


class Subscription(RuleBasedStateMachine):
    """Consumers as they are: each reads what it was told last, until it has let go of it."""

    @initialize(segments=st.integers(1, 4), buckets=st.integers(1, 4))
    def begin(self, segments: int, buckets: int) -> None:
        self.layout = SegmentLayout.initial(segments, bucket_budget=segments * buckets)
        self.group = Group()
        self.reading: dict[str, set[Part]] = {}
        self.read: set[int] = set()
        self.incarnations: dict[str, int] = {}
        self.term = 1
        self.fans_out = True

    def _settle(self) -> None:
        before = self.group
        self.group = self.group.settle(self.layout, self.term, fans_out=self.fans_out)
        assert self.group.version >= before.version
        if self.group.members != before.members:
            changed = {
                name
                for name in self.group.members.keys() & before.members.keys()
                if self.group.members[name].assigned != before.members[name].assigned
            }
            assert not changed or self.group.version > before.version
        for name, member in self.group.members.items():
            # Attaching to new segments is quick, letting go of old ones takes its time.
            self.reading.setdefault(name, set()).update(member.assigned)

    @rule(name=_NAMES, shares=st.sampled_from([True, True, True, False]))
    def join(self, name: str, shares: bool) -> None:
        if name not in self.group.members:
            # What a former one of this name read, it was shown to have let go of.
            self.reading[name] = set()
        self.incarnations[name] = self.incarnations.get(name, 0) + 1
        self.group = self.group.join(name, str(self.incarnations[name]), self.reading[name], "", shares=shares)
        self._settle()

    @rule(data=st.data())
    def let_go(self, data: st.DataObject) -> None:
        waiting = [name for name, member in self.group.members.items() if member.releasing]
        if waiting:
            name = data.draw(st.sampled_from(sorted(waiting)))
            member = self.group.members[name]
            released = data.draw(st.sets(st.sampled_from(sorted(member.releasing)), min_size=1))
            self.reading[name] -= released
            self.group = self.group.release(name, member.incarnation, released)
            self._settle()

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        if self.group.members:
            name = data.draw(st.sampled_from(sorted(self.group.members)))
            self.reading[name] = set()
            self.group = self.group.leave(name, self.group.members[name].incarnation)
            self._settle()

    @rule(data=st.data())
    def drain(self, data: st.DataObject) -> None:
        sealed = [one.segment_id for one in readable_segments(self.layout, self.group.drained) if not one.is_active]
        if sealed:
            segment = data.draw(st.sampled_from(sealed))
            self.read.add(segment)
            self.group = self.group.with_drained([segment])
            self._settle()

    @rule(data=st.data())
    def change_layout(self, data: st.DataObject) -> None:
        active = [one.segment_id for one in self.layout.active]
        drained = sorted(self.group.drained & self.layout.segments.keys())
        match data.draw(st.sampled_from(["split", "merge", "rebucket", "prune"])):
            case "split" if len(active) < 12:
                self.layout = self.layout.split(data.draw(st.sampled_from(active)), now_ms=1)
            case "merge" if len(active) > 1:
                at = data.draw(st.integers(0, len(active) - 2))
                self.layout = self.layout.merge(active[at : at + 2], now_ms=1)
            case "rebucket":
                segment = self.layout.segment(data.draw(st.sampled_from(active)))
                buckets = data.draw(st.sampled_from([one for one in (1, 2, 4, 8) if one != segment.buckets]))
                self.layout = self.layout.rebucket(segment.segment_id, buckets, now_ms=1)
            case "prune" if drained:
                self.layout = self.layout.prune([data.draw(st.sampled_from(drained))])
        self._settle()

    @rule()
    def change_leader(self) -> None:
        self.term += 1
        self._settle()

    @rule()
    def switch_fanning_out(self) -> None:
        self.fans_out = not self.fans_out
        self._settle()

    @invariant()
    def nobody_reads_what_another_one_reads(self) -> None:
        if not hasattr(self, "group"):
            return
        unread = self.layout.segments.keys() - self.group.drained
        reading = [part for name in self.group.members for part in self.reading[name] if part.segment_id in unread]
        for place, part in enumerate(reading):
            assert not [other for other in reading[place + 1 :] if part.conflicts_with(other)]

    @invariant()
    def only_those_share_who_can(self) -> None:
        for member in self.group.members.values() if hasattr(self, "group") else ():
            assert member.shares or all(part.is_whole for part in member.assigned)

    @invariant()
    def only_what_is_readable_is_assigned(self) -> None:
        if not hasattr(self, "group"):
            return
        readable = {one.segment_id for one in readable_segments(self.layout, self.group.drained)}
        assigned = {part for member in self.group.members.values() for part in member.assigned}
        assert {part.segment_id for part in assigned} <= readable
        assert all(part.bucket < self.layout.segment(part.segment_id).buckets for part in assigned)

    def teardown(self) -> None:
        if not hasattr(self, "group"):
            return
        for _ in range(4):
            for name, member in self.group.members.items():
                self.group = self.group.release(name, member.incarnation, member.releasing)
            self._settle()
        if not self.group.members:
            return
        assert not any(member.releasing for member in self.group.members.values())
        parts = [part for member in self.group.members.values() for part in member.assigned]
        readable = readable_segments(self.layout, self.group.drained)
        for segment in readable:
            found = sorted(part.bucket for part in parts if part.segment_id == segment.segment_id)
            assert found in ([WHOLE], list(range(segment.buckets)))
        shares = sorted(len({part.segment_id for part in member.assigned}) for member in self.group.members.values())
        if len(shares) <= len(readable):
            assert sum(shares) == len(readable)
            assert shares[-1] - shares[0] <= 1
            assert all(part.is_whole for part in parts)
        else:
            self._check_nobody_idles(readable)

    def _check_nobody_idles(self, readable: Sequence[Segment]) -> None:
        """Whoever reads nothing has nowhere to go."""
        readers = {
            segment.segment_id: [
                member
                for member in self.group.members.values()
                if segment.segment_id in {part.segment_id for part in member.assigned}
            ]
            for segment in readable
        }
        if any(member.shares and not member.assigned for member in self.group.members.values()):
            for segment in readable:
                found = readers[segment.segment_id]
                room = segment.buckets if segment.is_active or self.fans_out else 1
                assert len(found) == room or not found[0].shares


TestSubscription = Subscription.TestCase
TestSubscription.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
