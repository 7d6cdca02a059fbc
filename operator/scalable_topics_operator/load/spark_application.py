"""A pipeline as the SparkApplication of either Spark operator (R34). Pure; of Secrets it holds the names alone."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scalable_topics_operator.api.common import API_VERSION, GROUP
from scalable_topics_operator.api.connection import ScalableTopicConnectionSpec
from scalable_topics_operator.api.spark_application import SparkApplicationSettings, SparkPod
from scalable_topics_operator.load.pipeline_job import PipelineJob, stream_arguments
from scalable_topics_operator.load.spark_pods import DRIVER, EXECUTOR, pod_files, pod_template, work_path

Manifest = dict[str, Any]

OWNER_KIND = "ScalableTopicConnection"
MADE_FROM = f"{GROUP}/made-from"
MANAGER_LABEL, MANAGER = "app.kubernetes.io/managed-by", "scalable-topics-operator"
MAIN_FILE = "local:///opt/segment-load/main.py"
SPARK_VERSION = "4.3.0"
KUBEFLOW, APACHE = "sparkoperator.k8s.io/v1beta2", "spark.apache.org/v1"
RESTART_SECONDS = 30

# What Spark makes of the name (`-driver`, `-ui-svc`, a prefix with a hash) has to be a label of 63, too.
_LONGEST_NAME = 40
_HASH_LENGTH = 8
_PREFIX = "load-"
# A stream's planner has overflowed the default stack.
_JAVA_OPTIONS = "-Xss4m"
_LEAST_PARTITIONS = 4
_COUNTED_ANEW_SECONDS = 600
_MOST_RESTARTS = 2**31 - 1


def application_name(connection: str) -> str:
    """Name of a connection's SparkApplication: a DNS label that begins with a letter, the same for no other.

    Args:
        connection: name of the connection, a DNS subdomain.
    """
    plain = _PREFIX + connection
    if len(plain) <= _LONGEST_NAME and "." not in connection:
        return plain
    digest = hashlib.sha256(connection.encode()).hexdigest()[:_HASH_LENGTH]
    stem = re.sub(r"[^a-z0-9-]", "-", plain)[: _LONGEST_NAME - _HASH_LENGTH - 1].rstrip("-")
    return f"{stem}-{digest}"


def thresholds_name(connection: str) -> str:
    """Name of the ConfigMap that holds the thresholds of a connection's topics."""
    return f"{application_name(connection)}-thresholds"


