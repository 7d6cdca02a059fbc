"""pip-483: overrides as brokers' REST has them, and the same in a manifest."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.autoscale.policy import KNOBS, Unit
from scalable_topics_operator.autoscale.written_knobs import read_written
from scalable_topics_operator.gateway.policy_fields import (
    MOST,
    POLICY_FIELDS,
    InvalidField,
    knobs_of_override,
    manifest_of_knobs,
    override_of_knobs,
)

# As brokers of Pulsar 5 have them.
BROKERS = {
    "enabled",
    "maxSegments",
    "minSegments",
    "maxDagDepth",
    "splitCooldownSeconds",
    "rebucketCooldownSeconds",
    "splitVsRebucketMinMsgRateInThreshold",
    "mergeCooldownSeconds",
    "mergeWindowSeconds",
    *(f"{what}{metric}Threshold" for what in ("split", "merge") for metric in ("MsgRateIn", "BytesRateIn")),
    *(f"{what}{metric}Threshold" for what in ("split", "merge") for metric in ("MsgRateOut", "BytesRateOut")),
}


def test_brokers_fields_are_all_there_and_every_knob_has_one() -> None:
    names = {field.name for field in POLICY_FIELDS}
    assert names >= BROKERS
    assert names - BROKERS == {
        "depthRecoverySeconds",
        "splitMaxFanout",
        "entryBucketMaxPerSegment",
        "rebucketDownWindowSeconds",
        "entryBucketBudget",
        "rebucketDrainFanOut",
    }
    assert [field.path for field in POLICY_FIELDS] == [entry.path for entry in KNOBS]


def test_an_override_becomes_the_spec_of_a_policy_and_comes_back() -> None:
    override = {"enabled": True, "maxSegments": 8, "splitMsgRateInThreshold": 5000.0, "mergeWindowSeconds": 90}
    knobs = knobs_of_override({**override, "minSegments": None})
    assert manifest_of_knobs(knobs) == {
        "enabled": True,
        "maxSegments": 8,
        "split": {"msgRateIn": 5000},
        "merge": {"window": 90},
    }
    assert override_of_knobs(knobs) == override


_VALUES = {
    Unit.SWITCH: st.booleans(),
    Unit.COUNT: st.integers(0, 10_000),
    Unit.SECONDS: st.floats(0, MOST),
    Unit.MESSAGES: st.floats(0, MOST),
    Unit.BYTES: st.integers(0, MOST),
}


@given(st.fixed_dictionaries({}, optional={field.name: _VALUES[field.unit] for field in POLICY_FIELDS}))
def test_what_is_written_into_a_manifest_is_read_from_it(override: dict[str, Any]) -> None:
    knobs = knobs_of_override(override)
    assert read_written(manifest_of_knobs(knobs)) == pytest.approx(knobs, rel=1e-12), "what was judged is written"
    assert override_of_knobs(knobs) == pytest.approx(override, abs=0.001)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ({"max_segments": 8}, "there is no field 'max_segments'; there are enabled, minSegments"),
        ({"enabled": 1}, "enabled is neither true nor false"),
        ({"maxSegments": True}, "maxSegments is no number"),
        ({"maxSegments": "8"}, "maxSegments is no number"),
        ({"maxSegments": 8.5}, "maxSegments is no whole number"),
        ({"splitMsgRateInThreshold": -1}, "splitMsgRateInThreshold is not between 0 and"),
        ({"splitMsgRateInThreshold": MOST * 10}, "is not between 0 and"),
        ({"splitMsgRateInThreshold": float("inf")}, "is no number"),
        ({"splitMsgRateInThreshold": float("nan")}, "is no number"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(override: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidField, match=words):
        knobs_of_override(override)
