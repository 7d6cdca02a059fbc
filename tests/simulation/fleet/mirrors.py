"""ScalableTopics of the model API server as the auditor and the checks of the end see them."""

from __future__ import annotations

from dataclasses import replace

from scalable_topics.layout import DEFAULT_BUCKET_BUDGET
from scalable_topics_operator.api.scalable_topic import ScalableTopic
from scalable_topics_operator.api.segment_operation import SegmentOperationSpec
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, SUBSCRIPTIONS
from scalable_topics_operator.controllers.conditions import find_condition
from scalable_topics_operator.controllers.intents import operation_request, topic_intent
from scalable_topics_operator.controllers.operation_queue import topic_of_operation
from scalable_topics_operator.operations.context import DeclaredSubscription, TopicIntent
from tests.simulation.fleet.api_server import Body, ModelApiServer
from tests.simulation.model_store import SegmentOperation, TopicObject
from tests.simulation.world import HOME, TOPIC


def make_mirror(body: Body) -> TopicObject:
    """The mirror of an object that was just made."""
    mirror = TopicObject(body["metadata"]["uid"], TOPIC, HOME, TopicIntent(), version=0)
    update_mirror(mirror, body, spec_changed=True)
    return mirror


def update_mirror(mirror: TopicObject, body: Body, *, spec_changed: bool) -> None:
    """Take in what an object has become."""
    status = body.get("status") or {}
    if spec_changed:
        spec = ScalableTopic.model_validate(body).spec
        mirror.intent = topic_intent(spec, {}, bucket_budget=spec.bucket_budget or DEFAULT_BUCKET_BUDGET)
        mirror.desired = spec.segments.desired
    mirror.retain = body["spec"].get("deletionPolicy", "Retain") == "Retain"
    mirror.deleting = bool(body["metadata"].get("deletionTimestamp"))
    if status != mirror.status:
        mirror.status = status
        mirror.version += 1
    ready = find_condition(status, "Ready")
    is_lost = ready.get("reason") == "CursorLost"
    mirror.standing = "" if ready.get("status") != "False" or is_lost else f"{ready['reason']}: {ready['message']}"
    mirror.reports = tuple((one["reason"], one["message"]) for one in status.get("reports", ()))


def show_others(mirror: TopicObject, server: ModelApiServer) -> None:
    """Fill in what other objects ask of a topic."""
    mirror.operations = [
        SegmentOperation(body["metadata"]["name"], operation_request(SegmentOperationSpec.model_validate(body["spec"])))
        for body in server.all(SEGMENT_OPERATIONS.plural)
        if topic_of_operation(body) is not None
    ]
    declared = {
        body["spec"]["subscription"]: DeclaredSubscription(by_object=True)
        for body in server.all(SUBSCRIPTIONS.plural)
        if not body["metadata"].get("deletionTimestamp")
    }
    mirror.intent = replace(mirror.intent, subscriptions={**declared, **mirror.intent.subscriptions})
