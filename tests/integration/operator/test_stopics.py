"""`stopics` with nothing but a kubeconfig, on a real API server with operator and brokers."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import tarfile
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulsar import AuthenticationToken

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics.sdk import Client
from scalable_topics_operator.cli.api_server import PODS
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import CONNECTIONS, EVENTS, SECRETS, TOPICS
from tests.integration.operator.conftest import MakeOperator
from tests.support import manifests
from tests.support.callers import make_caller
from tests.support.documentation.pages import fences
from tests.support.documentation.shell import commands_of
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import FAST_FLAGS, RunningOperator
from tests.support.stopics import kubeconfig_of, running_stopics, stopics
from tests.support.waiting import eventually
from tests.support.world import World, condition, is_ready
from tests.support.world_making import make_world

GUIDE = Path(__file__).parents[3] / "docs" / "cli.md"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzdXBlcnVzZXIifQ.c2lnbmF0dXJl"
KEY = "customer-7"
# Nobody takes over from it: a Lease that a busy machine does not make it lose, and whose end is not far.
_FLAGS = ("--auto-scale-enabled=true", "--auto-scale-interval-seconds=5", "--lease-seconds=8")


@dataclass(frozen=True, slots=True)
class Installation:
    """An operator of a test's own that scales, a world for it, and the options that lead to both."""

    operator: RunningOperator
    world: World

    @property
    def where(self) -> tuple[str, ...]:
        """Namespace of the objects."""
        return ("-n", self.world.namespace)

    @property
    def access(self) -> tuple[str, ...]:
        """What `stopics` is told of the gateway: not where it is, but whose Leases to believe and who asks."""
        namespace = self.world.namespace
        return (*self.where, f"--operator-namespace={namespace}", f"--service-account={namespace}/viewer")


@pytest.fixture
async def installed(
    own_operator: MakeOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess
) -> AsyncIterator[Installation]:
    operator = await own_operator((*FAST_FLAGS, *_FLAGS))
    world = await make_world(kube, view, pulsar, operator.namespace, load={"intervalSeconds": 2})
    await make_caller(kube, operator.namespace, "viewer", ["get", "list"])
    await asyncio.to_thread(operator.start)
    yield Installation(operator, world)
    await world.tidy_up()


def _commands_of_the_guide() -> list[list[str]]:
    """What the guide says under Changes, without the program."""
    (block,) = (one for one in fences(GUIDE) if one.heading == "changes")
    found = [command.key.split()[1:] for command in commands_of([block])]
    assert found
    return found


async def _send(world: World, pulsar: PulsarAccess, count: int) -> None:
    async with Client(pulsar.service_url, AuthenticationToken(pulsar.superuser_token)) as client:
        producer = await client.producer(f"{world.pulsar_namespace}/orders")
        for number in range(count):
            await producer.send(str(number).encode(), key=KEY)


async def test_topics_are_changed_as_the_guide_has_it_and_shown_as_they_are(
    installed: Installation, pulsar: PulsarAccess
) -> None:
    world, where, access = installed.world, installed.where, installed.access
    topic = str(world.topic_name("orders"))
    # Else what is idle would be merged meanwhile.
    by_hand = {"enabled": False}
    await world.apply(manifests.topic("orders", topic, initial=4, subscriptions=["billing"], autoScale=by_hand))
    await world.until_ready("orders")
    assert (await stopics("get", *where)).done().lines[1].startswith(f"orders {topic} 4 0 Classic True Reconciled ")
    (routed,) = (await stopics("route", "orders", KEY, *where, "-o", "json")).done().json["routes"]
    await _send(world, pulsar, 7)

    async def backlog() -> Any:
        said = await stopics("subscriptions", "orders", "billing", *access, "-o", "json")
        return said.done().json["subscriptions"][0]["backlogBySegment"]

    expected = {str(one): 7 if one == routed["segment"] else 0 for one in range(4)}
    await eventually(backlog, lambda found: found == expected, what="the key's messages are where it is routed")

    for words in _commands_of_the_guide():
        before = await world.layout("orders")
        said = (await stopics(*words, *where)).done()
        made = {one.segment_id for one in (await world.layout("orders")).active} - before.segments.keys()
        for told in ("SegmentOperation" in said.errors, "operation:" in said.output, bool(made)):
            assert told is ("--dry-run" not in words), words
    refused = await stopics("split", "orders", "0", *where)
    assert refused.code == 1, "it was sealed"
    layout = await world.layout("orders")

    shown = (await stopics("layout", topic, *access, "-o", "json")).done().json
    assert [one["id"] for one in shown["segments"] if one["state"] == "Active"] == sorted(
        one.segment_id for one in layout.active
    )
    assert shown["load"]["known"], shown["load"]["why"]
    by_id = {one["id"]: one for one in shown["segments"]}
    assert by_id[routed["segment"]]["backlog"] == {"billing": 7}
    assert by_id[routed["segment"]]["state"] == "Sealed"
    assert (shown["backlog"], shown["backlogOf"]) == ({"billing": 7}, "all segments")
    picture = (await stopics("layout", "orders", "--epochs", "2", "--no-load", *where)).done()
    assert "load and backlog: not known: not asked for" in picture.lines
    blocks = [len(line.split("│")) - 2 for line in picture.output.splitlines() if "│" in line]
    assert blocks[-1] == len(layout.active)

    held = (await stopics("drain", "orders", str(routed["segment"]), *access, "-o", "json")).done().json
    assert held["segments"][0]["heldBy"] == "subscription billing has not drained it (7 entries left)"
    described = (await stopics("describe", "orders", *where)).done().output
    for text in (topic, "Reconciled", "SegmentOperation orders-rebucket-", "billing"):
        assert text in described