def owned_metadata(job: PipelineJob, name: str) -> Manifest:
    """Metadata of an object that goes with its connection."""
    return {
        "name": name,
        "namespace": job.namespace,
        "labels": {
            MANAGER_LABEL: MANAGER,
            "app.kubernetes.io/component": "load-pipeline",
            "app.kubernetes.io/instance": application_name(job.name),
        },
        "ownerReferences": [
            {
                "apiVersion": API_VERSION,
                "kind": OWNER_KIND,
                "name": job.name,
                "uid": job.uid,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ],
    }


def render(spec: ScalableTopicConnectionSpec, settings: SparkApplicationSettings, job: PipelineJob) -> Manifest:
    """The SparkApplication that does a job.

    Args:
        spec: of the connection; its Secrets hold what the pipeline proves itself with.
        settings: of its SparkApplication.
        job: what to do.
    """
    run = _run_of(spec, settings, job)
    body = _kubeflow_spec(run) if settings.api_version == KUBEFLOW else _apache_spec(run)
    metadata = owned_metadata(job, application_name(job.name))
    metadata["annotations"] = {MADE_FROM: _digest(body)}
    return {"apiVersion": settings.api_version, "kind": "SparkApplication", "metadata": metadata, "spec": body}


def why_another(live: Mapping[str, Any], wanted: Manifest) -> str:
    """Why a SparkApplication has to be replaced by the wanted one; empty while it has not.

    What was added to it on its way in, such as defaults, does no harm; what somebody changed later does, if it is ours.

    Args:
        live: as the API server has it.
        wanted: as rendered.
    """
    made_from = (live["metadata"].get("annotations") or {}).get(MADE_FROM)
    if made_from not in (None, wanted["metadata"]["annotations"][MADE_FROM]):
        return "its connection asks for another one"
    was_edited = live["metadata"].get("generation", 1) > 1 or made_from is None
    place = _first_difference(live.get("spec"), wanted["spec"], "spec") if was_edited else ""
    return f"somebody has changed its {place}" if place else ""


def metadata_patch(live: Mapping[str, Any], wanted: Manifest) -> Manifest:
    """What has to be put back into the labels and annotations; empty if nothing has."""
    patch = {}
    for part, texts in wanted["metadata"].items():
        if part in ("labels", "annotations"):
            there = live["metadata"].get(part) or {}
            lacking = {key: text for key, text in texts.items() if there.get(key) != text}
            patch.update({part: lacking} if lacking else {})
    return patch


def _first_difference(live: Any, wanted: Any, place: str) -> str:
    """Where something is not as wanted; what is there besides counts in the settings of Spark only."""
    if not isinstance(wanted, Mapping):
        return "" if live == wanted else place
    if not isinstance(live, Mapping):
        return place
    if place == "spec.sparkConf" and live != wanted:
        return place
    differences = (_first_difference(live.get(key), value, f"{place}.{key}") for key, value in wanted.items())
    return next((found for found in differences if found), "")


@dataclass(frozen=True, slots=True)
class _Run:
    """What both operators are told, each in its words."""

    settings: SparkApplicationSettings
    arguments: tuple[str, ...]
    conf: Mapping[str, str]
    driver: Manifest
    executor: Manifest


def _run_of(spec: ScalableTopicConnectionSpec, settings: SparkApplicationSettings, job: PipelineJob) -> _Run:
    thresholds = thresholds_name(job.name)
    # Connections that share a folder must not share a checkpoint.
    folder = f"{work_path(settings.folder).rstrip('/')}/{job.namespace}/{job.name}"
    at_work = replace(job, history_path=work_path(job.history_path))
    conf = {
        "spark.sql.shuffle.partitions": str(_partitions(settings)),
        # It is open to whoever reaches the pod.
        "spark.ui.enabled": "false",
        **settings.spark_conf,
        # It would note for every column where in our code it was made: a second for each batch.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    return _Run(
        settings,
        stream_arguments(at_work, pod_files(spec, folder)),
        conf,
        pod_template(spec, settings, DRIVER, thresholds),
        pod_template(spec, settings, EXECUTOR),
    )


def _kubeflow_spec(run: _Run) -> Manifest:
    """In full: what is left out has a default only where that operator's webhook is on, and none restarts then."""
    settings, executor = run.settings, run.settings.executor
    dynamic = settings.dynamic_allocation
    spec: Manifest = {
        "type": "Python",
        "mode": "cluster",
        "sparkVersion": SPARK_VERSION,
        "image": settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "mainApplicationFile": MAIN_FILE,
        "arguments": list(run.arguments),
        "sparkConf": dict(run.conf),
        "restartPolicy": {
            "type": "Always",
            "onFailureRetryInterval": RESTART_SECONDS,
            "onSubmissionFailureRetryInterval": RESTART_SECONDS,
        },
        "timeToLiveSeconds": settings.ttl_seconds,
        "driver": {
            **_kubeflow_pod(settings.driver),
            "serviceAccount": settings.service_account,
            "javaOptions": _JAVA_OPTIONS,
            "template": run.driver,
        },
        "executor": {**_kubeflow_pod(executor), "template": run.executor},
    }
    if settings.image_pull_secrets:
        spec["imagePullSecrets"] = list(settings.image_pull_secrets)
    if dynamic is not None and dynamic.enabled:
        spec["dynamicAllocation"] = {
            "enabled": True,
            "initialExecutors": dynamic.min_executors,
            "minExecutors": dynamic.min_executors,
            "maxExecutors": dynamic.max_executors,
            "shuffleTrackingEnabled": True,
        }
    else:
        spec["executor"]["instances"] = executor.instances
    return spec


def _kubeflow_pod(pod: SparkPod) -> Manifest:
    limit = {} if pod.cpu_limit is None else {"coreLimit": pod.cpu_limit}
    return {"cores": pod.cores, "memory": pod.memory, **limit}


def _apache_spec(run: _Run) -> Manifest:
    settings, dynamic = run.settings, run.settings.dynamic_allocation
    conf = {
        **run.conf,
        "spark.kubernetes.container.image": settings.image,
        "spark.kubernetes.container.image.pullPolicy": settings.image_pull_policy,
        "spark.kubernetes.authenticate.driver.serviceAccountName": settings.service_account,
        "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
    }
    if settings.image_pull_secrets:
        conf["spark.kubernetes.container.image.pullSecrets"] = ",".join(settings.image_pull_secrets)
    for name, pod in (("driver", settings.driver), ("executor", settings.executor)):
        conf |= {f"spark.{name}.cores": str(pod.cores), f"spark.{name}.memory": pod.memory}
        if pod.cpu_limit is not None:
            conf[f"spark.kubernetes.{name}.limit.cores"] = pod.cpu_limit
    if dynamic is not None and dynamic.enabled:
        conf |= {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.initialExecutors": str(dynamic.min_executors),
            "spark.dynamicAllocation.minExecutors": str(dynamic.min_executors),
            "spark.dynamicAllocation.maxExecutors": str(dynamic.max_executors),
        }
    else:
        conf["spark.executor.instances"] = str(settings.executor.instances)
    return {
        "deploymentMode": "ClusterMode",
        "mainClass": "org.apache.spark.deploy.PythonRunner",
        "pyFiles": MAIN_FILE,
        "driverArgs": list(run.arguments),
        "runtimeVersions": {"sparkVersion": SPARK_VERSION},
        "sparkConf": conf,
        "driverSpec": {"podTemplateSpec": run.driver},
        "executorSpec": {"podTemplateSpec": run.executor},
        "applicationTolerations": {
            "restartConfig": {
                "restartPolicy": "Always",
                "maxRestartAttempts": _MOST_RESTARTS,
                "restartBackoffMillis": RESTART_SECONDS * 1000,
                "restartCounterResetMillis": _COUNTED_ANEW_SECONDS * 1000,
            },
            "resourceRetainPolicy": "Never",
            "ttlAfterStopMillis": settings.ttl_seconds * 1000,
        },
    }


def _partitions(settings: SparkApplicationSettings) -> int:
    """As many parts of a batch as there are cores to work on them; Spark's own 200 would be tasks of nothing."""
    dynamic, executor = settings.dynamic_allocation, settings.executor
    most = dynamic.max_executors if dynamic is not None and dynamic.enabled else executor.instances
    return max(_LEAST_PARTITIONS, most * executor.cores)


def _digest(body: Manifest) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:32]
