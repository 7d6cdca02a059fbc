"""SparkApplications that the operator keeps, on a real API server with the published CRDs (R34).

No Spark operator runs here: tests write the status in its place.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.access import KubernetesAccess
from dev.instance import LocalCluster, Shape
from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource
from scalable_topics_operator.cluster.kube_errors import KubeNotFound
from scalable_topics_operator.cluster.kube_login import load_endpoint
from scalable_topics_operator.cluster.resources import CONFIG_MAPS, CONNECTIONS, NAMESPACES, SPARK_APPLICATIONS
from scalable_topics_operator.load.pipeline_job import RunnerPhase
from tests.support.crds import install_crd, install_spark_crds, our_crds
from tests.support.kept_application import APPLICATION, GOING_SECONDS, THRESHOLDS, TOKEN, KeptApplication
from tests.support.waiting import eventually
from tests.support.world_making import create_namespace, random_name
from tests.unit.api.manifests import SPARK_APPLICATION

EXAMPLE = Path(__file__).parents[3] / "examples" / "spark-application.yaml"
KUBEFLOW, APACHE = (resource.api_version for resource in SPARK_APPLICATIONS)
KINDS = pytest.mark.parametrize("kind", [KUBEFLOW, APACHE])
RUNNING = {KUBEFLOW: "RUNNING", APACHE: "RunningHealthy"}
ENDED = {KUBEFLOW: "FAILED", APACHE: "ResourceReleased"}
PODS = Resource("", "v1", "pods", "Pod")
TOKEN_AUTH = {"token": {"secretRef": {"name": "pulsar-token"}}}
MTLS_AUTH = {"mtls": {"secretRef": {"name": "client"}}}
DYNAMIC = {"minExecutors": 2, "maxExecutors": 8}

pytestmark = pytest.mark.usefixtures("spark_kinds")


@pytest.fixture(scope="session")
def spark_kinds(kube_environment: KubernetesAccess) -> None:
    """An API server that has the SparkApplications of both Spark operators."""
    install_spark_crds()


@pytest.fixture
async def namespace(kube: KubeClient) -> AsyncIterator[str]:
    """A namespace of this test's own, which no operator watches."""
    name = random_name("spark")
    await create_namespace(kube, name)
    yield name
    await kube.delete(NAMESPACES, None, name)


