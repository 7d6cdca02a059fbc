"""Pydantic models become structural schemas, and what cannot be said is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from scalable_topics_operator.api.quantities import Quantity
from scalable_topics_operator.api.schema_extra import SchemaExtra, SchemaOf, list_map, rule, rules
from scalable_topics_operator.api.structural_schema import UnsupportedSchema, structural_schema

_ODD = rule("self % 2 == 1", "must be odd")
_SMALL = rule("self < 9", "must be small")
_TALL = rule("self.height > 1", "must be tall")

Odd = Annotated[int, SchemaExtra(rules(_ODD))]


class Leaf(BaseModel):
    """A leaf."""

    model_config = ConfigDict(use_attribute_docstrings=True, json_schema_extra=rules(_TALL))

    height: int = 3
    """How high
    it hangs (R16, hazard C7)."""
    colour: Literal["green", "red"] | None = None


def _property(annotation: Any, default: Any = ...) -> dict[str, Any]:
    """Schema of a field of a model that has only this field."""
    model = type("Model", (BaseModel,), {"__annotations__": {"field": annotation}, "field": Field(default=default)})
    schema: dict[str, Any] = structural_schema(model)["properties"]["field"]
    return schema


def test_references_are_inlined_and_descriptions_are_for_users() -> None:
    assert _property(Leaf) == {
        "description": "A leaf.",
        "type": "object",
        "x-kubernetes-validations": [_TALL],
        "properties": {
            "height": {"description": "How high it hangs.", "type": "integer", "default": 3},
            "colour": {"type": "string", "enum": ["green", "red"]},
        },
    }


def test_required_fields_are_sorted() -> None:
    model = type("Model", (BaseModel,), {"__annotations__": {"b": int, "a": str, "c": int}, "c": 0})
    assert structural_schema(model)["required"] == ["a", "b"]


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (int, {"type": "integer"}),
        (Literal["one"], {"type": "string", "enum": ["one"]}),
        (Annotated[str, Field(max_length=3, pattern="^a")], {"type": "string", "maxLength": 3, "pattern": "^a"}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (Mapping[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (Annotated[Mapping[str, Any], SchemaOf(Leaf)], structural_schema(Leaf)),
        (
            Annotated[tuple[str, ...], list_map("name")],
            {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
        ),
    ],
)
@pytest.mark.parametrize("optional", [False, True])
def test_types(annotation: Any, schema: dict[str, Any], optional: bool) -> None:
    assert _property(annotation | None, None) if optional else _property(annotation) == schema


def test_int_or_string_keeps_the_bounds_of_both() -> None:
    assert _property(Quantity | None, None) == {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "minimum": 0,
        "maxLength": 20,
        "pattern": r"^[0-9]+(\.[0-9]+)?(k|M|G|T|Ki|Mi|Gi|Ti)?$",
    }


@pytest.mark.parametrize("annotation", [Odd, Odd | None])
def test_rules_of_a_type_and_of_its_use_are_joined(annotation: Any) -> None:
    used = _property(Annotated[annotation, SchemaExtra(rules(_SMALL))], 1)
    assert used["x-kubernetes-validations"] == [_ODD, _SMALL]
    model = _property(Annotated[Leaf, SchemaExtra(rules(_SMALL))])
    assert model["x-kubernetes-validations"] == [_TALL, _SMALL]


@pytest.mark.parametrize(
    ("annotation", "default", "expected"),
    [
        (int, 0, 0),
        (bool, False, False),
        (int | None, None, None),
        (tuple[int, ...], (), None),
        (Mapping[str, int], {}, None),
        (Leaf, Leaf(), {}),
        (Leaf, Leaf(height=4), {"height": 4}),
        (Leaf, Leaf(colour="red"), {"colour": "red"}),
    ],
)
def test_defaults_say_no_more_than_they_must(annotation: Any, default: Any, expected: Any) -> None:
    assert _property(annotation, default).get("default") == expected


@pytest.mark.parametrize(
    "annotation",
    [
        int | str,
        int | str | None,
        Any,
        tuple[int, str],
        Annotated[int, Field(gt=0)],
        Annotated[int, SchemaExtra({"readOnly": True})],
        Annotated[int | bool, SchemaExtra({"x-kubernetes-int-or-string": True})],
    ],
)
def test_what_cannot_be_said_is_refused_with_its_place(annotation: Any) -> None:
    with pytest.raises(UnsupportedSchema, match=r"Model\.field"):
        _property(annotation)
