"""One consumer's side of docs/sessions.md, and that it keeps it whatever happens in whatever order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scalable_topics.layout import WHOLE, HashRange, Part, SegmentState
from scalable_topics.sdk.session_frames import (
    AssignedSegment,
    Assignment,
    AssignmentVersion,
    ConsumerKind,
    Left,
    Refused,
    Registered,
)
from scalable_topics.sdk.session_state import (
    UNSERVED_SECONDS,
    AttachTo,
    Drop,
    Effect,
    Fail,
    GiveBack,
    SendFrame,
    SessionState,
    Update,
)

GRACE_SECONDS = 60.0
RANGE = HashRange.parse_descriptor("0000-ffff")


def segment(segment_id: int, **fields: object) -> AssignedSegment:
    """A segment of an assignment."""
    defaults: dict[str, object] = {"hash_range": RANGE, "topic": f"persistent://t/n/x-segment-0000-ffff-{segment_id}"}
    return AssignedSegment(segment_id, **(defaults | fields))  # type: ignore[arg-type]


def assignment(counter: int, ids: Iterable[int], **fields: object) -> Assignment:
    """An assignment of whole segments."""
    return Assignment(AssignmentVersion(1, 0, counter), tuple(segment(each, **fields) for each in ids))


def shared(counter: int, *buckets: int) -> Assignment:
    """An assignment of some of the four buckets of segment 1."""
    return Assignment(AssignmentVersion(1, 0, counter), tuple(bucket_of_1(each) for each in buckets))


def bucket_of_1(bucket: int) -> AssignedSegment:
    """One of the four buckets of segment 1."""
    return segment(1, bucket=bucket, bucket_count=4)


def released(segments: list[int], buckets: list[dict[str, object]] | None = None) -> dict[str, object]:
    """What is said of what was detached from."""
    return {"type": "released", "segments": segments, "buckets": buckets or []}


def new_state() -> SessionState:
    """A consumer that has not registered yet."""
    return SessionState("c1", "i1", ConsumerKind.STREAM, "Latest")


def registered() -> SessionState:
    """A consumer with a session."""
    state = new_state()
    state.opened()
    state.received(Registered(GRACE_SECONDS, 30.0))
    state.heard(0.0)
    return state


def frames(effects: list[Effect]) -> list[dict[str, object]]:
    """What is sent."""
    return [dict(effect.frame) for effect in effects if isinstance(effect, SendFrame)]


def test_the_first_frame_registers() -> None:
    state = new_state()
    first = {
        "type": "register",
        "consumer": "c1",
        "incarnation": "i1",
        "resume": False,
        "kind": "Stream",
        "initialPosition": "Latest",
        "sharesSegments": True,
        "holds": [],
        "holdsBuckets": [],
    }
    assert frames(state.opened()) == [first]
    state.lost()
    assert frames(state.opened()) == [first], "nobody has answered yet"
    state.received(Registered(GRACE_SECONDS, 30.0))
    state.received(assignment(1, [2, 1]))
    state.lost()
    assert frames(state.opened()) == [first | {"resume": True, "holds": [1, 2]}]


def test_it_gives_back_what_is_not_assigned_any_more() -> None:
    state = registered()
    assert state.received(assignment(1, [1, 2])) == [AttachTo((segment(1), segment(2)))]
    assert state.received(assignment(2, [2, 3])) == [GiveBack(Part(1), 24.0), AttachTo((segment(3),))]
    assert state.received(assignment(3, [2, 3])) == [], "it is already being given back"
    assert frames(state.detached(Part(1))) == [released([1])]


def test_A3_26273_assignments_that_are_not_newer_change_nothing() -> None:
    """Versions order by term, then epoch, then counter (hazard A3-26273)."""
    state = registered()
    newest = Assignment(AssignmentVersion(2, 1, 0), (segment(1),))
    state.received(newest)
    for stale in (AssignmentVersion(1, 9, 9), AssignmentVersion(2, 0, 9), AssignmentVersion(2, 1, 0)):
        assert state.received(Assignment(stale, (segment(7),))) == []
    assert state.received(Assignment(AssignmentVersion(2, 1, 1), (segment(7),)))


def test_versions_begin_anew_with_a_record_that_was_made_anew() -> None:
    """Its object was deleted: what the new one says counts, whatever its version."""
    state = registered()
    state.received(assignment(7, [1]))
    for record, segments, effects in (
        ("r2", [1, 2], [AttachTo((segment(2),))]),
        ("r2", [3], []),
        ("r3", [1, 2, 3], [AttachTo((segment(3),))]),
    ):
        state.lost()
        state.opened()
        state.received(Registered(GRACE_SECONDS, 30.0, record))
        # The second one is not newer, and of the same record.
        assert state.received(assignment(2 if segments != [3] else 1, segments)) == effects


def test_a_segment_that_is_sealed_meanwhile_stays_attached() -> None:
    state = registered()
    state.received(assignment(1, [1]))
    sealed = segment(1, state=SegmentState.SEALED, end=(3, 4))
    assert state.received(assignment(2, [1], state=SegmentState.SEALED, end=(3, 4))) == [Update(sealed)]


def test_a_segment_of_the_same_id_under_another_name_is_another_one() -> None:
    state = registered()
    state.received(assignment(1, [1]))
    other = segment(1, topic="persistent://t/n/x-segment-0000-7fff-1")
    assert state.received(Assignment(AssignmentVersion(1, 1, 2), (other,))) == [GiveBack(Part(1), 24.0)]
    assert state.detached(Part(1)) == [AttachTo((other,))]


def test_a_segment_that_comes_back_while_it_is_given_back_is_attached_to_again() -> None:
    """Nothing is said of it: the leader never saw it leave."""
    state = registered()
    state.received(assignment(1, [1]))
    state.received(assignment(2, []))
    assert state.received(assignment(3, [1])) == []
    assert state.detached(Part(1)) == [AttachTo((segment(1),))]


def test_a_segment_that_becomes_shared_is_detached_from_first() -> None:
    """Brokers attach nobody with Key_Shared beside Exclusive."""
    state = registered()
    state.received(assignment(1, [1]))
    assert state.received(shared(2, 0, 2)) == [GiveBack(Part(1), 24.0)]
    assert state.holds == (Part(1),)
    assert state.detached(Part(1)) == [SendFrame(released([1])), AttachTo((bucket_of_1(0), bucket_of_1(2)))]
    assert state.received(shared(3, 0, 1)) == [GiveBack(Part(1, 2), 24.0), AttachTo((bucket_of_1(1),))]
    assert frames(state.detached(Part(1, 2))) == [released([], [{"segment": 1, "buckets": [2]}])]
    state.lost()
    assert frames(state.opened())[0]["holdsBuckets"] == [{"segment": 1, "buckets": [0, 1]}]


def test_a_shared_segment_is_attached_to_whole_once_no_bucket_of_it_is_held() -> None:
    state = registered()
    state.received(shared(1, 0, 2))
    assert state.received(assignment(2, [1], bucket_count=4)) == [
        GiveBack(Part(1, 0), 24.0),
        GiveBack(Part(1, 2), 24.0),
    ]
    assert frames(state.detached(Part(1, 0))) == [released([], [{"segment": 1, "buckets": [0]}])]
    assert state.detached(Part(1, 2)) == [
        SendFrame(released([], [{"segment": 1, "buckets": [2]}])),
        AttachTo((segment(1, bucket_count=4),)),
    ]


def test_a_segment_that_a_later_release_says_more_of_stays_attached() -> None:
    """The leader was upgraded, and tells how many buckets there are: whoever reads all of them need not care."""
    state = registered()
    state.received(assignment(1, [1]))
    assert state.received(assignment(2, [1], bucket_count=4)) == [Update(segment(1, bucket_count=4))]


def test_R7_without_a_session_it_keeps_what_a_broker_serves() -> None:
    state = registered()
    state.received(assignment(1, [1, 2]))
    state.heard(100.0)
    state.lost()
    assert state.passed(100.0 + GRACE_SECONDS - 1, [Part(1)]) == [], "it is a member still"
    assert state.passed(100.0 + GRACE_SECONDS, []) == []
    assert state.passed(100.0 + GRACE_SECONDS + 1, [Part(1)]) == []
    assert state.passed(100.0 + GRACE_SECONDS + 2, [Part(1)]) == [], "a broker that restarts needs a moment"
    assert state.passed(100.0 + GRACE_SECONDS + 1 + UNSERVED_SECONDS, [Part(1)]) == [Drop(Part(1))]
    assert state.passed(100.0 + GRACE_SECONDS + 2 + UNSERVED_SECONDS, [Part(1)]) == []


def test_R7_a_gateway_that_knows_no_leader_is_no_contact() -> None:
    state = registered()
    state.received(assignment(1, [1]))
    state.lost()
    state.opened()
    state.heard(GRACE_SECONDS)
    state.received(Refused(503, "no leader is known", is_final=False))
    state.lost()
    state.passed(GRACE_SECONDS + 1, [Part(1)])
    assert state.passed(GRACE_SECONDS + 1 + UNSERVED_SECONDS, [Part(1)]) == [Drop(Part(1))]


def test_R21_with_a_session_nothing_is_dropped() -> None:
    state = registered()
    state.received(assignment(1, [1]))
    assert state.passed(1000.0, [Part(1)]) == []
    assert state.passed(2000.0, [Part(1)]) == []


def test_R7_what_it_lost_without_a_session_is_attached_to_again_if_the_leader_still_says_so() -> None:
    state = registered()
    state.received(assignment(1, [1, 2]))
    state.lost()
    state.passed(GRACE_SECONDS, [Part(1)])
    assert state.passed(GRACE_SECONDS + UNSERVED_SECONDS, [Part(1)]) == [Drop(Part(1))]
    assert state.detached(Part(1)) == [], "there is nobody to tell, and nobody says that it may come back"
    assert frames(state.opened())[0]["holds"] == [2]
    state.received(Registered(GRACE_SECONDS, 30.0))
    assert state.received(assignment(1, [1, 2])) == [AttachTo((segment(1),))]


def test_what_is_detached_from_while_it_registers_is_released() -> None:
    """The leader was told that it holds the segment, and may be waiting for it."""
    state = registered()
    state.received(assignment(1, [1]))
    state.received(assignment(2, []))
    state.lost()
    assert frames(state.opened())[0]["holds"] == [1]
    assert frames(state.detached(Part(1))) == [released([1])]


def test_R17_what_is_drained_is_said_in_every_session() -> None:
    state = registered()
    state.received(assignment(1, [1]))
    said = {"type": "drained", "segments": [1], "buckets": []}
    assert frames(state.drained(Part(1))) == [said]
    state.lost()
    assert state.drained(Part(1)) == []
    state.opened()
    assert frames(state.received(Registered(GRACE_SECONDS, 30.0))) == [said]
    state.received(assignment(2, []))
    state.detached(Part(1))
    assert state.drained(Part(1)) == []
    state.lost()
    state.opened()
    assert frames(state.received(Registered(GRACE_SECONDS, 30.0))) == [], "it is another's by now"


def test_leaving_waits_until_everything_is_detached() -> None:
    state = registered()
    state.received(assignment(1, [1, 2]))
    state.received(assignment(2, [2]))
    assert state.leave() == [Drop(Part(1)), Drop(Part(2))]
    assert state.received(assignment(3, [1, 2])) == []
    assert state.leave() == []
    assert state.detached(Part(1)) == []
    assert frames(state.detached(Part(2))) == [{"type": "leave"}]
    assert not state.is_gone
    state.received(Left())
    assert state.is_gone


def test_without_a_session_there_is_nobody_to_leave() -> None:
    state = registered()
    state.received(assignment(1, [1]))
    state.lost()
    state.leave()
    assert not state.is_gone
    assert state.detached(Part(1)) == []
    assert state.is_gone


def test_R21_a_final_refusal_ends_it() -> None:
    state = registered()
    state.received(assignment(1, [1]))
    assert state.received(Refused(503, "no leader", is_final=False)) == []
    refusal = Refused(409, "replaced", is_final=True)
    assert state.received(refusal) == [Fail(refusal), Drop(Part(1))]
    assert state.is_over
    assert state.received(assignment(2, [2])) == []


def parts_in(frame: Mapping[str, Any], whole: str, buckets: str) -> set[Part]:
    """What a frame names."""
    shared = {Part(one["segment"], bucket) for one in frame[buckets] for bucket in one["buckets"]}
    return {Part(segment_id) for segment_id in frame[whole]} | shared


class Walk:
    """What may happen to a consumer, in any order, beside a model of what it is attached to."""

    def __init__(self, data: st.DataObject) -> None:
        self._draw = data.draw
        self.state = new_state()
        self.attached: dict[Part, AssignedSegment] = {}
        self.going: set[Part] = set()
        self.released: set[Part] = set()
        self.newest: Assignment | None = None
        self.counter = 0
        self.now = 0.0
        self.is_open = self.has_left = False

    def step(self) -> None:
        actions: list[Callable[[], None]] = [self._pass_time, self._drain]
        if self.is_open:
            actions += [self._assign, self._assign, self._register, self._lose, self._assign_again]
        elif not self.state.is_gone:
            actions += [self._open, self._open]
        if self.going:
            actions += [self._detach, self._detach]
        if self._draw(st.integers(0, 15)) == 0:
            actions = [self._leave, self._refuse] if self.is_open else [self._leave]
        self._draw(st.sampled_from(actions))()
        assert self.state.holds == tuple(sorted(self.attached))

    def _open(self) -> None:
        self.is_open = True
        self.released = set()
        self._act(self.state.opened())

    def _lose(self) -> None:
        self.is_open = False
        self.state.lost()

    def _register(self) -> None:
        self._act(self.state.received(Registered(GRACE_SECONDS, 30.0)))
        self.state.heard(self.now)

    def _assign(self) -> None:
        ids = self._draw(st.sets(st.integers(0, 3)))
        self.counter += 1
        names = self._draw(st.sampled_from(["a", "a", "a", "b"]))
        version = AssignmentVersion(1, 0, self.counter)
        found = [
            segment(each, topic=f"{names}{each}", bucket=bucket, bucket_count=4)
            for each in sorted(ids)
            for bucket in sorted(self._draw(st.one_of(st.just({WHOLE}), st.sets(st.integers(0, 3)))))
        ]
        self._receive(Assignment(version, tuple(found)))

    def _assign_again(self) -> None:
        """The newest once more, or one that was overtaken."""
        if self.newest is None:
            return
        if self._draw(st.booleans()):
            self._receive(self.newest)
        elif self.counter > 1:
            stale = AssignmentVersion(1, 0, self._draw(st.integers(0, self.counter - 1)))
            assert self.state.received(Assignment(stale, (segment(0), segment(1)))) == []

    def _receive(self, found: Assignment) -> None:
        if self.has_left:
            assert self.state.received(found) == []
            return
        self.newest = found
        self.released -= {each.part for each in found.segments}
        self._act(self.state.received(found))

    def _detach(self) -> None:
        gone = self._draw(st.sampled_from(sorted(self.going)))
        self.going.discard(gone)
        del self.attached[gone]
        self._act(self.state.detached(gone))

    def _pass_time(self) -> None:
        self.now += self._draw(st.sampled_from([1.0, UNSERVED_SECONDS, GRACE_SECONDS]))
        unserved = [each for each in sorted(self.attached) if self._draw(st.booleans())]
        self._act(self.state.passed(self.now, unserved))

    def _drain(self) -> None:
        self._act(self.state.drained(Part(self._draw(st.integers(0, 3)), self._draw(st.integers(WHOLE, 3)))))

    def _leave(self) -> None:
        self.has_left = True
        self._act(self.state.leave())

    def _refuse(self) -> None:
        self._act(self.state.received(Refused(409, "replaced", is_final=True)))
        self.has_left = True
        self._lose()

    def _act(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case AttachTo(segments):
                    for each in segments:
                        assert not [part for part in self.attached if part.conflicts_with(each.part)]
                        assert each.part not in self.released, "it said that it had detached from this"
                        assert self.newest is not None
                        assert each in self.newest.segments
                        self.attached[each.part] = each
                case GiveBack(part, _):
                    assert part not in self.going
                    self.going.add(part)
                case Drop(part):
                    assert part in self.attached
                    self.going.add(part)
                case Update(each):
                    assert each.part in self.attached
                    self.attached[each.part] = each
                case SendFrame(frame):
                    self._sent(dict(frame))
                case Fail():
                    pass

    def _sent(self, frame: dict[str, object]) -> None:
        assert self.is_open, "there is nobody to send it to"
        match frame:
            case {"type": "register"}:
                assert parts_in(frame, "holds", "holdsBuckets") == set(self.attached)
            case {"type": "released"}:
                (part,) = parts_in(frame, "segments", "buckets")
                assert part not in self.attached
                self.released.add(part)
            case {"type": "leave"}:
                assert not self.attached


@settings(max_examples=300)
@given(st.data(), st.integers(1, 60))
def test_R21_it_holds_nothing_that_it_said_it_had_released(data: st.DataObject, steps: int) -> None:
    """What it reports as held is what it is attached to; it attaches to what the newest assignment lists and to nothing
    else; and once everything has settled it is attached to all of that.
    """
    walk = Walk(data)
    for _ in range(steps):
        walk.step()
    if walk.has_left:
        while walk.going:
            walk._detach()
        assert walk.attached == {}
        return
    if walk.newest is None:
        return
    if not walk.is_open:
        walk._open()
    walk._register()
    walk._receive(walk.newest)
    while walk.going:
        walk._detach()
    wanted = {each.part: each for each in walk.newest.segments}
    assert walk.attached == wanted
