"""R38: the cases of the peer's deciding controller, which are prose: each is a test here that bears its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.controller_driver import Controller
from tests.conformance.peer_case import PeerCase, load_cases

CASES = {case.name: case for case in load_cases() if case.area == "ControllerAutoScale"}


def _once(controller: Controller) -> dict[str, Any]:
    controller.evaluate()
    return {"active": controller.active, "error": None}


def _twice(controller: Controller) -> dict[str, Any]:
    active = []
    for _ in range(2):
        controller.evaluate()
        active.append(controller.active)
        controller.tick()
    return {"active": active, "override": controller.override()}


def _over_a_failover(controller: Controller) -> dict[str, Any]:
    active = []
    for _ in range(2):
        controller.evaluate()
        active.append(controller.active)
        controller.fail_over()
        controller.tick()
    return {"active": active}


def _rebuckets_and_failover(controller: Controller) -> dict[str, Any]:
    controller.consumers = controller.given["consumers"]
    controller.evaluate()
    controller.fail_over()
    controller.tick()
    controller.consumers = 9
    controller.evaluate()
    after_join = controller.buckets
    controller.tick()
    controller.loads = dict.fromkeys(controller.segment_ids, 20_000.0)
    controller.evaluate()
    return {"bucketsAfterJoin": after_join, "activeAfterLoad": controller.active}


def _follow_up(controller: Controller) -> dict[str, Any]:
    seen = []
    controller.consumers = 5
    controller.evaluate()
    seen.append(controller.buckets)
    controller.wait(1_000)
    controller.consumers = 9
    wait_ms = controller.evaluate()
    assert controller.buckets == seen[0], "the cool-down holds it back"
    assert wait_ms == 2_000, "and says when it is over, long before the next tick"
    controller.wait(wait_ms)
    controller.evaluate()
    seen.append(controller.buckets)
    return {"buckets": seen}


STORIES: dict[str, Callable[[Controller], dict[str, Any]]] = {
    "follow-up after a rebucket runs on the rebucket cooldown": _follow_up,
    "invalid combination means disabled, not an error": _once,
    "namespace override disables": _once,
    "hot segment is split": _once,
    "cooldown blocks the second split": _twice,
    "cooldown survives failover": _over_a_failover,
    "below threshold nothing happens": _once,
    "disabled is a no-op": _once,
    "override survives the split rewrite": _twice,
    "rebucket cooldown survives failover and is not charged to splits": _rebuckets_and_failover,
}


@pytest.mark.parametrize("case", CASES.values(), ids=str)
def test_peer_case(case: PeerCase) -> None:
    """Hazards A2-25980c, A2-26008, A2-26434a and A2-26434c."""
    outcome = STORIES[case.name](Controller(case.given))
    assert {name: outcome[name] for name in case.expect if name != "override"} == {
        name: value for name, value in case.expect.items() if name != "override"
    }
    assert outcome.get("override", {}).items() >= case.expect.get("override", {}).items()


def test_what_a_cooldown_holds_back_would_be_done_without_it() -> None:
    """So that these cases cannot pass because nothing is ever done twice."""
    for name in ("cooldown blocks the second split", "cooldown survives failover"):
        controller = Controller({**CASES[name].given, "splitCooldownS": 0})
        assert STORIES[name](controller)["active"] == [3, 4]


def test_no_story_is_left_over() -> None:
    assert STORIES.keys() == CASES.keys()