async def test_a_change_is_seen_while_it_happens(installed: Installation) -> None:
    world, where = installed.world, installed.where
    await world.apply(manifests.topic("orders", str(world.topic_name("orders")), autoScale={"enabled": False}))
    await world.until_ready("orders")
    async with (
        running_stopics("watch", "orders", "-o", "json", *installed.access) as one,
        running_stopics("watch", "-o", "json", *where) as all_of_them,
    ):
        assert one.stdout is not None
        assert all_of_them.stdout is not None
        assert json.loads(await one.stdout.readline())["epoch"] == 0
        assert json.loads(await all_of_them.stdout.readline())["type"] == "ADDED"
        await world.operate("orders", "Split", segment=0)
        steps = set[str]()
        while (seen := json.loads(await one.stdout.readline()))["epoch"] == 0:
            steps.add((seen["operation"] or {}).get("step", ""))
        assert "Creating" in steps
        assert [epoch["segments"] for epoch in seen["epochs"]] == [[0], [1, 2]]
        while (change := json.loads(await all_of_them.stdout.readline()))["object"]["status"]["layout"]["epoch"] == 0:
            assert change["type"] == "MODIFIED"
        one.send_signal(signal.SIGINT)
        assert await one.wait() == 0
    ended = await stopics("watch", *where, "--for", "5")
    assert ended.done().lines[1].startswith("orders ")


async def test_why_is_asked_with_a_kubeconfig_alone(installed: Installation) -> None:
    """Hazard A2-26639."""
    world, access = installed.world, installed.access
    await world.apply(manifests.topic("orders", str(world.topic_name("orders"))))
    await world.until_ready("orders")
    said = await eventually(
        lambda: stopics("explain", "orders", *access, "-o", "yaml"),
        lambda said: said.code == 0,
        what="a decision is explained",
        within_seconds=60,
    )
    assert "consumer-split" in {one["rule"] for one in yaml.safe_load(said.output)["findings"]}
    policy = (await stopics("policy", "resolve", "orders", *access)).done()
    assert [line.split()[2] for line in policy.lines if line.startswith("split.msgRateIn ")] == ["default"]
    # Leases of others are not believed.
    nowhere = await stopics("explain", "orders", "-n", world.namespace)
    assert nowhere.code in (2, 3)
    assert "set --operator-namespace" in nowhere.errors or "no token for the gateway" in nowhere.errors


async def test_a_user_may_what_their_rights_are(
    installed: Installation, kube: KubeClient, kube_environment: KubernetesAccess, tmp_path: Path
) -> None:
    world, where = installed.world, installed.where
    await world.apply(manifests.topic("orders", str(world.topic_name("orders"))))
    await world.until_ready("orders")
    config = await kubeconfig_of(kube, kube_environment.kubeconfig, tmp_path, world.namespace, "viewer")
    as_viewer = {"KUBECONFIG": str(config)}
    assert (await stopics("get", "orders", **as_viewer)).done().lines[1].startswith("orders ")
    refused = await stopics("split", "orders", "0", **as_viewer)
    assert refused.code == 1
    assert "segmentoperations" in refused.errors
    assert f"system:serviceaccount:{world.namespace}:viewer" in refused.errors
    looked = await stopics("doctor", *where, f"--operator-namespace={world.namespace}", "-o", "json", **as_viewer)
    lacking = [one["message"] for one in looked.json["findings"] if one["about"] == "rights"]
    assert any("create segmentoperations" in one for one in lacking)
    assert all(one["advice"] for one in looked.json["findings"] if one["level"] != "ok")
    unknown = await stopics("--context", "nowhere", "get", **as_viewer)
    assert (unknown.code, "no context 'nowhere'" in unknown.errors) == (2, True)


