"""Each rule of the CRDs accepts what it should and refuses what it should, in words a user understands."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from scalable_topics_operator.cluster.kube_errors import KubeInvalid
from scalable_topics_operator.cluster.merge_diff import merge_diff
from tests.integration.crds.objects import Objects
from tests.integration.crds.rows import ABSENT, Row
from tests.integration.crds.schema_walk import holds, removed, replaced, shown
from tests.integration.crds.table import ROWS
from tests.unit.api.manifests import SPECS, STATUSES, manifest

pytestmark = pytest.mark.asyncio(loop_scope="session")

_IDS = [f"{index}-{row}" for index, row in enumerate(ROWS)]


@pytest.mark.parametrize("row", ROWS, ids=_IDS)
async def test_rule_accepts_and_refuses(objects: Objects, row: Row) -> None:
    example = _example(row)
    for value in row.accepted:
        await _take(objects, replaced(example, row.demand.path, value))

    if row.on_change:
        body = replaced(example, row.demand.path, row.accepted[0])
        with pytest.raises(KubeInvalid) as refusal:
            await _change(objects, body, replaced(example, row.demand.path, row.refused))
    else:
        refused = (
            removed(example, row.demand.path)
            if row.refused is ABSENT
            else replaced(example, row.demand.path, row.refused)
        )
        with pytest.raises(KubeInvalid) as refusal:
            await _take(objects, refused)

    assert row.message in refusal.value.message
    assert f"{shown(example, row.demand.path)}{row.entry}: " in refusal.value.message


async def _take(objects: Objects, body: dict[str, Any]) -> None:
    """Have the API server take a manifest, status and all."""
    status = body.pop("status", None)
    created = await objects.create(body)
    try:
        if status:
            await objects.patch(created, {"status": status}, "status")
    finally:
        await objects.delete(created)


async def _change(objects: Objects, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Have the API server take a manifest, then that it turns into another; the same again is no change."""
    async with objects.created(before["kind"], before["spec"]) as created:
        await objects.patch(created, {"metadata": {"labels": {"touched": "yes"}}, "spec": before["spec"]})
        await objects.patch(created, {"spec": merge_diff(before["spec"], after["spec"])})


def _example(row: Row) -> dict[str, Any]:
    """The first example that has something at the rule's path; with a status only if the rule is about that."""
    kind, path = row.demand.kind, row.demand.path
    status = STATUSES[kind] if path.startswith("status") else None
    examples = [manifest(kind, spec, status) for spec in SPECS[kind]]
    return copy.deepcopy(next(example for example in examples if holds(example, path)))
