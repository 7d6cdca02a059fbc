"""What every demonstration stands on: kubectl, replicas of the operator, the brokers' admin API, and a console."""

import json
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.text import Text

from dev.access import PulsarAccess
from dev.demo_traffic import DemoTraffic
from dev.errors import DevError
from dev.layout_picture import draw
from scalable_topics.layout import SegmentLayout, from_record
from scalable_topics_operator.cluster.lease_record import shard_lease_name
from scalable_topics_operator.cluster.shards import shard_of
from tests.support.running_operator import RunningOperator

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
TOPIC = "orders"
SUBSCRIPTION = "billing"
CONNECTION = "pulsar"
_CRDS = EXAMPLES.parent / "crds"
_WAIT_SECONDS = 60.0
_SUPERVISOR = shlex.join((sys.executable, "-m", "segment_load", "supervise", "--master", "local[1]"))
_MESSAGES_BETWEEN_CHANGES = 500
_NAMESPACE = "default"
_SHARDS = 4
_LEASE_SECONDS = 3


class Kubectl:
    """kubectl against one API server."""

    def __init__(self, program: Path, kubeconfig: Path) -> None:
        self.program = program
        self.kubeconfig = kubeconfig

    def __call__(self, *arguments: str, manifest: str | None = None) -> str:
        command = [str(self.program), "--kubeconfig", str(self.kubeconfig), *arguments]
        result = subprocess.run(command, input=manifest, capture_output=True, text=True, check=False, timeout=60)
        if result.returncode:
            raise DevError(f"kubectl {' '.join(arguments)}: {result.stderr.strip()}")
        return result.stdout

    def object(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("get", kind, name, "-o", "json"))
        return found


