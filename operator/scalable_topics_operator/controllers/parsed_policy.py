"""Policies as manifests say them, turned into levels of knobs and the topics they are for (R3). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from scalable_topics.layout import LayoutError, TopicName
from scalable_topics_operator.api.auto_scale_policy import AutoScaleKnobs, LabelSelector, SegmentAutoScalePolicy
from scalable_topics_operator.api.common import first_problem
from scalable_topics_operator.api.scalable_topic import TopicAutoScale
from scalable_topics_operator.autoscale.policy import BUCKET_BUDGET, Knobs, Level
from scalable_topics_operator.autoscale.written_knobs import read_written
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_of
from scalable_topics_operator.cluster.resources import CONNECTIONS, POLICIES
from scalable_topics_operator.controllers.label_selector import selects

CLUSTER, PULSAR_NAMESPACE, TOPICS_BY_LABEL, ONE_TOPIC = "Cluster", "PulsarNamespace", "Topics", "Topic"
_SCOPES = (CLUSTER, PULSAR_NAMESPACE, TOPICS_BY_LABEL, ONE_TOPIC)
IN_TOPICS_NAMESPACE = (TOPICS_BY_LABEL, ONE_TOPIC)
"""Scopes that count where the topics are; the others count where their connection is."""


class InvalidKnobs(ValueError):
    """A manifest's knobs or their target cannot be read; the message says which field and why."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A ScalableTopic as far as policies look at it.

    Args:
        namespace: its Kubernetes namespace.
        name: of the object.
        connection: the connection it names.
        pulsar_namespace: `tenant/namespace` of its topic; empty if it has no proper name.
        labels: its labels.
    """

    namespace: str
    name: str
    connection: ObjectKey
    pulsar_namespace: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class ParsedPolicy:
    """A SegmentAutoScalePolicy that can be applied. Two are the same only if they are one object.

    Args:
        key: of the object.
        created: its creationTimestamp and uid: of two with the same scope the lower one wins, as in R1.
        scope: Cluster, PulsarNamespace, Topics or Topic.
        level: its knobs, and what people call it.
        connection: the only one it is for; None for all.
        pulsar_namespace: the only one it is for, in the scope PulsarNamespace.
        selector: of the topics' labels, in the scope Topics.
        topic: name of the only one it is for, in the scope Topic.
    """

    key: ObjectKey
    created: tuple[str, str]
    scope: str
    level: Level
    connection: ObjectKey | None
    pulsar_namespace: str | None
    selector: LabelSelector | None
    topic: str | None

    @property
    def width(self) -> int:
        """Place of its scope among all: 0 is the widest."""
        return _SCOPES.index(self.scope)

    def applies_to(self, subject: Subject) -> bool:
        """Whether it is for a topic."""
        if self.connection is not None and self.connection != subject.connection:
            return False
        if self.topic is not None:
            return (self.key.namespace, self.topic) == (subject.namespace, subject.name)
        if self.selector is not None:
            return self.key.namespace == subject.namespace and selects(self.selector, subject.labels)
        return self.pulsar_namespace in (None, subject.pulsar_namespace)


def policy_name(key: ObjectKey) -> str:
    """What people call a policy, such as `SegmentAutoScalePolicy acme/orders`."""
    return f"{POLICIES.kind} {key.namespace}/{key.name}"


def inline_name(key: ObjectKey) -> str:
    """What people call the knobs in a ScalableTopic's own spec."""
    return f"ScalableTopic {key.namespace}/{key.name}"


def parse_policy(key: ObjectKey, body: Body) -> ParsedPolicy:
    """A SegmentAutoScalePolicy as its manifest says it. Raises InvalidKnobs."""
    try:
        policy = SegmentAutoScalePolicy.model_validate(body)
    except ValidationError as error:
        raise InvalidKnobs(first_problem(error)) from error
    target = policy.spec.target
    # CEL rules see to these where the API server knows them.
    if target.scope not in IN_TOPICS_NAMESPACE and target.connection_ref is None:
        raise InvalidKnobs(f"spec.target.connectionRef is needed for the scope {target.scope}")
    if target.scope == PULSAR_NAMESPACE and target.pulsar_namespace is None:
        raise InvalidKnobs(f"spec.target.pulsarNamespace is needed for the scope {target.scope}")
    if target.scope == TOPICS_BY_LABEL and target.selector is None:
        raise InvalidKnobs(f"spec.target.selector is needed for the scope {target.scope}")
    if target.scope == ONE_TOPIC and target.topic_ref is None:
        raise InvalidKnobs(f"spec.target.topicRef is needed for the scope {target.scope}")
    return ParsedPolicy(
        key=key,
        created=(policy.metadata.creation_timestamp, policy.metadata.uid),
        scope=target.scope,
        level=Level(policy_name(key), read_knobs(policy.spec, "spec")),
        connection=(
            ObjectKey(CONNECTIONS.plural, key.namespace, target.connection_ref.name) if target.connection_ref else None
        ),
        pulsar_namespace=target.pulsar_namespace if target.scope == PULSAR_NAMESPACE else None,
        selector=target.selector if target.scope == TOPICS_BY_LABEL else None,
        topic=target.topic_ref.name if target.topic_ref is not None and target.scope == ONE_TOPIC else None,
    )


def inline_level(key: ObjectKey, body: Body) -> Level | None:
    """The knobs in a ScalableTopic's own spec; None if it has none. Raises InvalidKnobs.

    `spec.bucketBudget` is one of them, which `spec.autoScale` goes before.
    """
    inline, budget = body["spec"].get("autoScale"), body["spec"].get("bucketBudget")
    if not inline and budget is None:
        return None
    try:
        knobs = TopicAutoScale.model_validate(inline or {})
    except ValidationError as error:
        raise InvalidKnobs(f"spec.autoScale.{first_problem(error)}") from error
    if budget is not None and type(budget) is not int:
        raise InvalidKnobs("spec.bucketBudget is no whole number")
    own = {} if budget is None else {BUCKET_BUDGET: budget}
    return Level(inline_name(key), {**own, **read_knobs(knobs, "spec.autoScale")})


def subject_of(body: Body) -> Subject:
    """What policies look at in a ScalableTopic."""
    metadata = body["metadata"]
    try:
        pulsar_namespace = TopicName.parse(body["spec"]["topic"]).pulsar_namespace
    except LayoutError:
        pulsar_namespace = ""
    return Subject(
        metadata["namespace"], metadata["name"], connection_of(body), pulsar_namespace, metadata.get("labels") or {}
    )


def read_knobs(knobs: AutoScaleKnobs, place: str) -> Knobs:
    """The knobs that are set, by path, in exact units. Raises InvalidKnobs, which names them below `place`."""
    try:
        return read_written(knobs.to_json_object())
    except ValueError as error:
        raise InvalidKnobs(f"{place}.{error}") from error
