"""The scale subresource of ScalableTopic (R30)."""

from __future__ import annotations

from typing import Any

import pytest

from scalable_topics_operator.cluster.kube_errors import KubeInvalid
from tests.integration.crds.objects import Objects
from tests.unit.api.manifests import MINIMAL_SPECS

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _scaled(objects: Objects, body: dict[str, Any], replicas: int) -> dict[str, Any]:
    return await objects.patch(body, {"spec": {"replicas": replicas}}, "scale")


async def test_scale_writes_desired_and_shows_active_and_selector(objects: Objects) -> None:
    """R30: `kubectl scale` and a HorizontalPodAutoscaler work; the latter refuses an empty selector (hazard C72)."""
    async with objects.created("ScalableTopic", MINIMAL_SPECS["ScalableTopic"]) as created:
        status = {"segments": {"active": 2, "sealed": 1}, "selector": "scalabletopics.io/topic=orders"}
        await objects.patch(created, {"status": status}, "status")
        scale = await _scaled(objects, created, 5)
        assert scale["kind"] == "Scale"
        assert scale["spec"] == {"replicas": 5}
        assert scale["status"] == {"replicas": 2, "selector": "scalabletopics.io/topic=orders"}
        assert (await objects.read(created))["spec"]["segments"] == {"initial": 1, "desired": 5}


@pytest.mark.parametrize(
    ("replicas", "message"), [(0, "greater than or equal to 1"), (257, "less than or equal to 256")]
)
async def test_scale_keeps_to_the_bounds(objects: Objects, replicas: int, message: str) -> None:
    async with objects.created("ScalableTopic", MINIMAL_SPECS["ScalableTopic"]) as created:
        with pytest.raises(KubeInvalid, match=message):
            await _scaled(objects, created, replicas)
        assert "desired" not in (await objects.read(created))["spec"]["segments"]


async def test_scale_leaves_the_initial_number_alone(objects: Objects) -> None:
    spec = {**MINIMAL_SPECS["ScalableTopic"], "segments": {"initial": 4}}
    async with objects.created("ScalableTopic", spec) as created:
        await _scaled(objects, created, 8)
        assert (await objects.read(created))["spec"]["segments"] == {"initial": 4, "desired": 8}
