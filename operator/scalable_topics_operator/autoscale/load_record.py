"""From samples of a segment to what is recorded of its load (pip-483 significant change, R35). Pure."""

from __future__ import annotations

from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.load import Rates, SegmentLoad, is_material


def recorded(known: SegmentLoad | None, sample: Rates, config: AutoScaleConfig, now_ms: int) -> SegmentLoad:
    """The record after a sample: new rates on a material change only, hot times always.

    Args:
        known: the record before; None for a segment seen for the first time, which counts as hot until then.
        sample: rates as the broker shows them; usable ones.
        config: whose thresholds a rate may cross, which is a material change itself.
        now_ms: milliseconds since 1970.
    """
    hot = known is None or sample.reaches(config.merge)
    last_hot_at_ms = now_ms if hot or known is None else known.last_hot_at_ms
    if known is None or (known.rates != sample and _is_news(known.rates, sample, config)):
        return SegmentLoad(sample, last_hot_at_ms)
    # Of most segments of most fleets nothing changes from one sample to the next.
    return known if last_hot_at_ms == known.last_hot_at_ms else SegmentLoad(known.rates, last_hot_at_ms)


def _is_news(before: Rates, now: Rates, config: AutoScaleConfig) -> bool:
    return is_material(before, now) or _crosses(before, now, config)


def _crosses(before: Rates, now: Rates, config: AutoScaleConfig) -> bool:
    return any(
        (old > split) != (new > split) or (old >= merge) != (new >= merge)
        for old, new, split, merge in zip(
            before.values, now.values, config.split.values, config.merge.values, strict=True
        )
    )
