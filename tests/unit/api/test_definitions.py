"""Names, columns and texts of the custom resource definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from scalable_topics_operator.api.common import CustomResource
from scalable_topics_operator.api.crd import KINDS, crd, object_schema
from scalable_topics_operator.cluster import resources
from scalable_topics_operator.cluster.kube_client import Resource

kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def _nodes(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from _nodes(inner, f"{path}.{name}")
    for key, step in (("items", "[]"), ("additionalProperties", ".*")):
        if key in schema:
            yield from _nodes(schema[key], path + step)


def _at(schema: Mapping[str, Any], json_path: str) -> Mapping[str, Any]:
    """The schema a JSON path leads to; a filter such as `[?(@.type=="Ready")]` leads to the entries of a list."""
    for step in re.findall(r"\.[A-Za-z]+|\[\?[^]]*\]", json_path):
        schema = schema["items"] if step.startswith("[") else schema["properties"][step[1:]]
    return schema


def test_names_are_those_the_rules_give() -> None:
    """R31."""
    assert [(kind.__name__, kind.definition.plural, kind.definition.short_name) for kind in KINDS] == [
        ("ScalableTopicConnection", "scalabletopicconnections", "stconn"),
        ("ScalableTopic", "scalabletopics", "stopic"),
        ("SegmentOperation", "segmentoperations", "segop"),
        ("SegmentAutoScalePolicy", "segmentautoscalepolicies", "stpolicy"),
        ("ScalableTopicSubscription", "scalabletopicsubscriptions", "stsub"),
    ]


@kinds
def test_every_kind_is_namespaced_and_in_the_category(kind: type[CustomResource]) -> None:
    """R3, R31."""
    spec = crd(kind)["spec"]
    assert (spec["group"], spec["scope"], spec["names"]["categories"]) == (
        "scalabletopics.io",
        "Namespaced",
        ["scalabletopics"],
    )
    assert [(version["name"], version["served"], version["storage"]) for version in spec["versions"]] == [
        ("v1alpha1", True, True)
    ]
    assert spec["versions"][0]["subresources"]["status"] == {}


def test_the_client_and_the_definitions_agree_on_names() -> None:
    used = [value for value in vars(resources).values() if isinstance(value, Resource)]
    ours = {resource.kind: resource.plural for resource in used if resource.group == "scalabletopics.io"}
    assert ours
    assert ours.items() <= {kind.__name__: kind.definition.plural for kind in KINDS}.items()


@kinds
def test_paths_of_columns_subresources_and_selectors_lead_to_fields(kind: type[CustomResource]) -> None:
    schema = object_schema(kind)
    for column in kind.definition.columns:
        if column.path == ".metadata.creationTimestamp":
            assert column.type == "date"
            continue
        assert _at(schema, column.path)["type"] == column.type, column.name
    for path in kind.definition.selectable_fields:
        assert _at(schema, path)["type"] == "string"
    if kind.definition.scale:
        assert _at(schema, kind.definition.scale.spec_path)["type"] == "integer"
        assert _at(schema, kind.definition.scale.status_path)["type"] == "integer"
        assert _at(schema, kind.definition.scale.selector_path)["type"] == "string"


@kinds
def test_last_column_is_age_and_ready_or_phase_is_shown(kind: type[CustomResource]) -> None:
    names = [column.name for column in kind.definition.columns if column.priority == 0]
    assert names[-1] == "Age"
    assert {"Ready", "Phase"} & set(names)


@kinds
def test_every_rule_has_words_of_its_own(kind: type[CustomResource]) -> None:
    for path, node in _nodes(object_schema(kind)):
        messages = [entry["message"] for entry in node.get("x-kubernetes-validations", ())]
        assert len(set(messages)) == len(messages), path
        for message in messages:
            assert re.fullmatch(r"[A-Za-z0-9][^\n]*[^.\s]( _)?", message), (path, message)
            assert not re.search(r"\b(has|oldSelf)\b|self\.", message), (path, message)


@kinds
def test_every_field_is_described_for_users(kind: type[CustomResource]) -> None:
    for path, node in _nodes(object_schema(kind)):
        if path and not path.endswith(("[]", ".*", ".metadata")):
            assert node.get("description", "").endswith("."), path
        assert not re.search(r"\(R\d+|hazard|DESIGN", node.get("description", "")), path


@kinds
def test_everything_users_write_is_bounded(kind: type[CustomResource]) -> None:
    """Without bounds the API server reckons CEL rules too dear, and an object may grow past what etcd takes."""
    for path, node in _nodes(object_schema(kind)["properties"]["spec"], "spec"):
        if node.get("type") == "string" or node.get("x-kubernetes-int-or-string"):
            assert "maxLength" in node or "enum" in node, path
        if node.get("type") == "array":
            assert "maxItems" in node or "enum" in node["items"], path
        if "additionalProperties" in node:
            assert "maxProperties" in node, path


@kinds
def test_status_has_no_defaults_and_conditions_by_type(kind: type[CustomResource]) -> None:
    status = object_schema(kind)["properties"]["status"]
    assert [path for path, node in _nodes(status) if "default" in node] == []
    conditions = status["properties"]["conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert status["properties"]["observedGeneration"]["type"] == "integer"
    assert "required" not in status


def test_the_layout_is_one_value_that_keeps_unknown_fields() -> None:
    """R29: written atomically; with a granular list a write costs four times as much."""
    layout = _at(object_schema(KINDS[1]), ".status.layout")
    segments = layout["properties"]["segments"]
    assert layout["x-kubernetes-map-type"] == "atomic"
    assert segments["x-kubernetes-list-type"] == "atomic"
    assert layout["x-kubernetes-preserve-unknown-fields"] is True
    assert segments["items"]["x-kubernetes-preserve-unknown-fields"] is True
