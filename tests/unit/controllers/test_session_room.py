"""Who is connected, who is waited for and for how long (pip-468 session lifecycle, R21)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scalable_topics.layout import Part, SegmentLayout
from scalable_topics_operator.assignment.group import Group
from scalable_topics_operator.controllers.session_room import Registration, Room, Session

GRACE_SECONDS, HANDOVER_SECONDS = 60.0, 30.0
LAYOUT = SegmentLayout.initial(2)


class Wire:
    """What a consumer was sent."""

    def __init__(self) -> None:
        self.frames: list[Mapping[str, Any]] = []
        self.refusals: list[tuple[int, bool]] = []
        self.has_left = False

    def send(self, frame: Mapping[str, Any]) -> None:
        self.frames.append(frame)

    def refuse(self, status: int, reason: str, *, final: bool) -> None:
        assert reason
        self.refusals.append((status, final))

    def leave(self) -> None:
        self.has_left = True


class Subscription:
    """A room and its record, as the coordinator keeps them."""

    def __init__(self) -> None:
        self.room = Room(GRACE_SECONDS, HANDOVER_SECONDS)
        self.group = Group()
        self.now = 0.0

    def enter(self, name: str, incarnation: str = "1", *, resume: bool = False) -> tuple[Session | None, Wire]:
        wire = Wire()
        session = self.room.enter(Registration(name, incarnation, resume), wire, self.group, "")
        self.commit()
        return session, wire

    def commit(self) -> None:
        for change in self.room.said:
            self.group = change(self.group)
        self.room.said.clear()
        self.group = self.group.settle(LAYOUT, 1)
        self.room.watch(self.group, self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.room.watch(self.group, self.now)
        self.room.send_overdue_away(self.now)


@pytest.fixture
def subscription() -> Subscription:
    return Subscription()


def _entered(subscription: Subscription, name: str, incarnation: str = "1") -> tuple[Session, Wire]:
    session, wire = subscription.enter(name, incarnation)
    assert session is not None
    return session, wire


def test_one_that_is_away_for_its_grace_is_expired(subscription: Subscription) -> None:
    """Hazard A3-26433a."""
    session, _ = _entered(subscription, "a")
    subscription.room.lost(session, subscription.now)
    subscription.wait(GRACE_SECONDS - 1)
    assert subscription.room.expired(subscription.now) == []
    assert subscription.room.next_time() == GRACE_SECONDS
    subscription.wait(1)
    assert subscription.room.expired(subscription.now) == ["a"]


def test_one_that_comes_back_is_waited_for_no_more(subscription: Subscription) -> None:
    session, _ = _entered(subscription, "a")
    subscription.room.lost(session, subscription.now)
    subscription.wait(GRACE_SECONDS / 2)
    subscription.enter("a", resume=True)
    subscription.wait(GRACE_SECONDS)
    assert subscription.room.expired(subscription.now) == []


def test_r7_one_that_came_back_for_a_moment_has_a_whole_grace_again(subscription: Subscription) -> None:
    """Though nobody has looked while it was there."""
    session, _ = subscription.enter("a")
    assert session is not None
    subscription.room.lost(session, 0.0)
    again = subscription.room.enter(Registration("a", "1", resume=True), Wire(), subscription.group, "")
    assert again is not None
    subscription.room.lost(again, GRACE_SECONDS - 1)
    assert subscription.room.expired(GRACE_SECONDS) == []
    assert subscription.room.expired(2 * GRACE_SECONDS - 1) == ["a"]


def test_a_new_leader_gives_everybody_a_whole_grace(subscription: Subscription) -> None:
    session, _ = _entered(subscription, "a")
    subscription.room.lost(session, subscription.now)
    subscription.wait(GRACE_SECONDS - 1)
    subscription.room = Room(GRACE_SECONDS, HANDOVER_SECONDS)
    subscription.wait(0)
    subscription.wait(GRACE_SECONDS - 1)
    assert subscription.room.expired(subscription.now) == []
    subscription.wait(2)
    assert subscription.room.expired(subscription.now) == ["a"]


def test_a_lost_connection_that_was_replaced_before_means_nothing(subscription: Subscription) -> None:
    """Hazards A3-26433b and A5-26130."""
    former, _ = _entered(subscription, "a")
    _entered(subscription, "a")
    subscription.room.lost(former, subscription.now)
    subscription.wait(2 * GRACE_SECONDS)
    assert subscription.room.expired(subscription.now) == []


def test_another_incarnation_takes_over_and_the_former_is_told_for_good(subscription: Subscription) -> None:
    """Hazard A3-26433b."""
    former, wire = _entered(subscription, "a", "1")
    _entered(subscription, "a", "2")
    assert wire.refusals == [(409, True)]
    subscription.room.left(former)
    subscription.commit()
    assert subscription.group.members["a"].incarnation == "2"
    late, refused = subscription.enter("a", "1", resume=True)
    assert late is None
    assert refused.refusals == [(409, True)]


def test_the_same_incarnation_connects_anew_and_its_old_connection_is_closed(subscription: Subscription) -> None:
    _, wire = _entered(subscription, "a")
    again, _ = subscription.enter("a", resume=True)
    assert again is not None
    assert wire.refusals == [(409, False)]


def test_one_that_was_removed_may_resume(subscription: Subscription) -> None:
    session, wire = subscription.enter("a", "1", resume=True)
    assert session is not None
    assert wire.refusals == []


def test_r21_one_that_does_not_let_go_is_sent_away_and_its_grace_begins(subscription: Subscription) -> None:
    session, wire = _entered(subscription, "a")
    _entered(subscription, "b")
    assert subscription.group.members["a"].releasing == {Part(1)}
    subscription.wait(HANDOVER_SECONDS - 1)
    assert wire.refusals == []
    assert subscription.room.next_time() == HANDOVER_SECONDS
    subscription.wait(1)
    assert wire.refusals == [(408, False)]
    assert not subscription.room.is_present(session)
    subscription.wait(GRACE_SECONDS)
    assert subscription.room.expired(subscription.now) == ["a"]


def test_one_that_lets_go_in_time_stays(subscription: Subscription) -> None:
    session, wire = _entered(subscription, "a")
    _entered(subscription, "b")
    subscription.wait(HANDOVER_SECONDS - 1)
    subscription.room.released(session, [Part(1)])
    subscription.commit()
    subscription.wait(2 * HANDOVER_SECONDS)
    assert wire.refusals == []
    assert subscription.room.next_time() is None


def test_r7_one_that_a_former_leader_removed_is_asked_to_register_again(subscription: Subscription) -> None:
    session, wire = _entered(subscription, "a")
    subscription.room.send_forgotten_away(subscription.group)
    assert subscription.room.is_present(session)
    subscription.room.released(session, [Part(0)])
    subscription.room.send_forgotten_away(Group())
    assert subscription.room.is_present(session), "what was said is not committed yet, its registration perhaps"
    subscription.commit()
    subscription.room.send_forgotten_away(Group())
    assert wire.refusals == [(503, False)]
    assert not subscription.room.is_present(session)


def test_one_that_leaves_is_waited_for_by_nobody(subscription: Subscription) -> None:
    session, _ = _entered(subscription, "a")
    subscription.room.left(session)
    subscription.commit()
    assert subscription.group.members == {}
    assert subscription.room.next_time() is None
