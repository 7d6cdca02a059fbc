"""The page of the operator's settings: every flag, and where the brokers' own settings are found here (R37)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scalable_topics_operator.api.connection import Load
from scalable_topics_operator.autoscale.load import MATERIAL_CHANGE
from scalable_topics_operator.autoscale.policy import DEFAULT, KNOBS, Unit, exact, resolve
from scalable_topics_operator.settings import FLAGS

SETTINGS_PAGE = "operator-settings.md"

_INTRODUCTION = """\
# Settings of the operator

Every flag may also be given as an environment variable; the flag wins. This page is generated from the program;
`scalable-topics-operator --help` shows the same.
"""
_KNOBS_INTRODUCTION = """\
## Knobs of automatic changes

Brokers that have scalable topics of their own (pip-483, pip-486) keep these in `broker.conf`; in some releases names of
durations end in `Seconds` besides. Here they are fields of a [SegmentAutoScalePolicy](SegmentAutoScalePolicy.md): of
scope `Cluster` for all topics of a connection, of a narrower scope for some of them, or of `spec.autoScale` for one.
What that means is in [policies](../policies.md).
"""
_OTHERS_INTRODUCTION = """\
## Other settings of brokers
"""

_LOAD_SECONDS = Load.model_fields["interval_seconds"].default
# Brokers' settings that are neither a knob of a policy nor a flag.
_ELSEWHERE = (
    (
        "scalableTopicLoadReportInterval",
        "`spec.load.intervalSeconds` of a ScalableTopicConnection",
        f"{Load().interval_seconds} seconds",
    ),
    ("scalableTopicLoadReportRateChangeThreshold", "cannot be set", f"{MATERIAL_CHANGE:.0%}"),
    ("scalableTopicEnabled", "cannot be set: a topic is scalable if there is a ScalableTopic for it", ""),
)


def settings_page() -> str:
    """The page as Markdown; the same on every run."""
    flags = _table(
        ("flag", "environment variable", "default", "meaning", "brokers' setting"),
        (
            (
                f"`--{flag.name}`",
                f"`{flag.variable}`",
                f"`{flag.default}`" if flag.default else "",
                flag.meaning,
                f"`{flag.broker}`" if flag.broker else "",
            )
            for flag in FLAGS
        ),
    )
    defaults = resolve(()).knobs
    knobs = _table(
        ("brokers' setting", "field", "default"),
        (
            (
                f"`{entry.broker}`" if entry.broker else "none",
                f"`spec.{entry.path}`",
                _amount(exact(defaults[entry.path]), entry.unit),
            )
            for entry in KNOBS
        ),
    )
    others = _table(
        ("brokers' setting", "here", DEFAULT),
        (
            *((f"`{flag.broker}`", f"`--{flag.name}`", f"`{flag.default}`") for flag in FLAGS if flag.broker),
            *((f"`{broker}`", here, default) for broker, here, default in _ELSEWHERE),
        ),
    )
    return "\n".join((_INTRODUCTION, flags, _KNOBS_INTRODUCTION, knobs, _OTHERS_INTRODUCTION, others))


def _amount(value: bool | float, unit: Unit) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"{value:,}" if unit is Unit.COUNT else f"{value:,} {unit}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(heads), "|".join(["---"] * len(heads)), *(" | ".join(row) for row in rows)]
    return "".join(f"|{line}|\n" if line.startswith("---") else f"| {line} |\n" for line in lines)
