"""The API server fills in the same values as the models."""

from __future__ import annotations

from typing import Any

import pytest

from scalable_topics_operator.api.common import CustomResource
from scalable_topics_operator.api.crd import KINDS
from tests.integration.crds.objects import Objects
from tests.unit.api.manifests import MINIMAL_SPECS, SPECS, manifest

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_minimal_objects_get_the_models_defaults(objects: Objects, kind: type[CustomResource]) -> None:
    """Hazard C6, C28: what is left out must not read as a wish."""
    spec = MINIMAL_SPECS[kind.__name__]
    model: Any = kind.model_validate(manifest(kind.__name__, spec))
    async with objects.created(kind.__name__, spec) as created:
        assert created["spec"] == _without_empty(model.spec.to_json_object(), spec)
        assert "status" not in created


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_models_read_what_the_api_server_gives_back(objects: Objects, kind: type[CustomResource]) -> None:
    for spec in SPECS[kind.__name__]:
        applied: Any = kind.model_validate(manifest(kind.__name__, spec))
        async with objects.created(kind.__name__, spec) as created:
            read: Any = kind.model_validate(created)
        assert read.spec == applied.spec
        assert read.metadata.uid == created["metadata"]["uid"]
        assert read.metadata.resource_version == created["metadata"]["resourceVersion"]


def _without_empty(value: Any, asked: Any) -> Any:
    """The value without empty lists and maps that nobody asked for; they read the same as absent ones."""
    if not isinstance(value, dict):
        return value
    asked = asked if isinstance(asked, dict) else {}
    inner = {key: _without_empty(item, asked.get(key)) for key, item in value.items()}
    return {key: item for key, item in inner.items() if key in asked or item not in ({}, [])}
