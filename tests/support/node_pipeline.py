"""What a user makes beside a connection whose pipeline runs in pods: rights of the driver, and a shared folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from dev.access import NodeAccess
from scalable_topics_operator.cluster.kube_client import KubeClient, Resource

Manifest = dict[str, Any]

PODS = Resource("", "v1", "pods", "Pod")
SERVICE_ACCOUNT, CLAIM = "segment-load", "segment-load"
"""As examples/spark-application.yaml names them."""
_EXAMPLE = Path(__file__).parents[2] / "examples" / "spark-application.yaml"
_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume")
_RIGHTS = tuple(
    Resource(group, "v1", f"{kind.lower()}s", kind)
    for group, kind in (
        ("", "ServiceAccount"),
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
    )
)


async def make_companions(kube: KubeClient, namespace: str, node: NodeAccess) -> None:
    """Make what examples/spark-application.yaml has beside the connection; the claim is a folder of the node."""
    manifests = {one["kind"]: one for one in yaml.safe_load_all(_EXAMPLE.read_text(encoding="utf-8"))}
    for resource in _RIGHTS:
        await kube.create(resource, namespace, manifests[resource.kind])
    claim = manifests[_CLAIMS.kind]
    volume = _volume(f"{namespace}-{CLAIM}", _shared_folder(node, namespace), claim["spec"])
    await kube.create(_VOLUMES, None, volume)
    claim["spec"] |= {"storageClassName": "", "volumeName": volume["metadata"]["name"]}
    await kube.create(_CLAIMS, namespace, claim)


def application_settings(node: NodeAccess) -> Manifest:
    """`spec.load.sparkApplication` for pods that share two cores with brokers and tests."""
    little = {f"spark.kubernetes.{pod}.request.cores": "100m" for pod in ("driver", "executor")}
    return {
        "image": _required(node.pipeline_image),
        "imagePullPolicy": "Never",
        "serviceAccount": SERVICE_ACCOUNT,
        "folder": "/pipelines",
        "volumeClaim": CLAIM,
        "driver": {"memory": "640m"},
        "executor": {"memory": "640m", "cores": 1},
        "sparkConf": little,
    }


def _required(image: str | None) -> str:
    assert image is not None, "this node has no image of the pipeline: start it with --spark"
    return image


def _shared_folder(node: NodeAccess, namespace: str) -> Path:
    folder = node.shared_directory / namespace
    folder.mkdir()
    # The pipeline's user is another one than the test's.
    folder.chmod(0o777)
    return folder


def _volume(name: str, folder: Path, claim: Manifest) -> Manifest:
    spec = {
        "capacity": claim["resources"]["requests"],
        "accessModes": claim["accessModes"],
        "storageClassName": "",
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": str(folder), "type": "Directory"},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
