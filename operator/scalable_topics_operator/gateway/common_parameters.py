"""Parameters that several routes have, and the beginnings of their paths. Pure."""

from __future__ import annotations

from scalable_topics_operator.api.common import MOST_WHOLE
from scalable_topics_operator.gateway.parameters import PATH, QUERY, switch, text, whole

FLEET_PATH = "/admin/v2/scalable"
NAMESPACE_PATH = f"{FLEET_PATH}/{{tenant}}/{{namespace}}"
TOPIC_PATH = f"{NAMESPACE_PATH}/{{topic}}"
SUBSCRIPTION_PATH = f"{TOPIC_PATH}/subscriptions/{{subscription}}"
SEGMENT_PATH = "/admin/v2/segments/{tenant}/{namespace}/{topic}/{descriptor}"

TENANT = text("tenant", "Pulsar tenant")
NAMESPACE = text("namespace", "Pulsar namespace, without the tenant")
TOPIC = text("topic", "name of the topic within the namespace, percent-encoded", longest=1024)
SUBSCRIPTION = text("subscription", "name of the subscription, percent-encoded")
DESCRIPTOR = text(
    "descriptor",
    "segment as `hhhh-hhhh-id`: its range in hexadecimal and its id",
    pattern=r"[0-9a-f]{4}-[0-9a-f]{4}-(0|[1-9][0-9]{0,15})",
)
OPERATION = text("operation", "name of the SegmentOperation, in the Kubernetes namespace of the topic", longest=253)
SEGMENT_ID = whole("segmentId", "id of the segment", 0, MOST_WHOLE, place=PATH)
CONNECTION = text(
    "connection",
    "`namespace/name` of the ScalableTopicConnection, where several clusters have a topic of this name",
    place=QUERY,
    longest=317,
    pattern=r"[-a-z0-9.]+/[-a-z0-9.]+",
)
FORCE = switch("force", "go on although clients are attached")
DRY_RUN = switch("dryRun", "change nothing, and answer 200 with what would be done")
TTL_SECONDS = whole(
    "ttlSecondsAfterFinished",
    "seconds after which the finished SegmentOperation is deleted; kept if left out",
    0,
    31536000,
)

IN_NAMESPACE = (TENANT, NAMESPACE)
OF_TOPIC = (TENANT, NAMESPACE, TOPIC, CONNECTION)
OF_SUBSCRIPTION = (TENANT, NAMESPACE, TOPIC, SUBSCRIPTION, CONNECTION)
OF_SEGMENT = (TENANT, NAMESPACE, TOPIC, DESCRIPTOR, CONNECTION)
