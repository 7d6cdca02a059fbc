"""Routes of overrides of the auto-scale policy, of a topic and of a Pulsar namespace (pip-483). Pure."""

from __future__ import annotations

from typing import Any

from scalable_topics_operator.cluster.resources import POLICIES
from scalable_topics_operator.gateway import schemas
from scalable_topics_operator.gateway.common_parameters import CONNECTION, IN_NAMESPACE, OF_TOPIC, TOPIC_PATH
from scalable_topics_operator.gateway.parameters import Parameter
from scalable_topics_operator.gateway.route import Payload, Right, Route, Tag

_NAMESPACE_POLICY_PATH = "/admin/v2/namespaces/{tenant}/{namespace}/scalableTopicAutoScalePolicy"
_OF_NAMESPACE = (*IN_NAMESPACE, CONNECTION)
_OVERRIDE = Payload("the fields it sets, in exact units", schemas.POLICY)
_UNMAPPED = (
    "no connection maps the Pulsar namespace to a Kubernetes one, or REST writes are switched off; `manifest` is what "
    "to apply instead"
)
_GET = {204: "there is no override", 404: "there is no such topic, or no connection that maps the Pulsar namespace"}
_SET = {
    204: "it is set, in place of what was set before",
    405: _UNMAPPED,
    409: "policies that REST has not made, or the ScalableTopic's own spec, set one of the fields",
    412: "what would come out contradicts itself",
}
_DELETE = {
    204: "there is none any more",
    405: "no connection maps the Pulsar namespace to a Kubernetes one, or REST writes are switched off",
    409: "policies that REST has not made, or the ScalableTopic's own spec, set it",
}


def _routes(
    name: str, path: str, what: str, parameters: tuple[Parameter[Any], ...], kept_as: str
) -> tuple[Route, Route, Route]:
    reading, writing, removing = (Right(verb, POLICIES) for verb in ("get", "create", "delete"))
    tag, details = Tag.POLICIES, f"It is kept as a SegmentAutoScalePolicy of scope {kept_as}."
    return (
        Route(
            f"get-{name}", "GET", path, f"The override of {what}", tag, (reading,), parameters, _GET, answer=_OVERRIDE
        ),
        Route(
            f"set-{name}",
            "POST",
            path,
            f"Set the override of {what}",
            tag,
            (writing, removing),
            parameters,
            _SET,
            body=_OVERRIDE,
            details=details,
            writes=True,
        ),
        Route(
            f"delete-{name}",
            "DELETE",
            path,
            f"Remove the override of {what}",
            tag,
            (removing,),
            parameters,
            _DELETE,
            writes=True,
        ),
    )


GET_POLICY, SET_POLICY, DELETE_POLICY = _routes(
    "topic-policy", f"{TOPIC_PATH}/autoScalePolicy", "a topic", OF_TOPIC, "Topic, in the topic's namespace"
)
GET_NAMESPACE_POLICY, SET_NAMESPACE_POLICY, DELETE_NAMESPACE_POLICY = _routes(
    "namespace-policy",
    _NAMESPACE_POLICY_PATH,
    "a Pulsar namespace",
    _OF_NAMESPACE,
    "PulsarNamespace, in the connection's namespace",
)

POLICY_ROUTES = (
    GET_POLICY,
    SET_POLICY,
    DELETE_POLICY,
    GET_NAMESPACE_POLICY,
    SET_NAMESPACE_POLICY,
    DELETE_NAMESPACE_POLICY,
)
