"""Conditions by the kstatus rules (DESIGN §5)."""

from __future__ import annotations

import pytest

from scalable_topics_operator.controllers.conditions import (
    MESSAGE_LIMIT,
    Standing,
    apply_standing,
    clean,
    find_condition,
    holds,
    set_condition,
)

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        (Standing.healthy(), ("True", "False", "False")),
        (Standing.working("Creating", "at it"), ("False", "True", "False")),
        (Standing.working("Splitting", "at it", ready=True), ("True", "True", "False")),
        (Standing.stuck("NameTaken", "choose another"), ("False", "False", "True")),
    ],
)
def test_a_standing_is_three_conditions(standing: Standing, expected: tuple[str, str, str]) -> None:
    status = {"conditions": apply_standing((), standing, generation=3, now=EARLY)}
    found = tuple(find_condition(status, kind)["status"] for kind in ("Ready", "Reconciling", "Stalled"))
    assert found == expected
    assert all(condition["observedGeneration"] == 3 for condition in status["conditions"])


def test_an_unchanged_standing_is_an_unchanged_list() -> None:
    """Hazard C24: a clock that moves on writes nothing."""
    first = apply_standing((), Standing.stuck("NameTaken", "choose another"), generation=1, now=EARLY)
    assert apply_standing(first, Standing.stuck("NameTaken", "choose another"), generation=1, now=LATE) == first


def test_only_a_change_of_status_moves_the_transition_time() -> None:
    first = apply_standing((), Standing.stuck("NameTaken", "one"), generation=1, now=EARLY)
    reworded = apply_standing(first, Standing.stuck("Conflict", "two"), generation=1, now=LATE)
    assert find_condition({"conditions": reworded}, "Stalled")["lastTransitionTime"] == EARLY
    healed = apply_standing(reworded, Standing.healthy(), generation=1, now=LATE)
    assert find_condition({"conditions": healed}, "Stalled")["lastTransitionTime"] == LATE


def test_other_conditions_are_kept_and_can_be_taken_away() -> None:
    paused = set_condition((), "Paused", True, "SpecPaused", "", generation=1, now=EARLY)
    both = apply_standing(paused, Standing.healthy(), generation=1, now=EARLY)
    assert holds({"conditions": both}, "Paused")
    without = set_condition(both, "Paused", None, "SpecPaused", "", generation=1, now=LATE)
    assert not find_condition({"conditions": without}, "Paused")
    assert holds({"conditions": without}, "Ready")


def test_messages_are_bounded_and_printable() -> None:
    """R3: what a broker says may be long and hold anything."""
    message = clean("bad\x00news\n\x1b[31m" + "x" * 5000)
    assert len(message) == MESSAGE_LIMIT
    assert message.isprintable()
    assert message.startswith("bad news")
