"""The layout kernel: hash ranges, segments, layouts, names, routing, entry buckets and their JSON forms.

Pure: no I/O, no clock, nothing of ours imported. Follows pip-468, 475 and 486; values are frozen, every
change answers a new one, and every refusal is a `LayoutError`.
"""

from scalable_topics.layout.change import planned_initial
from scalable_topics.layout.client_marks import CLIENT_PROPERTY, PROPERTY_PREFIX, READER_PREFIX
from scalable_topics.layout.entry_buckets import (
    DEFAULT_BUCKET_BUDGET,
    MAX_BUCKETS,
    bucket_count_for,
    bucket_of,
    bucket_owners,
    canonical_hash,
    equal_splits,
    ranges_of,
    validate_ranges,
)
from scalable_topics.layout.errors import LayoutArgumentError, LayoutError, LayoutStateError
from scalable_topics.layout.hash_range import LAST_HASH, RING_SIZE, HashRange
from scalable_topics.layout.hashing import (
    bucket_hash,
    key_hash,
    partition_of,
    route,
    route_among,
    routing_key,
    segment_hash,
)
from scalable_topics.layout.incarnation import incarnation_of, parse_incarnation
from scalable_topics.layout.names import (
    LAYOUT_SUFFIX,
    MAX_LOCAL_NAME_BYTES,
    TopicName,
    classic_segment_name,
    layout_topic_name,
    native_segment_name,
    parse_classic_segment_name,
    parse_native_segment_name,
    segment_descriptor,
    validate_scalable_name,
)
from scalable_topics.layout.parts import WHOLE, Part, buckets_of, to_buckets_json, whole_of
from scalable_topics.layout.pip468_json import from_pip468, segment_from_pip468, to_pip468
from scalable_topics.layout.record import MAX_RECORDS, RECORD_VERSION, from_record, to_record
from scalable_topics.layout.segment import (
    CreatedBy,
    PlannedSegment,
    Segment,
    SegmentChange,
    SegmentState,
    maker_of,
    merge_depth_of,
)
from scalable_topics.layout.segment_layout import SegmentLayout
from scalable_topics.layout.sticky_keys import StickyKeys, is_sticky_key, sticky_keys
from scalable_topics.layout.synthetic import (
    MAX_MIGRATED_PARTITIONS,
    legacy_topics,
    migrated_layout,
    synthetic_layout,
)

__all__ = [
    "CLIENT_PROPERTY",
    "DEFAULT_BUCKET_BUDGET",
    "LAST_HASH",
    "LAYOUT_SUFFIX",
    "MAX_BUCKETS",
    "MAX_LOCAL_NAME_BYTES",
    "MAX_MIGRATED_PARTITIONS",
    "MAX_RECORDS",
    "PROPERTY_PREFIX",
    "READER_PREFIX",
    "RECORD_VERSION",
    "RING_SIZE",
    "WHOLE",
    "CreatedBy",
    "HashRange",
    "LayoutArgumentError",
    "LayoutError",
    "LayoutStateError",
    "Part",
    "PlannedSegment",
    "Segment",
    "SegmentChange",
    "SegmentLayout",
    "SegmentState",
    "StickyKeys",
    "TopicName",
    "bucket_count_for",
    "bucket_hash",
    "bucket_of",
    "bucket_owners",
    "buckets_of",
    "canonical_hash",
    "classic_segment_name",
    "equal_splits",
    "from_pip468",
    "from_record",
    "incarnation_of",
    "is_sticky_key",
    "key_hash",
    "layout_topic_name",
    "legacy_topics",
    "maker_of",
    "merge_depth_of",
    "migrated_layout",
    "native_segment_name",
    "parse_classic_segment_name",
    "parse_incarnation",
    "parse_native_segment_name",
    "partition_of",
    "planned_initial",
    "ranges_of",
    "route",
    "route_among",
    "routing_key",
    "segment_descriptor",
    "segment_from_pip468",
    "segment_hash",
    "sticky_keys",
    "synthetic_layout",
    "to_buckets_json",
    "to_pip468",
    "to_record",
    "validate_ranges",
    "validate_scalable_name",
    "whole_of",
]
