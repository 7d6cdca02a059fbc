"""What the end-to-end tests have in a cluster beside the release: a broker, and a pod that uses it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from dev import pulsar_pod, tokens
from scalable_topics.layout import SegmentLayout, TopicName, classic_segment_name, from_record
from tests.e2e.kubectl import Manifest, apply, condition, kubectl, read, until
from tests.e2e.pods.traffic import STARTED
from tests.e2e.report import Report

ROOT = Path(__file__).parents[2]
APPLICATIONS = "applications"
TOOLBOX = "toolbox"
_DASHBOARD = "dashboard"
TOPIC_API = "/admin/v2/scalable/public/default"
# Files that a pod of the tests runs, beside what is in the operator's image.
HARNESS = (
    "dev/__init__.py",
    "dev/access.py",
    "dev/errors.py",
    "tests/e2e/__init__.py",
    "tests/e2e/pods/__init__.py",
    "tests/e2e/pods/ordered_reading.py",
    "tests/e2e/pods/traffic.py",
    "tests/support/__init__.py",
    "tests/support/application.py",
    "tests/support/stored_messages.py",
)
START_SECONDS = 180
DRAIN_SECONDS = 180
# What asks the gateway and the brokers from within the cluster.
ASK = """
import sys, urllib.request, urllib.error
url, token_file, *rest = sys.argv[1:]
method, body = (rest + [None])[:2] if rest else ("GET", None)
request = urllib.request.Request(url, data=body.encode() if body is not None else None, method=method)
request.add_header("Authorization", "Bearer " + open(token_file).read())
request.add_header("Content-Type", "application/json")
try:
    with urllib.request.urlopen(request, timeout=20) as answer:
        print(answer.status, answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except OSError as error:
    print(0, error)
"""


class Toolbox:
    """A pod of the operator's image that sends, receives and asks from within the cluster.

    Args:
        report: takes what became of messages.
    """

    def __init__(self, report: Report) -> None:
        self._report = report

    def ask(self, url: str, token_file: str, method: str = "GET", body: str | None = None) -> tuple[int, str]:
        """Make a request; answers status and body, status 0 where nobody answered."""
        more = [method] + ([body] if body is not None else [])
        status, _, text = self.execute("python3", "-c", ASK, url, token_file, *more).partition(" ")
        return int(status), text.strip()

    def execute(self, *command: str, text: str | None = None) -> str:
        """Run a command in the pod; answers its output."""
        options = ["--stdin"] if text is not None else []
        return kubectl("exec", "--namespace", APPLICATIONS, *options, TOOLBOX, "--", *command, text=text)

    @contextmanager
    def traffic(self, topic: str, subscription: str = "billing") -> Iterator[None]:
        """Have messages sent and received on `public/default/{topic}` meanwhile; afterwards none may be mistreated."""
        marker = f"/tmp/segments-{topic}"
        self.execute("rm", "-f", marker)
        name = f"topic://public/default/{topic}"
        command = ["python3", "-m", "tests.e2e.pods.traffic", pulsar_pod.SERVICE_URL, name, subscription, marker]
        child = subprocess.Popen(
            ["kubectl", "exec", "--namespace", APPLICATIONS, TOOLBOX, "--", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert child.stdout is not None
            line = child.stdout.readline()
            assert line.strip() == STARTED, child.communicate(timeout=DRAIN_SECONDS)
            yield
            self.execute("sh", "-c", f"cat > {marker}", text="\n".join(segment_topics(topic)))
            output, errors = child.communicate(timeout=DRAIN_SECONDS)
        finally:
            # Of a test that has failed: what runs in the pod goes on until it is told, and holds the topic.
            self.execute("touch", marker)
            child.kill()
            child.wait()
        assert child.returncode == 0, errors
        found = json.loads(output.splitlines()[-1])
        self._report.judged(topic, found)
        assert found.pop("sent") > 0
        found.pop("longest_ms")
        assert not any(found.values()), found

    def segments_on_broker(self, namespace: str = "public/default") -> set[str]:
        """Names of the topics that the broker really has."""
        status, body = self.ask(f"{pulsar_pod.ADMIN_URL}/admin/v2/persistent/{namespace}", "/var/run/pulsar/token")
        assert status == 200, body
        return set(json.loads(body))


def install_pulsar(image: str, directory: Path) -> None:
    """Start a broker and wait until it serves; its tokens are made in a directory."""
    tokens.create_all(directory)
    apply(*pulsar_pod.pulsar_manifests(image, directory))
    kubectl(
        "rollout", "status", "--namespace", pulsar_pod.NAMESPACE, "statefulset/pulsar", f"--timeout={START_SECONDS}s"
    )


def make_toolbox(image: str, directory: Path, report: Report) -> Toolbox:
    """Make the namespace of applications with the broker's token in it, and the pod; wait until it runs."""
    apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": APPLICATIONS}})
    apply(
        pulsar_pod.token_secret(directory, APPLICATIONS),
        _harness(),
        *_dashboard(),
        _toolbox(image),
        namespace=APPLICATIONS,
    )
    kubectl(
        "wait", "--namespace", APPLICATIONS, f"pod/{TOOLBOX}", "--for=condition=Ready", f"--timeout={START_SECONDS}s"
    )
    toolbox = Toolbox(report)
    # It answers before it has its namespaces.
    url = f"{pulsar_pod.ADMIN_URL}/admin/v2/namespaces/public"
    until(
        lambda: toolbox.ask(url, "/var/run/pulsar/token"),
        lambda answer: answer[0] == 200 and "public/default" in answer[1],
        what="the broker has its namespaces",
        within_seconds=START_SECONDS,
    )
    return toolbox


def quickstart() -> list[Manifest]:
    """examples/quickstart.yaml as it is."""
    text = (ROOT / "examples" / "quickstart.yaml").read_text(encoding="utf-8")
    return [document for document in yaml.safe_load_all(text) if document]


def connection(**spec: Any) -> Manifest:
    """The connection of the quickstart, with more in its spec."""
    (found,) = [each for each in quickstart() if each["kind"] == "ScalableTopicConnection"]
    found["spec"] |= spec
    return found


def topic(name: str, **spec: Any) -> Manifest:
    """The topic of the quickstart under another name, with more in its spec."""
    (found,) = [each for each in quickstart() if each["kind"] == "ScalableTopic"]
    found["metadata"]["name"] = name
    found["spec"] |= {"topic": f"topic://public/default/{name}"} | spec
    return found


def operation(name: str, topic_name: str, **spec: Any) -> Manifest:
    """A SegmentOperation."""
    return {
        "apiVersion": "scalabletopics.io/v1alpha1",
        "kind": "SegmentOperation",
        "metadata": {"name": name},
        "spec": {"scalableTopic": topic_name, **spec},
    }


def operate(manifest: Manifest, within_seconds: float = 120) -> None:
    """Have an operation done, and wait until it has succeeded."""
    apply(manifest, namespace=APPLICATIONS)
    await_operation(manifest["metadata"]["name"], within_seconds)


def await_operation(name: str, within_seconds: float = 120) -> None:
    """Wait until an operation has succeeded."""
    status = until(
        lambda: read("segmentoperation", name, APPLICATIONS).get("status", {}),
        lambda status: status.get("phase") in ("Succeeded", "Failed"),
        what=f"operation {name} has ended",
        within_seconds=within_seconds,
    )
    assert status["phase"] == "Succeeded", status


def await_ready(kind: str, name: str, within_seconds: float = 120, namespace: str = APPLICATIONS) -> Manifest:
    """Wait until an object is Ready as of its present generation; answers it."""

    def is_ready(found: Manifest) -> bool:
        ready = condition(found, "Ready")
        return ready.get("status") == "True" and ready.get("observedGeneration") == found["metadata"]["generation"]

    return until(
        lambda: read(kind, name, namespace), is_ready, what=f"{kind} {name} is Ready", within_seconds=within_seconds
    )


def await_pipeline(within_seconds: float) -> None:
    """Wait until the records of the connection's pipeline are what decisions are made from."""
    until(
        lambda: condition(read("scalabletopicconnection", "pulsar", APPLICATIONS), "LoadFresh"),
        lambda found: found.get("reason") == "PipelineFollowed",
        what="the pipeline's records are followed",
        within_seconds=within_seconds,
    )


def layout(name: str) -> SegmentLayout:
    """The layout in a topic's status."""
    return from_record(read("scalabletopic", name, APPLICATIONS)["status"]["layout"])


def active(name: str) -> list[int]:
    """Numbers of a topic's active segments."""
    return [number for number, segment in sorted(layout(name).segments.items()) if segment.is_active]


def segment_topics(name: str) -> list[str]:
    """Names of a topic's segments on the broker, parents first."""
    parsed = TopicName.parse(f"public/default/{name}")
    return [
        classic_segment_name(parsed, segment.hash_range, segment.segment_id)
        for _, segment in sorted(layout(name).segments.items())
    ]


def _harness() -> Manifest:
    content = {file.replace("/", "."): (ROOT / file).read_text(encoding="utf-8") for file in HARNESS}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "harness"}, "data": content}


