"""All sections, in the order of the page."""

from types import MappingProxyType

from bench import deciding, kernel, rebalancing
from bench.section import Section

SECTIONS: tuple[Section, ...] = (
    deciding.SECTION,
    kernel.SECTION,
    rebalancing.SECTION,
)
BY_KEY = MappingProxyType({one.key: one for one in SECTIONS})
