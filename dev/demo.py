"""`make demo`: a topic from manifest to split and merge, on a real API server and a real broker, in one go."""

import json
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from dev.access import PulsarAccess, existing_cluster
from dev.demo_traffic import DemoTraffic
from dev.errors import DevError
from dev.instance import LocalCluster, Shape
from dev.layout_picture import draw
from scalable_topics.layout import SegmentLayout, TopicName, classic_segment_name, from_record
from scalable_topics_operator.cluster.lease_record import shard_lease_name
from scalable_topics_operator.cluster.shards import shard_of
from tests.support.running_operator import RunningOperator
from tests.support.stored_messages import judge, read_topics

ROOT = Path(__file__).resolve().parent.parent
TOPIC = "orders"
_SUBSCRIPTION = "billing"
_CONNECTION = "pulsar"
_WAIT_SECONDS = 60.0
_PIPELINE_WAIT_SECONDS = 240.0
_SUPERVISOR = shlex.join((sys.executable, "-m", "segment_load", "supervise", "--master", "local[1]"))
_MESSAGES_BETWEEN_CHANGES = 500
_NAMESPACE = "default"
_SHARDS = 4
_LEASE_SECONDS = 3
_KILL_AFTER_SECONDS = 0.2


def main(replicas: int) -> int:
    """Run the demonstration with so many operator replicas on a cluster of its own and return the exit code."""
    if existing_cluster():
        raise DevError("the demo brings its own cluster; unset KUBECONFIG and PULSAR_ADMIN_URL first")
    console = Console(width=132, force_terminal=sys.stdout.isatty())
    started = time.monotonic()
    cluster = LocalCluster.private(Shape())
    try:
        console.rule("a Kubernetes API server and a Pulsar broker")
        cluster.start()
        kubernetes, pulsar = cluster.kubernetes.access, cluster.pulsar.access
        console.print(
            f"API server {kubernetes.url}, broker {pulsar.admin_url}, up in {time.monotonic() - started:.0f} s"
        )
        demo = _Demo(console, _Kubectl(cluster.kubernetes.kubectl, kubernetes.kubeconfig), pulsar)
        demo.run(cluster.directory, replicas)
    finally:
        cluster.stop()
    console.rule(f"done in {time.monotonic() - started:.0f} s; everything is stopped and removed")
    return 0


class _Kubectl:
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