def described(kind: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": kind, "image": "segment-load:1", "serviceAccount": "spark", "folder": "s3a://b/load", **more}


async def running(kube: KubeClient, namespace: str, kind: str, **spec: Any) -> KeptApplication:
    """A connection whose pipeline runs."""
    kept = await KeptApplication.make(kube, namespace, described(kind), **spec)
    assert (await kept.keep()).phase is RunnerPhase.STARTING
    await kept.tell(RUNNING[kind])
    assert (await kept.keep()).phase is RunnerPhase.RUNNING
    return kept


@KINDS
@pytest.mark.parametrize("auth", [{}, TOKEN_AUTH, MTLS_AUTH], ids=["anonymous", "token", "mtls"])
@pytest.mark.parametrize(
    "more",
    [{}, SPARK_APPLICATION, {**SPARK_APPLICATION, "dynamicAllocation": DYNAMIC}],
    ids=["least", "all", "dynamic"],
)
async def test_the_api_server_takes_it_to_the_letter(
    kube: KubeClient, namespace: str, kind: str, auth: Any, more: dict[str, Any]
) -> None:
    """The client is strict, so that a field which the published schema does not know is refused."""
    application = {**described(kind), **more, "apiVersion": kind}
    kept = await KeptApplication.make(kube, namespace, application, auth=auth)
    state = await kept.keep()
    assert (state.phase, state.reason) == (RunnerPhase.STARTING, "SparkApplicationCreated"), state.message
    made = await kept.application()
    assert made["metadata"]["ownerReferences"][0]["uid"] == kept.connection["metadata"]["uid"]
    # Nothing was dropped on its way in: an edit of something else makes everything be compared.
    suspend = {"suspend": True} if kind == KUBEFLOW else {"proxyUser": "somebody"}
    edited = await kept.edit({"spec": suspend})
    assert edited["metadata"]["generation"] == 2
    assert (await kept.keep()).reason == "SparkApplicationCreated"
    assert (await kept.application())["metadata"]["resourceVersion"] == edited["metadata"]["resourceVersion"]


@KINDS
async def test_what_is_as_it_should_be_is_not_written(kube: KubeClient, namespace: str, kind: str) -> None:
    kept = await running(kube, namespace, kind)
    before = await kept.version()
    for runner in (kept.runner, kept.runner, kept.new_runner(), kept.new_runner(recheck_seconds=0.0)):
        assert (await kept.keep(runner)).phase is RunnerPhase.RUNNING
    assert await kept.version() == before


@KINDS
async def test_an_edit_is_put_back(kube: KubeClient, namespace: str, kind: str) -> None:
    kept = await running(kube, namespace, kind)
    wanted = (await kept.application())["spec"]
    edited = await kept.edit({"spec": {"sparkConf": {"spark.ui.enabled": "true", "spark.more": "1"}}})
    state = await kept.keep()
    assert (state.phase, state.reason) == (RunnerPhase.STARTING, "SparkApplicationReplacing")
    assert "somebody has changed its spec.sparkConf" in state.message
    assert (await kept.until_made_anew(edited["metadata"]["uid"]))["spec"] == wanted


async def test_a_replica_that_dies_over_it_is_followed_by_one_that_goes_on(kube: KubeClient, namespace: str) -> None:
    """Right before the deletion, right after it, and right after its successor is made (hazard C55)."""
    kept = await running(kube, namespace, KUBEFLOW)
    edited = await kept.edit({"spec": {"image": "somebody-elses"}})
    kept.runner = kept.new_runner()
    assert (await kept.keep()).reason == "SparkApplicationReplacing"
    kept.runner = kept.new_runner()
    made = await kept.until_made_anew(edited["metadata"]["uid"])
    assert made["spec"]["image"] == "segment-load:1"
    kept.runner = kept.new_runner()
    assert (await kept.keep()).reason == "SparkApplicationCreated"
    assert (await kept.application())["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_lost_labels_are_put_back_in_place(kube: KubeClient, namespace: str) -> None:
    kept = await running(kube, namespace, KUBEFLOW)
    made = await kept.application()
    await kept.edit({"metadata": {"labels": {"app.kubernetes.io/managed-by": "nobody"}, "annotations": None}})
    assert (await kept.keep()).phase is RunnerPhase.RUNNING
    mended = await kept.application()
    for part in ("uid", "labels", "annotations", "generation"):
        assert mended["metadata"][part] == made["metadata"][part]


@KINDS
async def test_a_deleted_one_is_made_anew_and_later_and_later_if_that_goes_on(
    kube: KubeClient, namespace: str, kind: str
) -> None:
    kept = await running(kube, namespace, kind)
    await kube.delete(kept.resource, namespace, APPLICATION)
    assert (await kept.keep()).reason == "SparkApplicationCreated"
    await kept.application()
    await kube.delete(kept.resource, namespace, APPLICATION)
    state = await kept.keep()
    assert (state.phase, state.reason) == (RunnerPhase.FAILED, "SparkApplicationDeleted")
    with pytest.raises(KubeNotFound):
        await kept.application()
    kept.clock.ahead_seconds = 11.0
    assert (await kept.keep()).reason == "SparkApplicationCreated"
    await kept.application()


@pytest.mark.parametrize("resource", [SPARK_APPLICATIONS[0], CONFIG_MAPS], ids=lambda resource: resource.kind)
async def test_what_somebody_else_has_under_the_name_is_left_alone(
    kube: KubeClient, namespace: str, resource: Resource
) -> None:
    kept = await KeptApplication.make(kube, namespace, described(KUBEFLOW))
    await kept.keep()
    body = await kept.application() if resource != CONFIG_MAPS else await kept.config_map()
    await kube.delete(resource, namespace, body["metadata"]["name"])
    foreign: Body = {key: body[key] for key in ("apiVersion", "kind", "spec", "data") if key in body}
    foreign["metadata"] = {"name": body["metadata"]["name"], "labels": body["metadata"]["labels"]}
    foreign = await kube.create(resource, namespace, foreign)

    state = await kept.keep(kept.new_runner())
    assert (state.phase, state.reason) == (RunnerPhase.FAILED, "NameTaken")
    assert f"{resource.kind} {namespace}/{body['metadata']['name']} does not belong to this connection" in state.message
    await kept.runner.remove(kept.key)
    assert await kube.get(resource, namespace, body["metadata"]["name"]) == foreign


async def test_another_connections_application_is_not_taken_over(kube: KubeClient, namespace: str) -> None:
    kept = await running(kube, namespace, KUBEFLOW)
    other = {**kept.connection, "metadata": {**kept.connection["metadata"], "uid": "of-an-earlier-one"}}
    before = await kept.version()
    kept.connection = other
    assert (await kept.keep()).reason == "NameTaken"
    assert await kept.version() == before


@KINDS
async def test_the_next_leader_goes_on_with_it(kube: KubeClient, namespace: str, kind: str) -> None:
    """Hazard C55."""
    kept = await running(kube, namespace, kind)
    before = await kept.version()
    await kept.runner.release(kept.key)
    assert (await kept.keep(kept.new_runner())).phase is RunnerPhase.RUNNING
    assert (await kept.keep()).phase is RunnerPhase.RUNNING
    assert await kept.version() == before


@KINDS
async def test_what_was_made_is_taken_away(kube: KubeClient, namespace: str, kind: str) -> None:
    kept = await running(kube, namespace, kind)
    for runner in (kept.new_runner(), kept.runner):
        await runner.remove(kept.key)
        for read in (kept.application, kept.config_map):
            with pytest.raises(KubeNotFound):
                await read()


async def test_it_goes_with_its_connection(kube: KubeClient, namespace: str) -> None:
    kept = await running(kube, namespace, KUBEFLOW)
    await kube.delete(CONNECTIONS, namespace, "main")

    async def gone() -> bool:
        found = [await kube.list_all(resource, namespace) for resource in (kept.resource, CONFIG_MAPS)]
        return not any(body["metadata"]["name"].startswith(APPLICATION) for bodies in found for body in bodies)

    await eventually(gone, what="all that was made is gone", within_seconds=GOING_SECONDS)


async def test_another_wish_waits_for_the_driver_to_end(kube: KubeClient, namespace: str) -> None:
    """Two drivers would share a checkpoint."""
    kept = await running(kube, namespace, KUBEFLOW)
    before = await kept.application()
    driver = await kube.create(PODS, namespace, _driver_of(before))
    await kept.change({"image": "segment-load:2"})
    state = await kept.keep()
    assert (state.reason, "its connection asks for another one" in state.message) == ("SparkApplicationReplacing", True)

    async def ends() -> bool:
        state = await kept.keep()
        assert state.reason == "SparkApplicationReplacing"
        found = await kube.get(PODS, namespace, driver["metadata"]["name"])
        return "deletionTimestamp" in found["metadata"]

    await eventually(ends, what="the driver is told to end", within_seconds=GOING_SECONDS)
    assert (await kept.application())["metadata"]["uid"] == before["metadata"]["uid"]
    kept.clock.ahead_seconds = 130.0 + GOING_SECONDS
    stuck = await kept.keep()
    assert (stuck.phase, stuck.reason) == (RunnerPhase.FAILED, "SparkApplicationTerminating")
    await kube.merge_patch(PODS, namespace, driver["metadata"]["name"], {"metadata": {"finalizers": None}})
    after = await kept.until_made_anew(before["metadata"]["uid"])
    assert after["spec"]["image"] == "segment-load:2"


@KINDS
async def test_one_that_has_ended_for_good_is_made_anew_after_a_pause(
    kube: KubeClient, namespace: str, kind: str
) -> None:
    """Hazard C57."""
    kept = await running(kube, namespace, kind)
    first = await kept.application()
    await kept.tell(ENDED[kind], "driver container failed with ExitCode: 1")
    state = await kept.keep()
    assert (state.phase, state.reason) == (RunnerPhase.FAILED, "SparkApplicationFailed")
    assert "ExitCode: 1; made anew now" in state.message
    second = await kept.until_made_anew(first["metadata"]["uid"])
    await kept.tell(ENDED[kind])
    state = await kept.keep()
    assert "; made anew in " in state.message
    assert (await kept.application())["metadata"]["uid"] == second["metadata"]["uid"]
    kept.clock.ahead_seconds = 11.0
    await kept.until_made_anew(second["metadata"]["uid"])


async def test_the_other_kind_of_application_ends_first(kube: KubeClient, namespace: str) -> None:
    kept = await running(kube, namespace, KUBEFLOW)
    await kept.change({"apiVersion": APACHE})
    assert (await kept.keep()).reason == "SparkApplicationReplacing"
    with pytest.raises(KubeNotFound):
        await kept.application()
    await kept.until_made_anew("")
    with pytest.raises(KubeNotFound):
        await kept.application(SPARK_APPLICATIONS[0])


async def test_one_that_no_spark_operator_looks_at_is_told(kube: KubeClient, namespace: str) -> None:
    """Hazard C56."""
    kept = await KeptApplication.make(kube, namespace, described(KUBEFLOW))
    await kept.keep()
    assert (await kept.keep()).phase is RunnerPhase.STARTING
    kept.clock.ahead_seconds = 90.0
    state = await kept.keep()
    assert (state.phase, state.reason) == (RunnerPhase.FAILED, "SparkOperatorMissing")


async def test_what_the_driver_says_is_told_without_the_token(kube: KubeClient, namespace: str) -> None:
    kept = await running(kube, namespace, KUBEFLOW)
    await kept.tell("FAILING", f"log\nException: refused {TOKEN}")
    state = await kept.keep()
    assert state.message.endswith("is FAILING, driver pod load-main-driver: Exception: refused …")


@pytest.mark.parametrize("used", ["basic", "oauth2"])
async def test_credentials_that_the_pipeline_cannot_use_end_it(kube: KubeClient, namespace: str, used: str) -> None:
    kept = await running(kube, namespace, KUBEFLOW, auth=TOKEN_AUTH)
    reference = {"name": "admin"}
    oauth2 = {"issuerUrl": "https://issuer.example.com", "credentialsSecretRef": reference}
    await kept.change(auth={"token": None, used: {"secretRef": reference} if used == "basic" else oauth2})
    state = await kept.keep()
    assert (state.phase, state.reason) == (RunnerPhase.FAILED, "PipelineAuthUnsupported")
    assert f"auth.{used}" in state.message
    for read in (kept.application, kept.config_map):
        with pytest.raises(KubeNotFound):
            await read()


async def test_a_connection_that_describes_none_says_so(kube: KubeClient, namespace: str) -> None:
    """One that was written before the rule."""
    kept = await KeptApplication.make(kube, namespace, described(KUBEFLOW))
    load = {**kept.connection["spec"]["load"], "sparkApplication": None}
    kept.connection = {**kept.connection, "spec": {**kept.connection["spec"], "load": load}}
    assert (await kept.keep()).reason == "SparkApplicationUndescribed"


async def test_thresholds_are_published_and_kept(kube: KubeClient, namespace: str) -> None:
    kept = await running(kube, namespace, KUBEFLOW)
    version = (await kept.application())["metadata"]["resourceVersion"]
    rates = {"split": [1, 2, 3, 4], "merge": [0, 1, 1, 2]}
    kept.thresholds = {"topic://acme/shop/orders": rates}
    await kept.keep()
    assert await _published(kept) == kept.thresholds
    somebody = {"data": {"thresholds.json": "{}", "more": "x"}, "metadata": {"labels": None}}
    await kube.merge_patch(CONFIG_MAPS, namespace, THRESHOLDS, somebody)
    await kept.keep()
    assert await _published(kept) == {}
    kept.clock.ahead_seconds = 61.0
    await kept.keep()
    mended = await kept.config_map()
    assert json.loads(mended["data"].pop("thresholds.json")) == kept.thresholds
    assert mended["data"] == {}
    assert mended["metadata"]["labels"]["app.kubernetes.io/component"] == "load-pipeline"
    await kube.delete(CONFIG_MAPS, namespace, THRESHOLDS)
    kept.clock.ahead_seconds = 122.0
    await kept.keep()
    assert await _published(kept) == kept.thresholds
    assert (await kept.application())["metadata"]["resourceVersion"] == version


async def test_thresholds_that_do_not_fit_lose_the_last_topics_and_say_so(kube: KubeClient, namespace: str) -> None:
    kept = await running(kube, namespace, KUBEFLOW)
    rates = {"split": [1, 2, 3, 4], "merge": [0, 1, 1, 2]}
    kept.thresholds = {f"topic://acme/shop/{'o' * 180}-{index:05}": rates for index in range(5_000)}
    state = await kept.keep()
    assert state.phase is RunnerPhase.RUNNING
    published = await _published(kept)
    assert list(published) == sorted(kept.thresholds)[: len(published)]
    assert 3_000 < len(published) < 5_000
    assert f"; {5_000 - len(published)} topics have the default thresholds" in state.message


async def test_rights_that_lack_are_told(kube: KubeClient, namespace: str) -> None:
    kept = await KeptApplication.make(kube, namespace, described(KUBEFLOW))
    endpoint = load_endpoint()
    nobody = replace(endpoint, headers={**endpoint.headers, "Impersonate-User": "nobody"})
    async with KubeClient(nobody) as client:
        runner = kept.new_runner(client)
        state = await kept.keep(runner)
        await runner.remove(kept.key)
    assert (state.phase, state.reason) == (RunnerPhase.FAILED, "SparkApplicationForbidden")
    assert "docs/spark-application.md" in state.message
    assert 'User "nobody" cannot get resource "configmaps"' in state.message


async def test_what_the_api_server_refuses_is_told(kube: KubeClient, namespace: str) -> None:
    kept = await KeptApplication.make(kube, namespace, described(APACHE))
    spec = json.loads(json.dumps(kept.connection["spec"]))
    # Our own schema would not have let it pass.
    spec["load"]["sparkApplication"]["tolerations"] = [{"tolerationSeconds": 2**70}]
    kept.connection = {**kept.connection, "spec": spec}
    state = await kept.keep()
    assert (state.phase, state.reason) == (RunnerPhase.FAILED, "SparkApplicationRefused")
    assert "tolerationSeconds" in state.message


async def test_a_cluster_without_the_kind_lacks_a_spark_operator(
    local_cluster: Callable[[Shape], LocalCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = local_cluster(Shape(brokers=0))
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubernetes.access.kubeconfig))
    async with KubeClient(load_endpoint(), field_validation="Strict") as client:
        for definition in our_crds():
            await install_crd(client, definition)
        kept = await KeptApplication.make(client, "default", described(KUBEFLOW))
        for _ in range(2):
            state = await kept.keep()
            assert (state.phase, state.reason) == (RunnerPhase.FAILED, "SparkOperatorMissing")
        assert KUBEFLOW in state.message
        await kept.runner.remove(kept.key)


async def test_the_example_is_taken(kube: KubeClient, namespace: str) -> None:
    manifests = list(yaml.safe_load_all(EXAMPLE.read_text()))
    (connection,) = [one for one in manifests if one["kind"] == "ScalableTopicConnection"]
    kept = KeptApplication(kube, await kube.create(CONNECTIONS, namespace, connection))
    spec = connection["spec"]["load"]["sparkApplication"]
    assert spec["serviceAccount"] in {one["metadata"]["name"] for one in manifests if one["kind"] == "ServiceAccount"}
    (claim,) = [one for one in manifests if one["kind"] == "PersistentVolumeClaim"]
    assert spec["volumeClaim"] == claim["metadata"]["name"]
    assert (await kept.keep()).reason == "SparkApplicationCreated"


async def _published(kept: KeptApplication) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((await kept.config_map())["data"]["thresholds.json"])
    return found


def _driver_of(application: Body) -> Body:
    """A driver as Kubeflow's operator has it made, that does not end at once."""
    owner = {
        "apiVersion": application["apiVersion"],
        "kind": application["kind"],
        "name": application["metadata"]["name"],
        "uid": application["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{APPLICATION}-driver",
            "ownerReferences": [owner],
            "finalizers": ["example.com/at-work"],
        },
        "spec": {"containers": [{"name": "spark-kubernetes-driver", "image": "segment-load:1"}]},
    }
