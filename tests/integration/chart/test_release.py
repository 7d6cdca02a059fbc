"""A release from its installation to its end, by helm on a real API server, where no pods run."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dev.access import KubernetesAccess
from dev.chart_values import CHART
from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource
from scalable_topics_operator.cluster.kube_errors import KubeNotFound
from scalable_topics_operator.cluster.resources import SECRETS
from tests.integration.chart.cluster import apply
from tests.integration.chart.rendering import documents, run_helm
from tests.support.crds import our_crds
from tests.support.waiting import eventually

_DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
_JOBS = Resource("batch", "v1", "jobs", "Job")
_CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")
_NAME = "topics-scalable-topics"
_SECRET_BYTES = 1_048_576


@pytest.fixture
async def release(api_server: KubernetesAccess, namespace: str) -> AsyncIterator[str]:
    """Its namespace. Definitions are there already, as other tests have them: helm takes them over."""
    await _helm(namespace, "install", "topics", str(CHART), "--take-ownership")
    yield namespace
    await asyncio.to_thread(
        run_helm, "uninstall", "topics", "--namespace", namespace, "--no-hooks", "--ignore-not-found"
    )


async def test_it_is_installed_and_upgraded(api_server: KubernetesAccess, kube: KubeClient, release: str) -> None:
    await _helm(release, "upgrade", "topics", str(CHART), "--reuse-values", "--set", "replicas=3,operator.shards=2")
    deployment = await kube.get(_DEPLOYMENTS, release, _NAME)
    assert deployment["spec"]["replicas"] == 3
    assert "--shards=2" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    kept = [one for one in await kube.list_all(SECRETS, release) if one["type"] == "helm.sh/release.v1"]
    assert len(kept) == 2
    assert max(len(one["data"]["release"]) for one in kept) < _SECRET_BYTES / 2
    notes = (await _helm(release, "get", "notes", "topics")).stdout
    example = documents(notes.partition("<<'END'\n")[2].partition("\nEND\n")[0])
    assert [one["kind"] for one in example] == ["ScalableTopicConnection", "ScalableTopic"]
    apply(api_server, example, "--namespace", release, "--dry-run=server", "--validate=strict")


async def test_it_goes_when_the_check_before_lets_it_and_definitions_stay(kube: KubeClient, release: str) -> None:
    """What the Job comes to is said by the test in place of a node (hazards C9 and C68)."""
    refused = await _uninstalled(kube, release, passes=False)
    assert f"job {_NAME}-uninstall-check failed" in refused.stderr
    assert (await kube.get(_DEPLOYMENTS, release, _NAME))["spec"]["replicas"] == 2
    await _uninstalled(kube, release, passes=True)
    with pytest.raises(KubeNotFound):
        await kube.get(_DEPLOYMENTS, release, _NAME)
    for definition in our_crds():
        found = await kube.get(_CRDS, None, definition["metadata"]["name"])
        assert "deletionTimestamp" not in found["metadata"]
        assert found["spec"]["versions"][0]["schema"] == definition["spec"]["versions"][0]["schema"]


async def _uninstalled(kube: KubeClient, release: str, *, passes: bool) -> subprocess.CompletedProcess[str]:
    going = asyncio.create_task(_helm(release, "uninstall", "topics", fails=not passes))
    job = await eventually(lambda: _job(kube, release), bool, what="the check is there")
    assert job is not None
    await kube.merge_patch(_JOBS, release, job["metadata"]["name"], _ended(passes), subresource="status")
    said = await going
    assert await _job(kube, release) is None
    return said


async def _job(kube: KubeClient, namespace: str) -> Body | None:
    return next(iter(await kube.list_all(_JOBS, namespace)), None)


def _ended(passes: bool) -> dict[str, Any]:
    at = "2026-01-01T00:00:00Z"
    kinds = ("SuccessCriteriaMet", "Complete") if passes else ("FailureTarget", "Failed")
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": at} for kind in kinds]
    counted = {"succeeded": 1, "completionTime": at} if passes else {"failed": 1}
    return {"status": {"startTime": at, "conditions": conditions, **counted}}


async def _helm(namespace: str, *arguments: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
    done = await asyncio.to_thread(run_helm, *arguments, "--namespace", namespace)
    assert (done.returncode != 0) is fails, done.stderr
    return done
