"""The admin client: scalable topics managed through the gateway of the operator (pip-468, 475, 483), for asyncio.

`scalable_topics.admin.sync` has the same without asyncio. Needs `pip install scalable-topics[client]`.
"""

from scalable_topics.admin.client import AdminClient
from scalable_topics.admin.errors import AdminError, ConflictError, NotAllowedError, NotFoundError, UnavailableError
from scalable_topics.admin.outcome import (
    Awaited,
    OperationName,
    Outcome,
    OutcomeState,
    Plan,
    SegmentOperation,
)
from scalable_topics.admin.policy import AutoScalePolicy, EffectivePolicy, Knob
from scalable_topics.admin.values import (
    AssignedConsumer,
    AssignedSegment,
    Assignment,
    AssignmentVersion,
    Explanation,
    Finding,
    InitialPosition,
    Rates,
    SegmentCursor,
    SegmentStats,
    Subscription,
    SubscriptionType,
    TopicRecord,
    TopicStats,
)
from scalable_topics.sdk.gateway_options import GatewayOptions

__all__ = [
    "AdminClient",
    "AdminError",
    "AssignedConsumer",
    "AssignedSegment",
    "Assignment",
    "AssignmentVersion",
    "AutoScalePolicy",
    "Awaited",
    "ConflictError",
    "EffectivePolicy",
    "Explanation",
    "Finding",
    "GatewayOptions",
    "InitialPosition",
    "Knob",
    "NotAllowedError",
    "NotFoundError",
    "OperationName",
    "Outcome",
    "OutcomeState",
    "Plan",
    "Rates",
    "SegmentCursor",
    "SegmentOperation",
    "SegmentStats",
    "Subscription",
    "SubscriptionType",
    "TopicRecord",
    "TopicStats",
    "UnavailableError",
]
