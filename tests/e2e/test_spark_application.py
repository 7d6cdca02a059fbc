"""The pipeline as pods that a real spark-operator makes, which the operator asks for with the rights of the chart."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev import pulsar_pod
from dev.access import NODE_SHARED_DIRECTORY
from dev.e2e import Images
from tests.e2e.kubectl import Manifest, apply, exists, kubectl, read_all, until
from tests.e2e.release import Release, Values
from tests.e2e.world import APPLICATIONS, ROOT, Toolbox, await_pipeline, await_ready, connection, topic

pytestmark = [pytest.mark.whole, pytest.mark.spark_operator, pytest.mark.timeout(1800)]

TOPIC = "measured"
EXAMPLE = ROOT / "examples" / "spark-application.yaml"
CONNECTION = "ScalableTopicConnection"
PIPELINE_SECONDS = 500


@pytest.fixture(scope="module")
def values() -> Values:
    return {"loadPipeline": {"sparkApplications": True}}


def test_the_records_of_a_spark_application_are_followed_and_it_goes_with_its_connection(
    release: Release, toolbox: Toolbox, images: Images
) -> None:
    documents = [each for each in yaml.safe_load_all(EXAMPLE.read_text(encoding="utf-8")) if each]
    (example,) = [each for each in documents if each["kind"] == CONNECTION]
    apply(*_with_a_volume([each for each in documents if each["kind"] != CONNECTION]), namespace=APPLICATIONS)
    load = example["spec"]["load"] | {"intervalSeconds": 5}
    load["sparkApplication"] |= _small(images.spark)
    apply(
        connection(serviceUrl=pulsar_pod.SERVICE_URL, load=load),
        topic(TOPIC, segments={"initial": 2}),
        namespace=APPLICATIONS,
    )
    await_ready("scalabletopic", TOPIC)
    with toolbox.traffic(TOPIC):
        await_pipeline(PIPELINE_SECONDS)
        roles = {each["metadata"]["labels"].get("spark-role") for each in read_all("pods", APPLICATIONS, "spark-role")}
        assert roles == {"driver", "executor"}
    assert exists("sparkapplication", "load-pulsar", APPLICATIONS)
    # A connection that asks for another one: it is deleted and made anew by the operator.
    apply(connection(serviceUrl=pulsar_pod.SERVICE_URL, load={"source": "Direct"}), namespace=APPLICATIONS)
    until(
        lambda: exists("sparkapplication", "load-pulsar", APPLICATIONS),
        lambda there: not there,
        what="a connection that wants no pipeline has none",
        within_seconds=120,
    )
    until(
        lambda: read_all("pods", APPLICATIONS, "spark-role"),
        lambda pods: pods == [],
        what="the pods go",
        within_seconds=120,
    )


def _small(image: str) -> dict[str, Any]:
    cores = {f"spark.kubernetes.{pod}.request.cores": "100m" for pod in ("driver", "executor")}
    executor = {"memory": "640m", "cores": 1, "instances": 1}
    return {"image": image, "driver": {"memory": "640m"}, "executor": executor, "sparkConf": cores}


def _with_a_volume(documents: list[Manifest]) -> list[Manifest]:
    """Bind the claim to a folder of the node where there is one, and else to what the cluster gives."""
    (claim,) = [each for each in documents if each["kind"] == "PersistentVolumeClaim"]
    shared = os.environ.get(NODE_SHARED_DIRECTORY)
    if shared is None:
        claim["spec"]["accessModes"] = ["ReadWriteOnce"]
        return documents
    folder = Path(shared) / "load"
    folder.mkdir()
    # The pipeline's user is another one than the test's.
    folder.chmod(0o777)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "segment-load"},
        "spec": {
            "capacity": claim["spec"]["resources"]["requests"],
            "accessModes": claim["spec"]["accessModes"],
            "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": str(folder), "type": "Directory"},
        },
    }
    claim["spec"] |= {"storageClassName": "", "volumeName": "segment-load"}
    return [volume, *documents]


@pytest.fixture(autouse=True, scope="module")
def cleaned() -> Any:
    """The claim and its volume go, for whoever comes next."""
    yield
    kubectl("delete", "persistentvolumeclaim", "segment-load", "--namespace", APPLICATIONS, "--ignore-not-found")
    kubectl("delete", "persistentvolume", "segment-load", "--ignore-not-found")