class Stage:
    """A console, and what is shown on it.

    Args:
        console: where everything is told.
        kubectl: of the API server.
        pulsar: the brokers.
    """

    def __init__(self, console: Console, kubectl: Kubectl, pulsar: PulsarAccess) -> None:
        self.console = console
        self.kubectl = kubectl
        self.pulsar = pulsar
        self.layouts: list[SegmentLayout] = []

    def install(self) -> None:
        """Bring our kinds, and the Secret that the quick start names."""
        self.kubectl("apply", "--server-side", "-f", str(_CRDS))
        token = f"--from-literal=token={self.pulsar.superuser_token}"
        self.kubectl("create", "secret", "generic", "pulsar-token", token)

    def begin(self, **connection: Any) -> None:
        """Apply the quick start with the address of these brokers and what else its connection is to say."""
        found = documents(EXAMPLES / "quickstart.yaml")
        for document in found:
            if document["kind"] == "ScalableTopicConnection":
                document["spec"] |= {"adminUrl": self.pulsar.admin_url, **connection}
        self.console.rule("kubectl apply -f examples/quickstart.yaml")
        self.console.print(self.kubectl("apply", "-f", "-", manifest=yaml.safe_dump_all(found)).rstrip())
        self.wait("the topic is Ready", self.is_ready)
        self.layouts.append(self.layout())
        self.show("get", "scalabletopicconnections,scalabletopics")

    def operate(self, manifest: dict[str, Any], meanwhile: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """Have an operation done, and something else meanwhile; answers its status, however it ended."""
        name, kind = manifest["metadata"]["name"], manifest["spec"]["type"]
        started = time.monotonic()
        self.kubectl("apply", "-f", "-", manifest=yaml.safe_dump(manifest))
        meanwhile()
        self.wait(f"{name} has ended", lambda: self._phase(name) in ("Succeeded", "Failed"))
        status: dict[str, Any] = self.kubectl.object("segmentoperation", name)["status"]
        seconds = time.monotonic() - started
        self.console.print(Text(f"{kind} {name}: {status['phase']} in {seconds:.1f} s: {status['message']}"))
        return status

    def succeed(
        self, manifest: dict[str, Any], traffic: DemoTraffic, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        """Have an operation done under traffic, and the layout kept. Raises DevError if it fails."""
        with traffic.changing():
            status = self.operate(manifest, meanwhile)
        if status["phase"] != "Succeeded":
            raise DevError(f"{manifest['metadata']['name']} failed: {status['message']}")
        self.layouts.append(self.layout())

    def leader(self, operators: Sequence[RunningOperator]) -> RunningOperator:
        """The replica that leads the topic's shard."""
        shard = shard_of(f"topic://public/default/{TOPIC}", _SHARDS)
        self.show("get", "leases", "-n", _NAMESPACE)
        holder = self.kubectl.object("lease", shard_lease_name(shard))["spec"]["holderIdentity"]
        return next(operator for operator in operators if operator.identity == holder)

    def settle(self, traffic: DemoTraffic) -> None:
        """Let some ordinary traffic pass between two changes."""
        wanted = traffic.stored + _MESSAGES_BETWEEN_CHANGES
        self.wait("messages flow", lambda: traffic.stored >= wanted)

    def layout(self) -> SegmentLayout:
        """The topic's layout, as its object says."""
        return from_record(self.kubectl.object("scalabletopic", TOPIC)["status"]["layout"])

    def is_ready(self) -> bool:
        """Whether the topic is Ready."""
        return self.condition("Ready").get("status") == "True"

    def condition(self, kind: str, resource: str = "scalabletopic", name: str = TOPIC) -> dict[str, Any]:
        """A condition of the topic, or of something else; empty if it has none."""
        found = self.kubectl.object(resource, name).get("status", {}).get("conditions", [])
        return next((one for one in found if one["type"] == kind), {})

    def show_history(self) -> None:
        """Show how the layout came to be, and what the objects and their events tell of it."""
        self.console.rule("the layout, an epoch a row")
        self.console.print(draw(self.layouts))
        self.show("get", "scalabletopics,segmentoperations", "-o", "wide")
        self.show("get", "events", "-o", "custom-columns=TYPE:.type,REASON:.reason,MESSAGE:.message")

    def show(self, *arguments: str) -> None:
        """Show what kubectl says."""
        self.console.rule(f"kubectl {' '.join(arguments[:2])}")
        self.console.print(Text(self.kubectl(*arguments).rstrip()), soft_wrap=True)

    def ask(self, path: str) -> Any:
        """Ask the brokers' admin API."""
        request = urllib.request.Request(
            f"{self.pulsar.admin_url}/admin/v2/{path}",
            headers={"Authorization": f"Bearer {self.pulsar.superuser_token}"},
        )
        with urllib.request.urlopen(request, timeout=20) as response:
            return json.load(response)

    def wait(self, what: str, holds: Callable[[], bool], within_seconds: float = _WAIT_SECONDS) -> None:
        """Wait until something holds. Raises DevError."""
        deadline = time.monotonic() + within_seconds
        while not holds():
            if time.monotonic() > deadline:
                raise DevError(f"not within {within_seconds:.0f} s: {what}")
            time.sleep(0.1)

    def _phase(self, name: str) -> str:
        return str(self.kubectl.object("segmentoperation", name).get("status", {}).get("phase", ""))


def documents(file: Path) -> list[dict[str, Any]]:
    """What a file of manifests holds."""
    return [document for document in yaml.safe_load_all(file.read_text()) if document]


@contextmanager
def operators(kubeconfig: Path, logs: Path, replicas: int, *flags: str) -> Iterator[Sequence[RunningOperator]]:
    """Replicas of the operator, ended whatever happens; their logs are shown if something fails."""
    common = (f"--shards={_SHARDS}", f"--lease-seconds={_LEASE_SECONDS}", f"--pipeline-command={_SUPERVISOR}", *flags)
    running = [
        RunningOperator(
            kubeconfig,
            _NAMESPACE,
            logs / f"operator-{number}.log",
            (*common, f"--pipeline-folder={logs / f'pipelines-{number}'}"),
        )
        for number in range(replicas)
    ]
    try:
        for operator in running:
            operator.launch()
        for operator in running:
            operator.wait_until_working()
        yield running
        for operator in running:
            operator.stop()
    except DevError:
        for operator in running:
            sys.stderr.write("".join(operator.log_text().splitlines(keepends=True)[-30:]))
        raise
    finally:
        for operator in running:
            operator.kill()
