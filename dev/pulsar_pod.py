"""Pulsar as a pod: one broker with its bookie and metadata in a StatefulSet, with the settings of local brokers."""

import base64
from pathlib import Path
from typing import Any

from dev import broker_settings, tokens
from dev.broker_settings import Profile
from dev.jvm import LOG_CONFIGURATION, Jvm

NAMESPACE = "pulsar"
NAME = "pulsar"
BROKER_SERVICE = "pulsar-broker"
SERVICE_PORT = 6650
WEB_PORT = 8080
ADMIN_URL = f"http://{BROKER_SERVICE}.{NAMESPACE}.svc:{WEB_PORT}"
SERVICE_URL = f"pulsar://{BROKER_SERVICE}.{NAMESPACE}.svc:{SERVICE_PORT}"
HEAP_MB = 400
# Pulsar's own image, where it can be pulled; it has its jars in the same place.
OFFICIAL_IMAGE = "apachepulsar/pulsar"
JARS = Path("/pulsar/lib")
HOME = Path("/run/pulsar")
DATA = Path("/pulsar/data")
USER = 10000
Manifest = dict[str, Any]


def pulsar_manifests(image: str, token_directory: Path) -> list[Manifest]:
    """Return the objects of a broker for tests and trials: its data goes with its pod.

    Args:
        image: has Java on its PATH and Pulsar's jars in `/pulsar/lib`.
        token_directory: as `tokens.create_all` left it; its files go into Secret `pulsar-tokens`.
    """
    labels = {"app": NAME}
    ports = [{"name": "service", "port": SERVICE_PORT}, {"name": "web", "port": WEB_PORT}]
    files = {file.name: base64.b64encode(file.read_bytes()).decode() for file in sorted(token_directory.iterdir())}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _object("v1", "Secret", "pulsar-tokens", data=files),
        _object("v1", "ConfigMap", NAME, data=_configuration()),
        # The pod has its name from this one, as soon as there is an address.
        _object(
            "v1", "Service", NAME, spec={"clusterIP": "None", "publishNotReadyAddresses": True, "selector": labels}
        ),
        _object("v1", "Service", BROKER_SERVICE, spec={"selector": labels, "ports": ports}),
        _object("apps/v1", "StatefulSet", NAME, spec=_stateful_set(image, labels)),
    ]


def token_secret(token_directory: Path, namespace: str) -> Manifest:
    """Return the Secret that examples/quickstart.yaml asks for, with the superuser's token."""
    token = tokens.token_file(token_directory, "superuser").read_text()
    named = {"name": "pulsar-token", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": named, "stringData": {"token": token}}


def _object(version: str, kind: str, name: str, **content: Any) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, **content}


def _configuration() -> dict[str, str]:
    address = f"{NAME}-0.{NAME}.{NAMESPACE}.svc.cluster.local"
    settings = broker_settings.standalone(address, SERVICE_PORT, WEB_PORT, HOME / "tokens", Profile.ORDINARY)
    settings["bindAddress"] = "0.0.0.0"
    return {"standalone.conf": broker_settings.render(settings), "log4j2.xml": LOG_CONFIGURATION}


def _stateful_set(image: str, labels: dict[str, str]) -> Manifest:
    command = Jvm(Path("java"), JARS, HOME).command(
        "org.apache.pulsar.PulsarStandaloneStarter",
        *("--config", str(HOME / "standalone.conf"), "--no-functions-worker", "--no-stream-storage"),
        *("--metadata-dir", str(DATA / "metadata"), "--bookkeeper-dir", str(DATA / "bookkeeper")),
        *("--advertised-address", f"{NAME}-0.{NAME}.{NAMESPACE}.svc.cluster.local"),
        heap_mb=HEAP_MB,
    )
    mounts: list[Manifest] = [
        {"name": "settings", "mountPath": str(HOME / file), "subPath": file}
        for file in ("standalone.conf", "log4j2.xml")
    ]
    mounts += [
        {"name": "tokens", "mountPath": str(HOME / "tokens"), "readOnly": True},
        {"name": "temporary", "mountPath": str(HOME / "tmp")},
        {"name": "data", "mountPath": str(DATA)},
    ]
    container = {
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "ports": [
            {"name": "service", "containerPort": SERVICE_PORT},
            {"name": "web", "containerPort": WEB_PORT},
        ],
        "readinessProbe": {"httpGet": {"path": "/metrics/", "port": "web"}, "periodSeconds": 2, "timeoutSeconds": 5},
        "resources": {"requests": {"cpu": "100m", "memory": "700Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": mounts,
    }
    pod = {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": 0,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": 10,
        "containers": [container],
        "volumes": [
            {"name": "settings", "configMap": {"name": NAME}},
            {"name": "tokens", "secret": {"secretName": "pulsar-tokens"}},
            {"name": "temporary", "emptyDir": {}},
            {"name": "data", "emptyDir": {}},
        ],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {"serviceName": NAME, "replicas": 1, "selector": {"matchLabels": labels}, "template": template}
