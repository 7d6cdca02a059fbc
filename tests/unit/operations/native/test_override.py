"""Policies as the object that brokers store (pip-483)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.autoscale.policy import KNOBS, Level, Unit, resolve
from scalable_topics_operator.operations.native.override import (
    FIELDS,
    OFF,
    is_same,
    not_applied,
    not_in_force,
    override_of,
    unknown_to_brokers,
)

_SAID: dict[str, Any] = {"enabled": True, "maxSegments": 8, "split.msgRateIn": 20_000.0, "merge.window": 90.0}


def test_only_what_some_policy_says_is_stored() -> None:
    assert override_of(resolve([])) is None
    assert override_of(resolve([Level("a policy", _SAID)])) == {
        "enabled": True,
        "maxSegments": 8,
        "splitMsgRateInThreshold": 20_000,
        "mergeWindowSeconds": 90,
    }


def test_amounts_that_brokers_keep_whole_never_become_nothing() -> None:
    said = {"split.cooldown": 0.4, "split.bytesRateIn": 10.5, "split.msgRateIn": 0.5}
    assert override_of(resolve([Level("a policy", said)])) == {
        "splitCooldownSeconds": 1,
        "splitBytesRateInThreshold": 11,
        "splitMsgRateInThreshold": 0.5,
    }


def test_every_knob_is_stored_or_told_to_be_unknown() -> None:
    """R37: a knob that is silently left out would be believed in."""
    values = {Unit.SWITCH: True, Unit.COUNT: 5}
    everything = resolve([Level("a policy", {entry.path: values.get(entry.unit, 7.0) for entry in KNOBS})])
    stored, unknown = override_of(everything), unknown_to_brokers(everything)
    assert stored is not None
    assert len(stored) + len(unknown) == len(KNOBS)
    assert set(unknown) == {
        "depthRecovery",
        "split.maxFanout",
        "rebucket.maxPerSegment",
        "rebucket.downWindow",
        "rebucket.budget",
        "rebucket.drainFanOut",
    }
    assert {path for path in FIELDS if path not in unknown} == set(FIELDS)


def test_what_nobody_goes_by_is_told_whoever_decides() -> None:
    policy = resolve([Level("a policy", {"maxSegments": 8, "rebucket.budget": 2, "rebucket.drainFanOut": False})])
    engine, readers = not_applied(policy, brokers_decide=True)
    assert "know no rebucket.budget of a topic's own; autoScale.engine: Operator goes by them" in engine
    assert "know no rebucket.drainFanOut" in readers
    assert not_applied(policy, brokers_decide=False) == (readers,)
    assert not_applied(resolve([]), brokers_decide=True) == ()


@given(st.dictionaries(st.sampled_from(sorted(FIELDS.values())), st.integers(0, 10**9)))
def test_what_brokers_give_back_is_what_was_stored(override: dict[str, Any]) -> None:
    as_told = {key: float(value) for key, value in override.items()}
    assert is_same(as_told, override)
    assert is_same(None, None)
    assert is_same({}, None)
    assert is_same(None, override) == (not override)
    assert not is_same({**as_told, "enabled": False}, {**override, "enabled": True})


def test_a_policy_that_is_not_in_force_is_told() -> None:
    stored = {"maxSegments": 4}
    resolved = {"enabled": True, "maxSegments": 4, "minSegments": 1}
    assert not_in_force(resolved, stored) == ""
    assert not_in_force(None, None) == ""
    assert not_in_force(None, OFF) == ""
    assert "makes no sense together" in not_in_force({**resolved, "enabled": False}, stored)
    assert "maxSegments" in not_in_force({**resolved, "maxSegments": 64}, stored)
    assert "no policy in force" in not_in_force(None, stored)
