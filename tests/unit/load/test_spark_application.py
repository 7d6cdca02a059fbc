"""A pipeline as a SparkApplication: its name, what is in it, and when it has to be replaced (R34)."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scalable_topics_operator.api.connection import ScalableTopicConnectionSpec
from scalable_topics_operator.api.spark_application import OWN_SPARK_SETTINGS
from scalable_topics_operator.load.pipeline_job import PipelineJob
from scalable_topics_operator.load.spark_application import (
    APACHE,
    KUBEFLOW,
    MADE_FROM,
    application_name,
    metadata_patch,
    render,
    thresholds_name,
    why_another,
)
from tests.unit.api.manifests import SPARK_APPLICATION

LEAST = {"image": "segment-load:1", "serviceAccount": "spark", "folder": "s3a://bucket/load/"}
KINDS = pytest.mark.parametrize("kind", [KUBEFLOW, APACHE])
NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?){0,9}", fullmatch=True)
JOB = PipelineJob(
    namespace="pulsar",
    name="main",
    uid="5a1f",
    admin_url="https://pulsar.example.com:8443",
    service_url="pulsar+ssl://pulsar.example.com:6651",
    records_topic="persistent://public/default/load",
    interval_seconds=10,
    timeout_seconds=5,
)


def rendered(
    kind: str, application: dict[str, Any] | None = None, job: PipelineJob = JOB, **spec: Any
) -> dict[str, Any]:
    settings = {**LEAST, **(application or {}), "apiVersion": kind}
    load = {"source": "Pipeline", "runner": "SparkApplication", "sparkApplication": settings}
    parsed = ScalableTopicConnectionSpec.model_validate({"adminUrl": JOB.admin_url, "load": load, **spec})
    assert parsed.load.spark_application is not None
    return render(parsed, parsed.load.spark_application, job)


def arguments(manifest: dict[str, Any]) -> dict[str, str]:
    spec = manifest["spec"]
    words = spec.get("arguments") or spec["driverArgs"]
    assert words[0] == "stream"
    pairs = [word.partition("=") for word in words[1:]]
    return {name: value for name, _, value in pairs}


def pods(manifest: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    spec = manifest["spec"]
    if "driver" in spec:
        return spec["driver"]["template"]["spec"], spec["executor"]["template"]["spec"]
    return spec["driverSpec"]["podTemplateSpec"]["spec"], spec["executorSpec"]["podTemplateSpec"]["spec"]


@given(NAMES)
@example("0")
@example("a" * 253)
@example("a.b")
def test_any_connection_has_a_name_that_spark_can_add_to(connection: str) -> None:
    name = application_name(connection)
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)
    assert len(name) <= 40
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", thresholds_name(connection))


@given(st.lists(NAMES, unique=True, min_size=2, max_size=20))
@example(["a.b", "a-b"])
@example(["x" * 60 + "1", "x" * 60 + "2"])
def test_no_two_connections_have_the_same_name(connections: list[str]) -> None:
    assert len({application_name(one) for one in connections}) == len(connections)


def test_an_ordinary_name_is_kept() -> None:
    assert application_name("main") == "load-main"


@KINDS
def test_it_goes_with_its_connection(kind: str) -> None:
    manifest = rendered(kind)
    assert (manifest["apiVersion"], manifest["kind"]) == (kind, "SparkApplication")
    assert (manifest["metadata"]["namespace"], manifest["metadata"]["name"]) == ("pulsar", "load-main")
    (owner,) = manifest["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == (
        "ScalableTopicConnection",
        "main",
        "5a1f",
        True,
    )


@KINDS
def test_secrets_are_mounted_into_driver_and_executors(kind: str) -> None:
    token = {"token": {"secretRef": {"name": "pulsar-token", "key": "jwt"}}}
    manifest = rendered(kind, auth=token, tls={"caSecretRef": {"name": "pulsar-ca", "key": "bundle.pem"}})
    folder = "/etc/segment-load/credentials"
    for pod in pods(manifest):
        (volume,) = [one for one in pod["volumes"] if one["name"] == "credentials"]
        assert volume["projected"]["sources"] == [
            {"secret": {"name": "pulsar-token", "items": [{"key": "jwt", "path": "token"}]}},
            {"secret": {"name": "pulsar-ca", "items": [{"key": "bundle.pem", "path": "ca.crt"}]}},
        ]
        mounts = pod["containers"][0]["volumeMounts"]
        assert {"name": "credentials", "mountPath": folder, "readOnly": True} in mounts
    told = arguments(manifest)
    assert (told["--token-file"], told["--ca-file"]) == (f"{folder}/token", f"{folder}/ca.crt")
    assert "--certificate-file" not in told


@KINDS
def test_a_client_certificate_is_mounted_with_its_key(kind: str) -> None:
    manifest = rendered(kind, auth={"mtls": {"secretRef": {"name": "client"}}})
    told = arguments(manifest)
    assert told["--certificate-file"].endswith("/tls.crt")
    assert told["--key-file"].endswith("/tls.key")
    assert "--token-file" not in told


@KINDS
def test_without_credentials_nothing_of_them_is_mounted(kind: str) -> None:
    manifest = rendered(kind)
    assert [[volume["name"] for volume in pod["volumes"]] for pod in pods(manifest)] == [["thresholds"], []]
    assert not {"--token-file", "--ca-file", "--certificate-file", "--key-file"} & set(arguments(manifest))


@KINDS
def test_the_containers_have_the_names_by_which_spark_knows_them(kind: str) -> None:
    names = [[container["name"] for container in pod["containers"]] for pod in pods(rendered(kind))]
    assert names == [["spark-kubernetes-driver"], ["spark-kubernetes-executor"]]


@KINDS
def test_connections_that_share_a_folder_do_not_share_a_checkpoint(kind: str) -> None:
    assert arguments(rendered(kind))["--folder"] == "s3a://bucket/load/pulsar/main"


@KINDS
def test_a_path_is_on_the_claim_in_every_pod(kind: str) -> None:
    job = PipelineJob(**{**{field: getattr(JOB, field) for field in JOB.__slots__}, "history_path": "/history"})
    manifest = rendered(kind, {"folder": "/", "volumeClaim": "shared"}, job)
    told = arguments(manifest)
    assert told["--folder"] == "/var/lib/segment-load/pulsar/main"
    assert told["--history-path"] == "/var/lib/segment-load/history"
    for pod in pods(manifest):
        assert {"name": "work", "persistentVolumeClaim": {"claimName": "shared"}} in pod["volumes"]
        mount = {"name": "work", "mountPath": "/var/lib/segment-load"}
        assert mount in pod["containers"][0]["volumeMounts"]
        assert pod["securityContext"]["fsGroup"] == 185


@KINDS
def test_what_a_person_asks_of_spark_is_given_but_not_what_the_pipeline_needs(kind: str) -> None:
    asked = {"spark.ui.enabled": "true", "spark.sql.session.timeZone": "CET"}
    conf = rendered(kind, {"sparkConf": asked})["spec"]["sparkConf"]
    assert conf["spark.ui.enabled"] == "true"
    assert conf["spark.sql.session.timeZone"] == "UTC"
    assert conf["spark.python.sql.dataFrameDebugging.enabled"] == "false"
    assert rendered(kind)["spec"]["sparkConf"]["spark.ui.enabled"] == "false"


def test_every_setting_that_is_ours_is_refused_to_people() -> None:
    applications: list[dict[str, Any]] = [{}, {"dynamicAllocation": {}}, SPARK_APPLICATION]
    for application in applications:
        conf = set(rendered(APACHE, application)["spec"]["sparkConf"])
        asked = set(application.get("sparkConf", ()))
        ours = conf - asked - {"spark.ui.enabled", "spark.sql.shuffle.partitions"}
        assert ours - {"spark.dynamicAllocation.shuffleTracking.enabled"} <= set(OWN_SPARK_SETTINGS)


def test_nothing_is_left_to_the_defaults_of_a_webhook() -> None:
    spec = rendered(KUBEFLOW)["spec"]
    assert (spec["mode"], spec["type"]) == ("cluster", "Python")
    assert spec["restartPolicy"] == {
        "type": "Always",
        "onFailureRetryInterval": 30,
        "onSubmissionFailureRetryInterval": 30,
    }
    assert (spec["driver"]["cores"], spec["driver"]["memory"], spec["driver"]["javaOptions"]) == (1, "1g", "-Xss4m")
    assert (spec["executor"]["cores"], spec["executor"]["memory"], spec["executor"]["instances"]) == (2, "1g", 1)
    assert "dynamicAllocation" not in spec


def test_executors_come_and_go_if_asked() -> None:
    application = {"dynamicAllocation": {"minExecutors": 2, "maxExecutors": 5}, "executor": {"instances": 9}}
    spec = rendered(KUBEFLOW, application)["spec"]
    assert "instances" not in spec["executor"]
    wanted = {"enabled": True, "initialExecutors": 2, "minExecutors": 2, "maxExecutors": 5}
    assert spec["dynamicAllocation"] == {**wanted, "shuffleTrackingEnabled": True}
    conf = rendered(APACHE, application)["spec"]["sparkConf"]
    assert "spark.executor.instances" not in conf
    assert (conf["spark.dynamicAllocation.minExecutors"], conf["spark.dynamicAllocation.maxExecutors"]) == ("2", "5")
    assert conf["spark.sql.shuffle.partitions"] == "10"


@KINDS
def test_everything_that_can_be_set_has_an_effect(kind: str) -> None:
    """By leaving each field out by itself."""
    whole = rendered(kind, {**SPARK_APPLICATION, "dynamicAllocation": {"minExecutors": 2, "maxExecutors": 8}})
    for name in SPARK_APPLICATION:
        if name in ("apiVersion", "image", "serviceAccount", "folder"):
            continue
        fewer = {key: value for key, value in SPARK_APPLICATION.items() if key not in (name, "dynamicAllocation")}
        if name != "dynamicAllocation":
            fewer["dynamicAllocation"] = {"minExecutors": 2, "maxExecutors": 8}
        assert rendered(kind, fewer)["spec"] != whole["spec"], name


@KINDS
def test_the_same_is_rendered_alike_and_needs_no_other(kind: str) -> None:
    wanted = rendered(kind, SPARK_APPLICATION)
    assert json.dumps(wanted) == json.dumps(rendered(kind, SPARK_APPLICATION))
    assert why_another(_live(wanted), wanted) == ""
    assert metadata_patch(_live(wanted), wanted) == {}


@KINDS
def test_another_wish_needs_another(kind: str) -> None:
    live = _live(rendered(kind, {"nodeSelector": {"a": "b"}}))
    assert why_another(live, rendered(kind)) == "its connection asks for another one"


@KINDS
def test_what_is_added_on_its_way_in_does_no_harm(kind: str) -> None:
    """Hazard C71."""
    wanted = rendered(kind)
    live = _live(wanted)
    live["spec"]["suspend"] = False
    live["spec"]["sparkConf"]["spark.added.by"] = "an admission webhook"
    assert why_another(live, wanted) == ""


@KINDS
def test_an_edit_of_ours_needs_another_and_one_of_something_else_does_not(kind: str) -> None:
    wanted = rendered(kind)
    live = _live(wanted, generation=2)
    live["spec"]["suspend"] = True
    assert why_another(live, wanted) == ""
    live["spec"]["sparkConf"]["spark.added.by"] = "somebody"
    assert why_another(live, wanted) == "somebody has changed its spec.sparkConf"
    live = _live(wanted, generation=2)
    words = live["spec"].get("arguments") or live["spec"]["driverArgs"]
    words.append("--interval-seconds=1")
    assert "somebody has changed its spec." in why_another(live, wanted)
    live = _live(wanted, generation=2)
    live["spec"] = None
    assert why_another(live, wanted) == "somebody has changed its spec"


def test_lost_labels_and_annotations_are_put_back_without_another() -> None:
    wanted = rendered(KUBEFLOW)
    live = _live(wanted)
    live["metadata"]["annotations"] = {"somebody": "else"}
    del live["metadata"]["labels"]["app.kubernetes.io/component"]
    assert why_another(live, wanted) == ""
    assert metadata_patch(live, wanted) == {
        "labels": {"app.kubernetes.io/component": "load-pipeline"},
        "annotations": {MADE_FROM: wanted["metadata"]["annotations"][MADE_FROM]},
    }


def _live(wanted: dict[str, Any], generation: int = 1) -> dict[str, Any]:
    live = copy.deepcopy(wanted)
    live["metadata"]["generation"] = generation
    return live
