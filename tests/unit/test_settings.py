"""Flags, their environment variables, and what bad ones are answered with (R37)."""

from __future__ import annotations

import pytest

from scalable_topics_operator.autoscale.policy import KNOBS, Level
from scalable_topics_operator.settings import FLAGS, OperatorSettings, parse_settings
from scalable_topics_operator.settings_reference import settings_page


def test_without_flags_the_settings_are_the_defaults() -> None:
    assert parse_settings([], {}) == OperatorSettings()
    assert OperatorSettings().policy_defaults is None


def test_a_flag_wins_over_its_environment_variable() -> None:
    environment = {"SCALABLE_TOPICS_AUTO_SCALE_INTERVAL_SECONDS": "30", "SCALABLE_TOPICS_WORKERS": "8"}
    settings = parse_settings(["--workers=9"], environment)
    assert (settings.auto_scale_interval_seconds, settings.workers) == (30.0, 9)


def test_switched_off_it_is_a_knob_below_all_policies() -> None:
    settings = parse_settings(["--auto-scale-enabled=False"], {})
    assert not settings.auto_scale_enabled
    assert settings.policy_defaults == Level("--auto-scale-enabled", {"enabled": False})


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--auto-scale-enabled=maybe", "maybe is neither true nor false"),
        ("--auto-scale-interval-seconds=4.9", "4.9 is not a number of seconds, 5 or more"),
        ("--auto-scale-interval-seconds=nan", "nan is not a number of seconds, 5 or more"),
        ("--auto-scale-interval-seconds=inf", "inf is not a number of seconds, 5 or more"),
        ("--shards=0", "0 is not between 1 and 512"),
    ],
)
def test_a_bad_flag_ends_the_program_with_words(flag: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_settings([flag], {})
    assert words in capsys.readouterr().err


def test_the_page_has_every_flag_and_every_knob() -> None:
    page = settings_page()
    for flag in FLAGS:
        assert f"| `--{flag.name}` | `{flag.variable}` |" in page
    for entry in KNOBS:
        assert f"| `spec.{entry.path}` |" in page
        assert entry.broker in page
    assert "| `scalableTopicSplitBytesRateInThreshold` | `spec.split.bytesRateIn` | 50,000,000 bytes/s |" in page
    assert "| `scalableTopicAutoScaleInterval` | `--auto-scale-interval-seconds` | `60` |" in page