def rights_of_the_dashboard(name: str, resources: list[str], verbs: list[str]) -> list[Manifest]:
    """A Role of that name, with these rights to our kinds, and its binding to the account of the toolbox."""
    rights = "rbac.authorization.k8s.io"
    named = {"metadata": {"name": name}}
    rule = {"apiGroups": ["scalabletopics.io"], "resources": resources, "verbs": verbs}
    return [
        {"apiVersion": f"{rights}/v1", "kind": "Role", **named, "rules": [rule]},
        {
            "apiVersion": f"{rights}/v1",
            "kind": "RoleBinding",
            **named,
            "roleRef": {"apiGroup": rights, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": _DASHBOARD, "namespace": APPLICATIONS}],
        },
    ]


def _dashboard() -> list[Manifest]:
    """Who may see topics through the gateway and consume from them, as docs/gateway.md has it."""
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": _DASHBOARD}},
        *rights_of_the_dashboard(_DASHBOARD, ["scalabletopics"], ["get", "consume"]),
    ]


def _toolbox(image: str) -> Manifest:
    items = [{"key": file.replace("/", "."), "path": file} for file in HARNESS]
    token = {"serviceAccountToken": {"audience": "scalable-topics", "path": "token"}}
    container = {
        "name": TOOLBOX,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "infinity"],
        "workingDir": "/harness",
        "env": [{"name": "PYTHONPATH", "value": "/harness:/opt/scalable-topics/project:/opt/scalable-topics/packages"}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "harness", "mountPath": "/harness"},
            {"name": "pulsar", "mountPath": "/var/run/pulsar"},
            {"name": "gateway", "mountPath": "/var/run/gateway"},
            {"name": "temporary", "mountPath": "/tmp"},
        ],
    }
    spec = {
        "serviceAccountName": _DASHBOARD,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [
            {"name": "harness", "configMap": {"name": "harness", "items": items}},
            {"name": "pulsar", "secret": {"secretName": "pulsar-token"}},
            {"name": "gateway", "projected": {"sources": [token]}},
            {"name": "temporary", "emptyDir": {}},
        ],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": TOOLBOX}, "spec": spec}
