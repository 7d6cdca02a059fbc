"""Policies are laid over each other knob by knob, and what comes out is told with its origin (pip-483, R37)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.api.auto_scale_policy import AutoScaleKnobs
from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.policy import (
    DEFAULT,
    KNOBS,
    Knob,
    Level,
    Unit,
    drains_fanned_out,
    knob_list,
    knob_text,
    policy_json,
    resolve,
)

PATHS = [entry.path for entry in KNOBS]
UNITS = {entry.path: entry.unit for entry in KNOBS}

_numbers = st.floats(0.0, 1e9) | st.integers(0, 1000)


def _value(path: str) -> st.SearchStrategy[Knob]:
    return st.booleans() if UNITS[path] is Unit.SWITCH else _numbers


knob_sets = st.fixed_dictionaries({}, optional={path: _value(path) for path in PATHS})
wild_sets = st.dictionaries(
    st.sampled_from([*PATHS, "split", "split.msgRate", ""]),
    st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=True, allow_infinity=True),
)


def levels_of(sets: Sequence[Mapping[str, Knob]]) -> list[Level]:
    return [Level(f"level {number}", knobs) for number, knobs in enumerate(sets)]


@given(st.lists(knob_sets, max_size=5))
def test_the_most_specific_wins_knob_by_knob(sets: list[dict[str, Knob]]) -> None:
    effective = resolve(levels_of(sets))
    for path in PATHS:
        setters = [number for number, knobs in enumerate(sets) if path in knobs]
        if setters:
            assert effective.knobs[path] == sets[setters[-1]][path]
            assert effective.origins[path] == f"level {setters[-1]}"
        else:
            assert effective.origins[path] == DEFAULT
            assert effective.knobs[path] == resolve(()).knobs[path]


@given(st.lists(wild_sets, max_size=4))
def test_it_never_raises_and_says_what_is_wrong(sets: list[dict[str, Knob]]) -> None:
    effective = resolve(levels_of(sets))
    assert (effective.config is None) == bool(effective.problem)
    assert list(effective.knobs) == list(effective.origins) == PATHS
    if effective.problem:
        named = [path for path in PATHS if f"{path} is " in effective.problem]
        assert named
        assert all(effective.origins[path] in effective.problem for path in named)


@given(st.lists(knob_sets, max_size=4), knob_sets)
def test_enabled_false_opts_out_whatever_is_wider(sets: list[dict[str, Knob]], narrowest: dict[str, Knob]) -> None:
    effective = resolve(levels_of([*sets, {**narrowest, "enabled": False}]))
    assert effective.config is None or not effective.config.enabled


def test_without_policies_the_defaults_apply() -> None:
    effective = resolve(())
    assert effective.config == AutoScaleConfig()
    assert set(effective.origins.values()) == {DEFAULT}


def test_every_knob_reaches_the_decision_in_its_own_field() -> None:
    usual = asdict(AutoScaleConfig())
    changed: set[str] = set()
    for entry in KNOBS:
        value = resolve(()).knobs[entry.path]
        other = not value if entry.unit is Unit.SWITCH else value + (-1 if entry.path.endswith("Segment") else 1)
        config = resolve([Level("one", {entry.path: other})]).config
        assert config is not None, entry.path
        now = asdict(config)
        differing = {name for name in now if now[name] != usual[name]}
        assert differing == {entry.field.partition(".")[0]}, entry.path
        changed |= differing
    assert changed == {field.name for field in fields(AutoScaleConfig)}


def test_the_table_has_the_knobs_of_the_manifests() -> None:
    schema = AutoScaleKnobs.model_json_schema(by_alias=True)

    def paths(node: dict[str, object], prefix: str) -> set[str]:
        found: set[str] = set()
        for name, value in node["properties"].items():  # type: ignore[attr-defined]
            reference = next((one["$ref"] for one in value.get("anyOf", ()) if "$ref" in one), "")
            inner = schema["$defs"].get(reference.rsplit("/", 1)[-1], {})
            found |= paths(inner, f"{prefix}{name}.") if "properties" in inner else {f"{prefix}{name}"}
        return found

    assert paths(schema, "") == set(PATHS)
    assert len(set(PATHS)) == len({entry.field for entry in KNOBS}) == len(KNOBS)


def test_a_contradiction_names_knobs_values_and_origins() -> None:
    """Hazard A2-26008."""
    levels = [Level("policy a/wide", {"maxSegments": 10}), Level("policy a/narrow", {"minSegments": 20})]
    effective = resolve(levels)
    assert effective.config is None
    assert effective.problem == (
        "minSegments must not be greater than maxSegments: minSegments is 20 (policy a/narrow), "
        "maxSegments is 10 (policy a/wide)"
    )
    gap = resolve([Level("policy a/wide", {"split.bytesRateIn": 50.0 * 2**20, "merge.bytesRateIn": 60e6})])
    assert gap.problem == (
        "merge.bytesRateIn must be lower than split.bytesRateIn, or merged segments would split again: "
        "merge.bytesRateIn is 60000000 (policy a/wide), split.bytesRateIn is 52428800 (policy a/wide)"
    )


def test_a_count_that_is_not_whole_is_refused() -> None:
    assert resolve([Level("x", {"maxSegments": 2.5})]).problem == (
        "maxSegments must be a whole number: maxSegments is 2.5 (x)"
    )
    config = resolve([Level("x", {"maxSegments": 3.0})]).config
    assert config == replace(AutoScaleConfig(), max_segments=3)


@pytest.mark.parametrize("value", [math.nan, -1.0])
@pytest.mark.parametrize("path", [path for path in PATHS if UNITS[path] is not Unit.SWITCH])
def test_every_knob_is_checked(path: str, value: float) -> None:
    """Hazard A2-26434b: one that comes later has no rule of its own unless somebody writes it."""
    effective = resolve([Level("acme/wrong", {path: value})])
    assert effective.config is None
    assert path in effective.problem


def test_json_has_exact_values_with_units_and_origins() -> None:
    knobs: dict[str, Knob] = {"split.bytesRateIn": 52428800.0, "split.cooldown": 0.25, "enabled": False}
    effective = resolve([Level("policy", knobs)])
    found = {entry["knob"]: entry for entry in policy_json(effective)["knobs"]}
    assert [entry["knob"] for entry in knob_list(effective)] == PATHS
    assert found["enabled"] == {"knob": "enabled", "value": False, "origin": "policy"}
    assert found["maxSegments"] == {"knob": "maxSegments", "value": 64, "origin": DEFAULT}
    assert found["split.cooldown"] == {
        "knob": "split.cooldown",
        "value": 0.25,
        "unit": "seconds",
        "origin": "policy",
    }
    assert json.dumps(found["split.bytesRateIn"]["value"]) == "52428800"
    assert found["split.bytesRateIn"]["unit"] == "bytes/s"
    assert [knob_text(value) for value in (True, 10, 10.0, 0.5)] == ["true", "10", "10", "0.5"]
    assert "problem" not in policy_json(effective)
    contradiction = resolve([Level("x", {"minSegments": 100})])
    assert policy_json(contradiction)["problem"] == contradiction.problem


def test_a_merge_threshold_of_nothing_stays_nothing() -> None:
    effective = resolve([Level("x", {f"merge.{name}": 0.0 for name in ("msgRateIn", "msgRateOut")})])
    assert effective.config is not None
    assert [rate for _, rate in effective.config.merge.by_metric()] == [0.0, 5e6, 0.0, 25e6]


def test_whether_drains_fan_out_is_known_even_where_knobs_contradict_each_other() -> None:
    assert drains_fanned_out(resolve(()))
    off = Level("x", {"rebucket.drainFanOut": False})
    assert not drains_fanned_out(resolve([off]))
    contradiction = resolve([off, Level("y", {"minSegments": 100})])
    assert contradiction.config is None
    assert not drains_fanned_out(contradiction)
