"""The kinds this operator reads and writes, as the API server names them."""

from __future__ import annotations

from scalable_topics_operator.cluster.kube_client import Resource

GROUP = "scalabletopics.io"
VERSION = "v1alpha1"
FINALIZER = f"{GROUP}/topic"
FORCE_DELETE_ANNOTATION = f"{GROUP}/force-delete"
"""Of a ScalableTopic that is deleted although clients are attached, if it says `true`."""

CONNECTIONS = Resource(GROUP, VERSION, "scalabletopicconnections", "ScalableTopicConnection")
TOPICS = Resource(GROUP, VERSION, "scalabletopics", "ScalableTopic")
SEGMENT_OPERATIONS = Resource(GROUP, VERSION, "segmentoperations", "SegmentOperation")
SUBSCRIPTIONS = Resource(GROUP, VERSION, "scalabletopicsubscriptions", "ScalableTopicSubscription")
POLICIES = Resource(GROUP, VERSION, "segmentautoscalepolicies", "SegmentAutoScalePolicy")

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
EVENTS = Resource("", "v1", "events", "Event")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace")
SECRETS = Resource("", "v1", "secrets", "Secret")

SPARK_APPLICATIONS = tuple(
    Resource(group, version, "sparkapplications", "SparkApplication")
    for group, version in (("sparkoperator.k8s.io", "v1beta2"), ("spark.apache.org", "v1"))
)
