"""What is written to a status is what is read from it, and stale writes are refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.cluster.kube_errors import KubeConflict, KubeInvalid
from scalable_topics_operator.operations.journal import Action, Operation, OperationKind, Request, Result, Step
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase, SubscriptionState
from scalable_topics_operator.operations.topic_state import DeletingSegment, TopicState, read_state, write_state
from tests.integration.crds.objects import Objects
from tests.unit.api.manifests import SPECS, STATUSES

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("kind", sorted(STATUSES))
async def test_every_status_field_is_kept(objects: Objects, kind: str) -> None:
    """Hazard C35: a field that the schema does not know is pruned silently."""
    async with objects.created(kind, SPECS[kind][0]) as created:
        await objects.patch(created, {"status": STATUSES[kind]}, "status")
        assert (await objects.read(created))["status"] == STATUSES[kind]


@pytest.mark.parametrize("kind", sorted(STATUSES))
async def test_unknown_status_field_is_refused_when_strict(objects: Objects, kind: str) -> None:
    """Hazard C35: the check above can fail."""
    async with objects.created(kind, SPECS[kind][0]) as created:
        with pytest.raises(KubeInvalid, match=r'unknown field "status\.noSuchField"'):
            await objects.patch(created, {"status": {"noSuchField": 1}}, "status")


@pytest.mark.parametrize("kind", sorted(SPECS))
async def test_every_spec_field_is_kept(objects: Objects, kind: str) -> None:
    for spec in SPECS[kind]:
        async with objects.created(kind, spec) as created:
            assert created["spec"] == {**created["spec"], **spec}


async def test_layout_keeps_fields_it_does_not_know(objects: Objects) -> None:
    """R29, hazard A1-26008: a newer release's fields survive an older one, in the record and in each segment."""
    layout: dict[str, Any] = copy.deepcopy(STATUSES["ScalableTopic"]["layout"])
    layout["later"] = {"nested": [1, {"deep": True}]}
    layout["segments"][0]["later"] = ["x"]
    async with objects.created("ScalableTopic", SPECS["ScalableTopic"][0]) as created:
        await objects.patch(created, {"status": {"layout": layout}}, "status")
        assert (await objects.read(created))["status"]["layout"] == layout


async def test_what_operations_write_is_what_they_read_back(objects: Objects) -> None:
    """Hazard C35: the journal, the layout and the rest of what operations own fit the schema as they write it."""
    request = Request("SegmentOperation", "split-0", "5a1f")
    layout = SegmentLayout.initial(2, bucket_budget=4, created_at_ms=1795000000000)
    change = layout.plan_split(0)
    state = TopicState(
        layout=layout,
        operation=Operation(
            id="a1b2",
            kind=OperationKind.SPLIT,
            step=Step.SEALING,
            term=7,
            parents=(0,),
            children=tuple(change.children),
            subscriptions=("billing",),
            started_at="2026-11-27T10:00:00Z",
            request=request,
            next_segment_id=4,
            message="waiting for producers",
        ),
        deleting=(DeletingSegment(9, "persistent://acme/shop/orders-segment-0000-ffff-9", 1795000000000),),
        subscriptions={
            name: SubscriptionState(name, phase, latest=True, delete_with_entry=True)
            for name, phase in ((phase.value.lower(), phase) for phase in SubscriptionPhase)
        },
        actions=tuple(
            Action(result.value, "Split", "2026-11-27T09:00:00Z", 1, (0,), (1, 2), result, request, "by hand")
            for result in Result
        ),
        incarnation="5a1f.0",
    )
    async with objects.created("ScalableTopic", SPECS["ScalableTopic"][0]) as created:
        await objects.patch(created, {"status": write_state({}, state)}, "status")
        assert read_state((await objects.read(created))["status"]) == state


@pytest.mark.parametrize("kind", list(OperationKind))
async def test_every_kind_of_operation_fits_the_schema(objects: Objects, kind: OperationKind) -> None:
    operation = {**STATUSES["ScalableTopic"]["operation"], "kind": kind.value}
    async with objects.created("ScalableTopic", SPECS["ScalableTopic"][0]) as created:
        await objects.patch(created, {"status": {"operation": operation}}, "status")
        assert (await objects.read(created))["status"]["operation"] == operation


@pytest.mark.parametrize("kind", sorted(STATUSES))
async def test_status_write_with_a_stale_version_is_refused(objects: Objects, kind: str) -> None:
    """DESIGN §6: the layout's compare-and-swap."""
    async with objects.created(kind, SPECS[kind][0]) as created:
        version = created["metadata"]["resourceVersion"]
        fresh = {"metadata": {"resourceVersion": version}, "status": {"observedGeneration": 1}}
        await objects.patch(created, fresh, "status")
        with pytest.raises(KubeConflict):
            await objects.patch(created, {**fresh, "status": {"observedGeneration": 2}}, "status")
        assert (await objects.read(created))["status"] == {"observedGeneration": 1}


@pytest.mark.parametrize("kind", sorted(STATUSES))
async def test_spec_and_status_are_written_apart(objects: Objects, kind: str) -> None:
    """Hazard C42: a status write changes neither spec nor generation; a spec write cannot touch the status."""
    async with objects.created(kind, SPECS[kind][0]) as created:
        written = await objects.patch(created, {"spec": None, "status": {"observedGeneration": 1}}, "status")
        assert written["spec"] == created["spec"]
        assert written["metadata"]["generation"] == created["metadata"]["generation"]
        labelled = {"metadata": {"labels": {"a": "b"}}, "status": {"observedGeneration": 9}}
        assert (await objects.patch(created, labelled))["status"] == {"observedGeneration": 1}
