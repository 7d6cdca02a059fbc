"""All sections, in the order of the page."""

from types import MappingProxyType

from bench import (
    bucketing,
    catching_up,
    deciding,
    failing_over,
    function_calls,
    kernel,
    operation_calls,
    producing,
    rebalancing,
    resting,
    scale,
    segment_load,
    stalls,
    topics,
    watching,
)
from bench.section import Section

SECTIONS: tuple[Section, ...] = (
    topics.SECTION,
    scale.SECTION,
    stalls.SECTION,
    failing_over.SECTION,
    producing.SECTION,
    bucketing.SECTION,
    catching_up.SECTION,
    resting.SECTION,
    watching.SECTION,
    segment_load.SECTION,
    operation_calls.SECTION,
    function_calls.SECTION,
    deciding.SECTION,
    kernel.SECTION,
    rebalancing.SECTION,
)
BY_KEY = MappingProxyType({one.key: one for one in SECTIONS})
