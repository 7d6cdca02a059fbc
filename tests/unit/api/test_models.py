"""Models read manifests, keep to the schema's bounds, and write what they read."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import ValidationError

from scalable_topics_operator.api.common import CustomResource
from scalable_topics_operator.api.connection import ScalableTopicConnection
from scalable_topics_operator.api.crd import KINDS, object_schema
from scalable_topics_operator.api.scalable_topic import ScalableTopic
from scalable_topics_operator.api.segment_operation import SegmentOperation
from tests.unit.api.manifests import MINIMAL_SPECS, SPECS, STATUSES, Manifest, manifest

EXAMPLES = [
    pytest.param(kind, spec, id=f"{kind.__name__}-{index}")
    for kind in KINDS
    for index, spec in enumerate(SPECS[kind.__name__])
]


@pytest.mark.parametrize(("kind", "spec"), EXAMPLES)
def test_what_is_read_is_what_is_written(kind: type[CustomResource], spec: Manifest) -> None:
    body = manifest(kind.__name__, spec, STATUSES[kind.__name__])
    written = kind.model_validate(body).to_json_object()
    assert _only(written["spec"], body["spec"]) == body["spec"]
    assert _only(written["status"], body["status"]) == body["status"]
    assert (written["apiVersion"], written["kind"]) == (body["apiVersion"], body["kind"])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_objects_without_a_status_are_read(kind: type[CustomResource]) -> None:
    read: Any = kind.model_validate(manifest(kind.__name__, MINIMAL_SPECS[kind.__name__]))
    assert read.status.conditions == ()
    assert read.status.observed_generation is None


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_unknown_fields_are_left_aside(kind: type[CustomResource]) -> None:
    """A newer release's fields must not keep an older one from reading the rest."""
    body = manifest(kind.__name__, MINIMAL_SPECS[kind.__name__])
    expected = kind.model_validate(body)
    newer = copy.deepcopy(body)
    newer["spec"]["later"] = {"a": 1}
    newer["later"] = 1
    assert kind.model_validate(newer) == expected


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_models_cannot_be_changed(kind: type[CustomResource]) -> None:
    read: Any = kind.model_validate(manifest(kind.__name__, MINIMAL_SPECS[kind.__name__]))
    with pytest.raises(ValidationError):
        read.spec = None


def test_fields_have_the_names_of_the_wire_and_of_python() -> None:
    spec = ScalableTopic.model_validate(manifest("ScalableTopic", SPECS["ScalableTopic"][0])).spec
    assert spec.policies is not None
    assert spec.policies.per_segment is not None
    assert spec.policies.per_segment.message_ttl_seconds == 86400
    assert spec.connection_ref.namespace == "pulsar"
    assert spec.auto_scale is not None
    assert spec.auto_scale.rebucket is not None
    assert spec.auto_scale.rebucket.split_vs_rebucket_min_msg_rate_in == "1k"


def test_layout_is_kept_as_it_stands() -> None:
    """R29, hazard A1-26008: the kernel reads the record, unknown fields and all."""
    status = copy.deepcopy(STATUSES["ScalableTopic"])
    status["layout"]["later"] = [1]
    read = ScalableTopic.model_validate(manifest("ScalableTopic", SPECS["ScalableTopic"][0], status))
    assert read.status.layout == status["layout"]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (ScalableTopic, {"topic": "orders", "connectionRef": {"name": "main"}, "segments": {"initial": 0}}),
        (ScalableTopic, {"topic": "orders", "connectionRef": {"name": "main"}, "bucketBudget": 1025}),
        (ScalableTopic, {"topic": "orders", "connectionRef": {"name": "Main"}}),
        (ScalableTopicConnection, {"adminUrl": "http://host", "backend": "Other"}),
        (ScalableTopicConnection, {"adminUrl": "http://host", "limits": {"maxRetries": 11}}),
        (SegmentOperation, {"scalableTopic": "orders", "type": "Split", "split": {"segment": 0, "at": 65536}}),
    ],
)
def test_bounds_hold_in_the_models_too(kind: type[CustomResource], spec: Manifest) -> None:
    with pytest.raises(ValidationError):
        kind.model_validate(manifest(kind.__name__, spec))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_defaults_are_those_of_the_schema(kind: type[CustomResource]) -> None:
    """Hazard C6, C28: a field that is left out reads the same to the API server and to the operator."""
    spec = MINIMAL_SPECS[kind.__name__]
    read: Any = kind.model_validate(manifest(kind.__name__, spec))
    filled = _filled(spec, object_schema(kind)["properties"]["spec"])
    assert filled == _without_empty(read.spec.to_json_object(), filled)


def _filled(value: Any, schema: dict[str, Any]) -> Any:
    """A value as the API server completes it from the schema's defaults."""
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    defaults = {key: inner["default"] for key, inner in properties.items() if "default" in inner}
    return {key: _filled(item, properties.get(key, {})) for key, item in {**defaults, **value}.items()}


def _without_empty(written: Any, filled: Any) -> Any:
    """What was written, without empty lists and maps that the other side left out."""
    if not isinstance(written, dict):
        return written
    inner = {key: _without_empty(item, filled.get(key, {})) for key, item in written.items()}
    return {key: item for key, item in inner.items() if key in filled or item not in ({}, [])}


def _only(written: Any, asked: Any) -> Any:
    """What was written, without the defaults that were not asked for."""
    if isinstance(asked, dict):
        return {key: _only(written[key], value) for key, value in asked.items() if key in written}
    if isinstance(asked, list):
        assert len(written) == len(asked)
        return [_only(*pair) for pair in zip(written, asked, strict=True)]
    return written