class _Demo:
    def __init__(self, console: Console, kubectl: _Kubectl, pulsar: PulsarAccess) -> None:
        self._console = console
        self._kubectl = kubectl
        self._pulsar = pulsar
        self._layouts: list[SegmentLayout] = []

    def run(self, logs: Path, replicas: int) -> None:
        """Apply the quick start, reshape the topic, and show what became of it."""
        self._kubectl("apply", "--server-side", "-f", str(ROOT / "crds"))
        self._kubectl(
            "create", "secret", "generic", "pulsar-token", f"--from-literal=token={self._pulsar.superuser_token}"
        )
        with _operators(self._kubectl.kubeconfig, logs, replicas) as operators:
            self._console.rule("kubectl apply -f examples/quickstart.yaml")
            self._console.print(self._kubectl("apply", "-f", "-", manifest=self._quickstart()).rstrip())
            self._wait("the topic is Ready", lambda: self._is_ready("scalabletopic", TOPIC))
            self._layouts.append(self._layout())
            self._show("get", "scalabletopicconnections,scalabletopics")
            self._follow_pipeline()
            self._console.rule("the topic is split and merged while an application uses it")
            with DemoTraffic(self._pulsar, TOPIC, _SUBSCRIPTION) as traffic:
                *first, last = _documents(ROOT / "examples" / "operations.yaml")
                for manifest in first:
                    self._settle(traffic)
                    self._operate(manifest, traffic)
                self._settle(traffic)
                self._operate(last, traffic, operators if replicas > 1 else ())
                self._settle(traffic)
            self._judge(traffic)
            self._console.rule("the layout, an epoch a row")
            self._console.print(draw(self._layouts))
            self._show("get", "scalabletopics,segmentoperations", "-o", "wide")
            self._show("get", "events", "-o", "custom-columns=TYPE:.type,REASON:.reason,MESSAGE:.message")
            self._compare()

    def _quickstart(self) -> str:
        """The quick start with the address of this demo's broker, and its load by a pipeline beside the operator."""
        documents = _documents(ROOT / "examples" / "quickstart.yaml")
        for document in documents:
            if document["kind"] == "ScalableTopicConnection":
                document["spec"]["adminUrl"] = self._pulsar.admin_url
                document["spec"]["load"] = {"source": "Pipeline", "intervalSeconds": 5}
        return yaml.safe_dump_all(documents)

    def _follow_pipeline(self) -> None:
        """Wait for the load pipeline, which the leader of the connection has started on Spark beside itself."""
        self._console.rule("the load pipeline on Spark starts beside the operator")
        started = time.monotonic()

        def load_fresh() -> dict[str, Any]:
            found = self._kubectl.object("scalabletopicconnection", _CONNECTION)["status"]["conditions"]
            return next((one for one in found if one["type"] == "LoadFresh"), {})

        self._wait(
            "records are followed", lambda: load_fresh().get("reason") == "PipelineFollowed", _PIPELINE_WAIT_SECONDS
        )
        self._console.print(f"the operator follows its records after {time.monotonic() - started:.0f} s")

    def _operate(
        self, manifest: dict[str, Any], traffic: DemoTraffic, to_strike: Sequence[RunningOperator] = ()
    ) -> None:
        """Have an operation done; where there are operators to strike, the leader is killed in the middle of it."""
        name, kind = manifest["metadata"]["name"], manifest["spec"]["type"]
        leader = self._leader(to_strike) if to_strike else None
        started = time.monotonic()
        with traffic.changing():
            self._kubectl("apply", "-f", "-", manifest=yaml.safe_dump(manifest))
            if leader is not None:
                time.sleep(_KILL_AFTER_SECONDS)
                leader.kill()
                self._console.print(f"the replica that leads {TOPIC} was killed {_KILL_AFTER_SECONDS} s after that")
            self._wait(f"{name} has ended", lambda: self._phase(name) in ("Succeeded", "Failed"))
        status = self._kubectl.object("segmentoperation", name)["status"]
        seconds = time.monotonic() - started
        self._console.print(Text(f"{kind} {name}: {status['phase']} in {seconds:.1f} s: {status['message']}"))
        if status["phase"] != "Succeeded":
            raise DevError(f"{name} failed: {status['message']}")
        self._layouts.append(self._layout())

    def _leader(self, operators: Sequence[RunningOperator]) -> RunningOperator:
        """The replica that leads the topic's shard."""
        shard = shard_of(f"topic://public/default/{TOPIC}", _SHARDS)
        self._show("get", "leases", "-n", _NAMESPACE)
        holder = self._kubectl.object("lease", shard_lease_name(shard))["spec"]["holderIdentity"]
        return next(operator for operator in operators if operator.identity == holder)

    def _settle(self, traffic: DemoTraffic) -> None:
        """Let some ordinary traffic pass between two changes."""
        wanted = traffic.stored + _MESSAGES_BETWEEN_CHANGES
        self._wait("messages flow", lambda: traffic.stored >= wanted)

    def _judge(self, traffic: DemoTraffic) -> None:
        """What became of the application's messages; raises DevError if one is lost, double or out of order."""
        layout, name = self._layout(), TopicName.parse(f"public/default/{TOPIC}")
        topics = [
            classic_segment_name(name, segment.hash_range, segment.segment_id)
            for _, segment in sorted(layout.segments.items())
        ]
        journal = traffic.journal
        findings = judge(
            journal.acknowledged, read_topics(self._pulsar.service_url, self._pulsar.superuser_token, topics)
        )
        lost = len(findings.lost) + len(journal.not_received) + len(journal.failed)
        duplicated = len(findings.duplicated) + sum(times > 1 for times in journal.received.values())
        stalls = traffic.stalls_ms()
        self._console.print(
            f"sent {traffic.stored}, received {len(journal.received)}, lost {lost}, duplicated {duplicated}, "
            f"disorder {len(findings.disordered)}\n"
            f"a message took {traffic.ordinary_ms():.0f} ms (p50) to be stored; the longest during a change: "
            f"p50 {median(stalls):.0f} ms, max {max(stalls):.0f} ms"
        )
        if lost or duplicated or findings:
            raise DevError(f"messages were mistreated: {findings}")

    def _compare(self) -> None:
        """What the record says beside what the broker has; raises DevError where they differ."""
        self._console.rule("what the status says, and what the broker really has")
        table = Table("segment", "range", "status says", "broker says", "cursors on the broker", box=None)
        name = TopicName.parse(f"public/default/{TOPIC}")
        layout = self._layout()
        differ = []
        for segment in layout.segments.values():
            topic = classic_segment_name(name, segment.hash_range, segment.segment_id)
            broker = self._ask(f"{topic.replace('://', '/')}/internalStats")
            state = "sealed" if broker["state"] == "Terminated" else "open"
            wanted = "open" if segment.is_active else "sealed"
            if state != wanted or sorted(broker["cursors"]) != ["audit", "billing"]:
                differ.append(topic)
            table.add_row(
                str(segment.segment_id),
                escape(str(segment.hash_range)),
                segment.state.value,
                f"{state} at {broker['lastConfirmedEntry']}",
                ", ".join(sorted(broker["cursors"])),
            )
        self._console.print(table)
        if differ:
            raise DevError(f"record and broker differ in {', '.join(differ)}")
        self._console.print(f"{len(layout.segments)} segments: record and broker agree")

    def _layout(self) -> SegmentLayout:
        return from_record(self._kubectl.object("scalabletopic", TOPIC)["status"]["layout"])

    def _phase(self, name: str) -> str:
        return str(self._kubectl.object("segmentoperation", name).get("status", {}).get("phase", ""))

    def _is_ready(self, kind: str, name: str) -> bool:
        conditions = self._kubectl.object(kind, name).get("status", {}).get("conditions", [])
        return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)

    def _show(self, *arguments: str) -> None:
        self._console.rule(f"kubectl {' '.join(arguments[:2])}")
        self._console.print(Text(self._kubectl(*arguments).rstrip()), soft_wrap=True)

    def _ask(self, path: str) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self._pulsar.admin_url}/admin/v2/{path}",
            headers={"Authorization": f"Bearer {self._pulsar.superuser_token}"},
        )
        with urllib.request.urlopen(request, timeout=20) as response:
            found: dict[str, Any] = json.load(response)
            return found

    def _wait(self, what: str, holds: Callable[[], bool], within_seconds: float = _WAIT_SECONDS) -> None:
        deadline = time.monotonic() + within_seconds
        while not holds():
            if time.monotonic() > deadline:
                raise DevError(f"not within {within_seconds:.0f} s: {what}")
            time.sleep(0.1)


def _documents(file: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(file.read_text()) if document]


@contextmanager
def _operators(kubeconfig: Path, logs: Path, replicas: int) -> Iterator[Sequence[RunningOperator]]:
    """Replicas of the operator, ended whatever happens; their logs are shown if something fails."""
    flags = (f"--shards={_SHARDS}", f"--lease-seconds={_LEASE_SECONDS}", f"--pipeline-command={_SUPERVISOR}")
    operators = [
        RunningOperator(
            kubeconfig,
            _NAMESPACE,
            logs / f"operator-{number}.log",
            (*flags, f"--pipeline-folder={logs / f'pipelines-{number}'}"),
        )
        for number in range(replicas)
    ]
    try:
        for operator in operators:
            operator.launch()
        for operator in operators:
            operator.wait_until_working()
        yield operators
        for operator in operators:
            operator.stop()
    except DevError:
        for operator in operators:
            sys.stderr.write("".join(operator.log_text().splitlines(keepends=True)[-30:]))
        raise
    finally:
        for operator in operators:
            operator.kill()
