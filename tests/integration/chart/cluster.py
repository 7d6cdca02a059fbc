"""What tests of the chart do with a real API server besides calls of our own client."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from dev import artifacts
from dev.access import KubernetesAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.reviews import ACCESS_REVIEWS
from tests.integration.chart.rendering import Document, of_kind

RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_TIMEOUT_SECONDS = 60


def kubectl(
    access: KubernetesAccess, *arguments: str, given: str = "", within_seconds: float = _TIMEOUT_SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run kubectl to its end, whatever that is."""
    command = [str(artifacts.kube_programs() / "kubectl"), "--kubeconfig", str(access.kubeconfig), *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=within_seconds, check=False)


def apply(access: KubernetesAccess, documents: Sequence[Document], *options: str) -> str:
    """Apply objects; answers what kubectl warns of. Raises AssertionError with its words."""
    done = kubectl(access, "apply", *options, "-f", "-", given=yaml.safe_dump_all(documents))
    assert done.returncode == 0, done.stderr
    return done.stderr


def account_of(documents: Sequence[Document]) -> str:
    """The service account that the rendered operator runs as."""
    (deployment,) = of_kind(documents, "Deployment")
    return str(deployment["spec"]["template"]["spec"]["serviceAccountName"])


async def may(kube: KubeClient, user: str, verb: str, what: str, namespace: str = "", name: str = "") -> bool:
    """Whether somebody may do something to `resource.group` or `resource/subresource.group`."""
    resource, _, group = what.partition(".")
    resource, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "resource": resource, "subresource": subresource, "group": group}
    spec = {"user": user, "resourceAttributes": {**attributes, "namespace": namespace, "name": name}}
    body = {"apiVersion": ACCESS_REVIEWS.api_version, "kind": ACCESS_REVIEWS.kind, "spec": spec}
    return bool((await kube.create(ACCESS_REVIEWS, None, body))["status"]["allowed"])


def kubeconfig_for(access: KubernetesAccess, token: str, folder: Path) -> Path:
    """A kubeconfig with a token in place of the administrator's certificate."""
    content: dict[str, Any] = yaml.safe_load(access.kubeconfig.read_text())
    assert base64.b64decode(content["users"][0]["user"]["client-certificate-data"])
    content["users"][0]["user"] = {"token": token}
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return file