async def test_the_doctor_sees_an_operator_that_is_gone(installed: Installation) -> None:
    world, access = installed.world, installed.access
    await world.apply(manifests.topic("orders", str(world.topic_name("orders"))))
    await world.until_ready("orders")
    await world.until(CONNECTIONS, "pulsar", is_ready, what="is Ready")
    healthy = await eventually(
        lambda: stopics("doctor", *access, "-o", "json"),
        lambda said: said.code == 0,
        what="all is well",
        within_seconds=60,
    )
    found = {one["about"]: one for one in healthy.json["findings"]}
    for about in ("API server", "leaders", "gateway", "version", "connections", "topics"):
        assert found[about]["level"] == "ok", found[about]
    assert (found["replicas"]["level"], "alone" in found["replicas"]["message"]) == ("warn", True)
    assert installed.operator.identity in found["leaders"]["message"]
    await world.apply(manifests.topic("taken", str(world.topic_name("orders"))))
    await world.until(
        TOPICS, "taken", lambda body: condition(body, "Stalled").get("status") == "True", what="is refused"
    )
    installed.operator.kill()
    sick = await eventually(
        lambda: stopics("doctor", *access),
        lambda said: any(line.startswith("fail leaders shards ") for line in said.lines),
        what="nobody leads",
        within_seconds=60,
    )
    assert sick.code == 1
    assert any(line.startswith(f"fail topic {world.namespace}/taken ") for line in sick.lines), sick.output
    assert [line.split()[0] for line in sick.lines if " gateway " in line] == ["warn"]
    waits = await stopics("split", "orders", "0", "--timeout", "6", *installed.where)
    assert (waits.code, "no replica of the operator has taken it up" in waits.errors) == (3, True), waits.errors


async def test_a_report_holds_what_explains_and_no_secret(
    installed: Installation, pulsar: PulsarAccess, tmp_path: Path
) -> None:
    """Secrets are put in every place where people put them."""
    world, namespace = installed.world, installed.world.namespace
    secrets = {
        place: f"hunter2-{uuid.uuid4().hex}" for place in ("property", "annotation", "env", "flag", "event", "secret")
    }
    topic = manifests.topic("orders", str(world.topic_name("orders")), properties={"team": secrets["property"]})
    topic["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": {"x": secrets["annotation"]}})
    }
    await world.apply(topic)
    ready = await world.until_ready("orders")
    await world.apply(manifests.secret("kept", value=secrets["secret"]))
    await _make_pod(world, secrets["env"], secrets["flag"])
    await _make_event(
        world, ready, f"refused https://admin:{secrets['event']}@h/ with token={secrets['event']} or {JWT}"
    )

    place = tmp_path / "report.tar.gz"
    said = (await stopics("report", "--file", str(place), *installed.access)).done()
    assert said.output == f"{place}\n"
    with tarfile.open(place) as tar:
        files = {
            one.name.partition("/")[2]: file.read().decode()
            for one in tar.getmembers()
            if (file := tar.extractfile(one))
        }
    connection_secret = await world.get(SECRETS, "pulsar-token")
    tokens = [base64.b64decode(value).decode() for value in connection_secret["data"].values()]
    for secret in (*secrets.values(), *tokens, JWT, pulsar.superuser_token):
        for form in (secret, base64.b64encode(secret.encode()).decode()):
            assert not [name for name, text in files.items() if form in text]
    kept = yaml.safe_load(files[f"objects/scalabletopics/{namespace}/orders.yaml"])
    assert kept["status"]["layout"] == ready["status"]["layout"]
    assert kept["spec"]["properties"] == {"team": "(left out)"}
    assert f"objects/scalabletopicconnections/{namespace}/pulsar.yaml" in files
    assert "refused https://(left out)@h/" in files[f"events/{namespace}.yaml"]
    assert "scalable-topics-shard-0" in files["operator/leases.yaml"]
    assert "POD_IP" in files["operator/pods.yaml"]
    assert json.loads(files[f"gateway/{namespace}/orders/stats.json"])["layout"]["epoch"] == 0
    assert "leaders" in files["doctor.txt"]
    # No kubelet runs here, and the bundle says so.
    assert "log of operator-0/operator: " in files["errors.txt"]
    again = await stopics("report", "--file", str(place), *installed.access)
    assert (again.code, "is there already" in again.errors) == (2, True)


async def _make_pod(world: World, of_environment: str, of_flag: str) -> None:
    """A pod as the chart makes it, which nothing runs here."""
    container = {
        "name": "operator",
        "image": "none",
        "args": [f"--some-token={of_flag}"],
        "env": [
            {"name": "PLAIN", "value": of_environment},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "ports": [{"name": "gateway", "containerPort": 8081}, {"name": "metrics", "containerPort": 8080}],
    }
    labels = {"app.kubernetes.io/name": "scalable-topics", "app.kubernetes.io/component": "operator"}
    spec = {"serviceAccountName": "viewer", "automountServiceAccountToken": False, "containers": [container]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator-0", "labels": labels}, "spec": spec}
    await world.kube.create(PODS, world.namespace, body)


async def _make_event(world: World, about: dict[str, Any], message: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    reference = {
        "apiVersion": about["apiVersion"],
        "kind": about["kind"],
        "name": about["metadata"]["name"],
        "namespace": world.namespace,
        "uid": about["metadata"]["uid"],
    }
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"orders.{uuid.uuid4().hex[:12]}"},
        "involvedObject": reference,
        "reason": "Said",
        "message": message,
        "type": "Warning",
        "firstTimestamp": now,
        "lastTimestamp": now,
    }
    await world.kube.create(EVENTS, world.namespace, body)
