"""The pods of a pipeline: what is mounted into driver and executors, and where (R34). Pure."""

from __future__ import annotations

from typing import Any

from scalable_topics_operator.api.connection import ScalableTopicConnectionSpec
from scalable_topics_operator.api.spark_application import SparkApplicationSettings
from scalable_topics_operator.load.pipeline_job import JobFiles

# Spark adds to the container of this name, and to no other.
DRIVER, EXECUTOR = "spark-kubernetes-driver", "spark-kubernetes-executor"
THRESHOLDS_KEY = "thresholds.json"

_CREDENTIALS, _THRESHOLDS, _WORK = "credentials", "thresholds", "work"
_FOLDERS = {
    _CREDENTIALS: "/etc/segment-load/credentials",
    _THRESHOLDS: "/etc/segment-load/thresholds",
    _WORK: "/var/lib/segment-load",
}
_TOKEN, _CA, _CERTIFICATE, _KEY = "token", "ca.crt", "tls.crt", "tls.key"
# Of the user that Spark's images run as; files of the claim are given to it.
_SPARK_GROUP = 185


def work_path(path: str) -> str:
    """Where pods find a path on the claim; addresses and nothing stay as they are."""
    return _FOLDERS[_WORK] + path if path.startswith("/") else path


def pod_files(spec: ScalableTopicConnectionSpec, folder: str) -> JobFiles:
    """Where a pipeline finds its files in the pods.

    Args:
        spec: of the connection.
        folder: for checkpoint and state, as pods see it.
    """
    has = {file for _, keys in _secrets(spec) for _, file in keys}

    def credential(file: str) -> str:
        return f"{_FOLDERS[_CREDENTIALS]}/{file}" if file in has else ""

    return JobFiles(
        folder=folder,
        token_file=credential(_TOKEN),
        ca_file=credential(_CA),
        certificate_file=credential(_CERTIFICATE),
        key_file=credential(_KEY),
        thresholds_file=f"{_FOLDERS[_THRESHOLDS]}/{THRESHOLDS_KEY}",
    )


def pod_template(
    spec: ScalableTopicConnectionSpec, settings: SparkApplicationSettings, container: str, thresholds: str = ""
) -> dict[str, Any]:
    """A PodTemplateSpec, which both Spark operators hand to Spark without the help of a webhook.

    Args:
        spec: of the connection.
        settings: of the SparkApplication.
        container: `DRIVER` or `EXECUTOR`.
        thresholds: name of the ConfigMap of thresholds; empty for a pod that needs none.
    """
    volumes = _volumes(spec, settings, thresholds)
    main: dict[str, Any] = {
        "name": container,
        "volumeMounts": [
            {"name": name, "mountPath": _FOLDERS[name], **({} if name == _WORK else {"readOnly": True})}
            for name in volumes
        ],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    if settings.environment_secret_ref is not None:
        main["envFrom"] = [{"secretRef": {"name": settings.environment_secret_ref.name}}]
    pod: dict[str, Any] = {
        "containers": [main],
        "volumes": [{"name": name, **volume} for name, volume in volumes.items()],
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            **({} if settings.volume_claim is None else {"fsGroup": _SPARK_GROUP}),
        },
    }
    if settings.node_selector:
        pod["nodeSelector"] = dict(settings.node_selector)
    if settings.tolerations:
        pod["tolerations"] = [toleration.to_json_object() for toleration in settings.tolerations]
    return {"spec": pod}


def _volumes(
    spec: ScalableTopicConnectionSpec, settings: SparkApplicationSettings, thresholds: str
) -> dict[str, dict[str, Any]]:
    volumes: dict[str, dict[str, Any]] = {}
    secrets = _secrets(spec)
    if secrets:
        # As a whole folder: a file mounted by itself would not follow when a token is rotated.
        volumes[_CREDENTIALS] = {
            "projected": {
                "sources": [
                    {"secret": {"name": name, "items": [{"key": key, "path": file} for key, file in keys]}}
                    for name, keys in secrets
                ]
            }
        }
    if thresholds:
        items = [{"key": THRESHOLDS_KEY, "path": THRESHOLDS_KEY}]
        volumes[_THRESHOLDS] = {"configMap": {"name": thresholds, "items": items}}
    if settings.volume_claim is not None:
        volumes[_WORK] = {"persistentVolumeClaim": {"claimName": settings.volume_claim}}
    return volumes


def _secrets(spec: ScalableTopicConnectionSpec) -> list[tuple[str, list[tuple[str, str]]]]:
    """Names of Secrets, each with its keys and the files they become."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    auth, tls = spec.auth, spec.tls
    if auth is not None and auth.token is not None:
        found.append((auth.token.secret_ref.name, [(auth.token.secret_ref.key, _TOKEN)]))
    if auth is not None and auth.mtls is not None:
        found.append((auth.mtls.secret_ref.name, [("tls.crt", _CERTIFICATE), ("tls.key", _KEY)]))
    if tls.ca_secret_ref is not None:
        found.append((tls.ca_secret_ref.name, [(tls.ca_secret_ref.key, _CA)]))
    return found
