"""Brokers of Pulsar 5 are as hostile as the others, and look at the load of segments within seconds."""

from __future__ import annotations

from pathlib import Path

from dev.broker_settings import NATIVE_SETTINGS, Profile, PulsarLine, broker, standalone

LINES = (PulsarLine.FOUR, PulsarLine.FIVE)


def test_a_standalone_of_pulsar_5_differs_by_its_own_settings_alone() -> None:
    four, five = (standalone("a", 1, 2, Path("/tokens"), Profile.ROLLOVER, line) for line in LINES)
    assert five == four | NATIVE_SETTINGS
    assert NATIVE_SETTINGS == {
        "scalableTopicLoadReportIntervalSeconds": "2",
        "scalableTopicAutoScaleIntervalSeconds": "5",
    }


def test_so_does_one_of_several_brokers() -> None:
    four, five = (broker("a", 1, 2, 3, Path("/tokens"), Profile.ORDINARY, line) for line in LINES)
    assert five == four | NATIVE_SETTINGS
