"""R38: the peer's cases of consumer sessions, which are prose: each is a test here that bears its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scalable_topics_operator.controllers.session_room import Session
from tests.conformance.peer_case import PeerCase, load_cases
from tests.conformance.session_driver import Leader, persisted

CASES = {case.name: case for case in load_cases() if case.area == "ConsumerSession"}


def _present(session: Session | None) -> Session:
    assert session is not None
    return session


def _stale_leave(given: dict[str, Any]) -> dict[str, Any]:
    leader = Leader()
    former, _ = leader.register("c1", "1")
    current, _ = leader.register("c1", "2")
    sessions = []
    for session in (former, current):
        leader.room.left(_present(session))
        leader.turn()
        sessions.append(len(leader.group.members))
    return {"sessionsAfterEach": sessions}


def _closed_during_a_poll(given: dict[str, Any]) -> dict[str, Any]:
    leader = Leader()
    leader.register("c1", "1")
    leader.room.refuse_all(503, "another replica leads the topic now", final=False)
    leader.room.sessions.clear()
    leader.group = leader.group.without("c1")
    leader.turn()
    return {"furtherChecks": 0 if leader.room.next_time() is None else 1}


def _attached_again(given: dict[str, Any]) -> dict[str, Any]:
    leader = Leader(status=persisted("consumer-1"))
    session, _ = leader.register("consumer-1", "77")
    return {
        "connected": leader.room.is_present(_present(session)),
        "id": int(leader.group.members["consumer-1"].incarnation),
        "graceTimer": leader.room.away.get("consumer-1"),
    }


def _resumed(given: dict[str, Any]) -> dict[str, Any]:
    leader = Leader(status=persisted("consumer-1", "consumer-2"))
    session, _ = leader.register("consumer-1", "before", resume=True)
    return {
        "sessions": len(leader.group.members),
        "counts": {"consumer-1": leader.counts()["consumer-1"]},
        "connected": leader.room.is_present(_present(session)),
    }


def _pushed_to_nobody(given: dict[str, Any]) -> dict[str, Any]:
    leader = Leader(status=persisted("consumer-1"))
    leader.turn()
    return {"sent": len(leader.room.sessions), "error": None}


def _restored(given: dict[str, Any]) -> dict[str, Any]:
    leader = Leader(status=persisted("consumer-1", "consumer-2"))
    return {
        "sessions": len(leader.group.members),
        "connected": bool(leader.room.sessions),
        "graceTimersRunning": leader.room.away.keys() == leader.group.members.keys(),
    }


def _lost_twice(given: dict[str, Any]) -> dict[str, Any]:
    leader = Leader()
    times = []
    for incarnation in ("1", "2"):
        session, _ = leader.register("c1", incarnation)
        leader.wait(10)
        leader.room.lost(_present(session), leader.now)
        times.append(leader.room.away["c1"])
    is_later = times[1] > times[0]
    return {"firstTimer": "cancelled" if is_later else "running", "secondTimer": "running" if is_later else "none"}


def _pushed_to_the_present(given: dict[str, Any]) -> dict[str, Any]:
    leader = Leader(segments=len(given["segments"]))
    for number in range(given["epoch"]):
        # The epoch goes on while the segments asked for stay: others come and go beside them.
        leader.layout = leader.layout.rebucket(leader.layout.active[-1].segment_id, number % 2 + 3, now_ms=1)
    leader.group = leader.group.with_drained(segment.segment_id for segment in leader.layout.sealed)
    _, former = leader.register("c1", "41")
    _, current = leader.register("c1", str(given["id"]))
    frame = current.frames[-1]
    ids = sorted(segment["id"] for segment in frame["segments"])
    return {
        "sentTo": given["id"] if not former.frames or former.is_refused else 41,
        "layoutEpoch": frame["version"]["epoch"],
        "segments": [place for place, _ in enumerate(ids)],
    }


def _back_in_time(given: dict[str, Any]) -> dict[str, Any]:
    leader = Leader(given["segments"], given["graceMs"] / 1000)
    first, second = given["consumers"]
    session, _ = leader.register(first, "1")
    leader.register(second, "1")
    before = leader.group
    leader.room.lost(_present(session), leader.now)
    leader.wait(given["graceMs"] / 2000)
    again, _ = leader.register(first, "99")
    leader.wait(given["graceMs"] / 1000)
    assert leader.group.version == before.version, "nobody is disturbed"
    return {
        "sessions": len(leader.group.members),
        "counts": leader.counts(),
        "connectionId": int(leader.group.members[first].incarnation),
        "connected": leader.room.is_present(_present(again)),
    }


def _looked_at_sooner(given: dict[str, Any]) -> dict[str, Any]:
    leader = Leader()
    leader.register("c1", "1")
    leader.room.look_seconds, leader.room.look_at = given["drainMaxMs"] / 1000, leader.now + given["drainMaxMs"] / 1000
    leader.register("c2", "1")
    wait_seconds = max(0.0, leader.room.look_at - leader.now)
    return {"newCheckWithinMs": 250 if wait_seconds * 1000 <= 250 else wait_seconds * 1000}


STORIES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "leave carrying an old connection id is ignored": _stale_leave,
    "close during a poll leaves nothing scheduled": _closed_during_a_poll,
    "attach cancels the timer": _attached_again,
    "restored consumer resumes its share": _resumed,
    "no push to a disconnected session": _pushed_to_nobody,
    "restore installs disconnected sessions with running timers": _restored,
    "second disconnect restarts the timer": _lost_twice,
    "push goes to the current connection id": _pushed_to_the_present,
    "reconnect inside grace keeps the assignment": _back_in_time,
    "poll cadence resets on a new registration": _looked_at_sooner,
}


@pytest.mark.parametrize("case", CASES.values(), ids=str)
def test_peer_case(case: PeerCase) -> None:
    """Hazards A3-25642c and A3-26433b."""
    assert STORIES[case.name](case.given) == case.expect


def test_no_story_is_left_over() -> None:
    assert STORIES.keys() == CASES.keys()


def test_one_that_stays_away_is_removed() -> None:
    """So that the cases of grace cannot pass because nobody is ever removed."""
    leader = Leader(grace_seconds=1.0)
    session, _ = leader.register("c1", "1")
    leader.room.lost(_present(session), leader.now)
    leader.wait(2.0)
    assert leader.counts() == {}
