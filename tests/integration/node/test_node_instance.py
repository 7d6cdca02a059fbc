"""An instance with a node: pods run with names and addresses of their own, cannot leave, and leave nothing behind."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dev.instance import LocalCluster, Shape
from dev.node.cgroups import ROOT as CONTROL_GROUPS
from dev.node.network import NAMESPACES

pytestmark = [pytest.mark.node, pytest.mark.timeout(600)]

Factory = Callable[[Shape], LocalCluster]
KUBECTL_TIMEOUT_SECONDS = 150
# Told by a pod: who answers under the API server's name, what is in a Secret, and whether there is a way out.
LOOK = """
import json, socket, ssl, urllib.error, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount"
context = ssl.create_default_context(cafile=f"{folder}/ca.crt")
token = open(f"{folder}/token").read()
request = urllib.request.Request(
    "https://kubernetes.default.svc.cluster.local/version", headers={"Authorization": f"Bearer {token}"}
)
found = {"version": json.load(urllib.request.urlopen(request, context=context, timeout=20))["gitVersion"]}
found["secret"] = open("/secret/word").read()
for place in ("192.0.2.1", "example.invalid"):
    try:
        socket.create_connection((place, 80), timeout=3).close()
        found[place] = "reached"
    except OSError as error:
        found[place] = "unreachable"
print(json.dumps(found))
"""


def traces() -> set[str]:
    """What a node makes on a machine outside its own directory, and processes that know of one."""
    found = {line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()}
    for pattern in ("*", "*/*"):
        found |= {str(path) for path in CONTROL_GROUPS.glob(pattern) if path.is_dir()}
    for directory in (NAMESPACES, Path("/sys/class/net"), Path("/var/log/containers"), Path("/run/containerd/s")):
        found |= {str(path) for path in directory.glob("*")}
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = process.read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if b"containerd-shim" in arguments[0] or arguments[0].endswith((b"kubelet", b"containerd", b"/pause")):
            found.add(b" ".join(arguments).decode(errors="replace"))
    return found


def kubectl(cluster: LocalCluster, *arguments: str, manifest: Any = None) -> str:
    access = cluster.kubernetes.access
    command = cluster.command([str(cluster.kubernetes.kubectl), "--kubeconfig", str(access.kubeconfig), *arguments])
    done = subprocess.run(
        command,
        input=json.dumps(manifest) if manifest else None,
        capture_output=True,
        text=True,
        timeout=KUBECTL_TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def pod(name: str, image: str, *command: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "Never",
        "command": list(command),
        "volumeMounts": [{"name": "secret", "mountPath": "/secret"}],
    }
    volume = {"name": "secret", "secret": {"secretName": "words"}}
    spec = {"containers": [container], "volumes": [volume], "restartPolicy": "Never"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize("crashed", [(), ("kubelet", "containerd")], ids=["in good order", "after a crash"])
def test_pods_run_cannot_leave_and_leave_nothing(local_cluster: Factory, crashed: tuple[str, ...]) -> None:
    before = traces()
    cluster = local_cluster(Shape(brokers=0, node=True, spark=True))
    image = cluster.node.access.pipeline_image
    assert image is not None
    kubectl(cluster, "create", "secret", "generic", "words", "--from-literal=word=open")
    kubectl(cluster, "apply", "-f", "-", manifest=pod("looking", image, "python3", "-c", LOOK))
    kubectl(cluster, "apply", "-f", "-", manifest=pod("staying", image, "sleep", "1000"))
    ended = ["--for=jsonpath={.status.containerStatuses[0].state.terminated}", "--timeout=120s"]
    kubectl(cluster, "wait", "pod/looking", *ended)
    assert json.loads(kubectl(cluster, "logs", "looking")) == {
        "version": json.loads(kubectl(cluster, "version", "-o", "json"))["serverVersion"]["gitVersion"],
        "secret": "open",
        "192.0.2.1": "unreachable",
        "example.invalid": "unreachable",
    }
    kubectl(cluster, "wait", "pod/staying", "--for=condition=Ready", "--timeout=60s")
    assert kubectl(cluster, "exec", "staying", "--", "cat", "/secret/word") == "open"
    made = traces() - before
    assert any(cluster.node.network.name in trace for trace in made)
    assert any(str(cluster.directory) in trace for trace in made)

    cluster.kill(*crashed)
    cluster.stop()
    assert traces() & made == set()
    assert [file.name for file in cluster.directory.iterdir()] == ["logs"]
