"""Custom resource definitions of the five kinds (DESIGN §5)."""

from __future__ import annotations

from typing import Any

from scalable_topics_operator.api.auto_scale_policy import SegmentAutoScalePolicy
from scalable_topics_operator.api.common import GROUP, VERSION, Column, CustomResource
from scalable_topics_operator.api.connection import ScalableTopicConnection
from scalable_topics_operator.api.scalable_topic import ScalableTopic
from scalable_topics_operator.api.segment_operation import SegmentOperation
from scalable_topics_operator.api.structural_schema import Schema, structural_schema
from scalable_topics_operator.api.subscription import ScalableTopicSubscription

CATEGORY = "scalabletopics"

KINDS: tuple[type[CustomResource], ...] = (
    ScalableTopicConnection,
    ScalableTopic,
    SegmentOperation,
    SegmentAutoScalePolicy,
    ScalableTopicSubscription,
)

_API_VERSION_TEXT = "Version of this form of the object: group and version."
_KIND_TEXT = "Kind of the object."


def crd_name(kind: type[CustomResource]) -> str:
    """Name of the definition: plural and group."""
    return f"{kind.definition.plural}.{GROUP}"


def crd(kind: type[CustomResource]) -> dict[str, Any]:
    """The custom resource definition of a kind, as the manifest in `crds/` holds it."""
    definition = kind.definition
    subresources: dict[str, Any] = {"status": {}}
    if definition.scale:
        subresources["scale"] = {
            "specReplicasPath": definition.scale.spec_path,
            "statusReplicasPath": definition.scale.status_path,
            "labelSelectorPath": definition.scale.selector_path,
        }
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(column) for column in definition.columns],
        "subresources": subresources,
    }
    if definition.selectable_fields:
        version["selectableFields"] = [{"jsonPath": path} for path in definition.selectable_fields]
    version["schema"] = {"openAPIV3Schema": object_schema(kind)}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": crd_name(kind)},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.__name__,
                "listKind": f"{kind.__name__}List",
                "plural": definition.plural,
                "singular": kind.__name__.lower(),
                "shortNames": [definition.short_name],
                "categories": [CATEGORY],
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def object_schema(kind: type[CustomResource]) -> Schema:
    """Structural schema of a kind's whole object; its metadata is the API server's own business."""
    schema = structural_schema(kind)
    status = schema["properties"]["status"]
    # Defaults in a status would be written by the API server where the operator has said nothing.
    return {
        "description": schema["description"],
        "type": "object",
        "properties": {
            "apiVersion": {"description": _API_VERSION_TEXT, "type": "string"},
            "kind": {"description": _KIND_TEXT, "type": "string"},
            "metadata": {"type": "object"},
            "spec": schema["properties"]["spec"],
            "status": without_defaults(status),
        },
        "required": ["spec"],
    }


def without_defaults(schema: Schema) -> Schema:
    """The schema without any default."""
    result = {key: value for key, value in schema.items() if key != "default"}
    if "properties" in result:
        result["properties"] = {name: without_defaults(value) for name, value in result["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in result:
            result[key] = without_defaults(result[key])
    return result


def _column(column: Column) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.priority:
        entry["priority"] = column.priority
    return entry
