"""A real API server takes all that is rendered, and namespaces of the level `restricted` take the pods."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest

from dev.access import KubernetesAccess
from scalable_topics_operator.api.connection import ScalableTopicConnectionSpec
from scalable_topics_operator.load.spark_pods import DRIVER, EXECUTOR, pod_template
from tests.integration.chart.cluster import account_of, apply, kubectl
from tests.integration.chart.rendering import SETS, documents, pods_of, rendered, template, values_of
from tests.unit.api.manifests import SPARK_APPLICATION


@pytest.mark.parametrize("name", SETS)
def test_the_api_server_takes_it_all_without_a_warning(api_server: KubernetesAccess, name: str) -> None:
    found = [one for one in documents(rendered(name)) if one["kind"] != "Pod"]
    assert apply(api_server, found, "--dry-run=server", "--validate=strict", "--server-side", "--force-conflicts") == ""


@pytest.mark.parametrize("name", SETS)
def test_restricted_namespaces_take_the_pods(api_server: KubernetesAccess, namespace: str, name: str) -> None:
    found = documents(template(*values_of(name), namespace=namespace))
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account_of(found)}}
    apply(api_server, [account], "--namespace", namespace)
    pods = pods_of(found)
    assert len(pods) == 1 if name == "bare" else len(pods) == 3
    assert apply(api_server, pods, "--namespace", namespace, "--dry-run=server", "--validate=strict") == ""


def test_they_would_refuse_what_is_not_restricted(api_server: KubernetesAccess, namespace: str) -> None:
    (pod,) = pods_of(documents(template(*values_of("bare"), namespace=namespace)))
    for path in (("securityContext", "runAsNonRoot"), ("containers", 0, "securityContext", "capabilities")):
        wrong = deepcopy(pod)
        *above, last = path
        part = wrong["spec"]
        for step in above:
            part = part[step]
        del part[last]
        manifest = {**wrong, "spec": {**wrong["spec"], "serviceAccountName": "default"}}
        done = kubectl(
            api_server, "create", "--namespace", namespace, "--dry-run=server", "-f", "-", given=json.dumps(manifest)
        )
        assert done.returncode != 0
        assert 'violates PodSecurity "restricted:latest"' in done.stderr


@pytest.mark.parametrize("container", [DRIVER, EXECUTOR])
def test_restricted_namespaces_take_the_pods_of_a_pipeline(
    api_server: KubernetesAccess, namespace: str, container: str
) -> None:
    """Of the template that Spark makes them from, which adds the image and what it runs."""
    spec = ScalableTopicConnectionSpec.model_validate(
        {
            "adminUrl": "https://pulsar:8443",
            "auth": {"token": {"secretRef": {"name": "token"}}},
            "load": {"source": "Pipeline", "runner": "SparkApplication", "sparkApplication": SPARK_APPLICATION},
        }
    )
    assert spec.load.spark_application is not None
    template = pod_template(spec, spec.load.spark_application, container, "thresholds")
    for one in template["spec"]["containers"]:
        one["image"] = "segment-load:1"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": container}, "spec": template["spec"]}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    apply(api_server, [account], "--namespace", namespace, "--server-side", "--force-conflicts")
    assert apply(api_server, [pod], "--namespace", namespace, "--dry-run=server", "--validate=strict") == ""
