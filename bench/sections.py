"""All sections, in the order of the page."""

from types import MappingProxyType

from bench import bucketing, deciding, kernel, producing, rebalancing, scale, segment_load, topics, watching
from bench.section import Section

SECTIONS: tuple[Section, ...] = (
    topics.SECTION,
    scale.SECTION,
    producing.SECTION,
    bucketing.SECTION,
    watching.SECTION,
    segment_load.SECTION,
    deciding.SECTION,
    kernel.SECTION,
    rebalancing.SECTION,
)
BY_KEY = MappingProxyType({one.key: one for one in SECTIONS})
