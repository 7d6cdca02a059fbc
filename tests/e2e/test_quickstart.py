"""What the README tells a newcomer to do, in a cluster: install, apply the quickstart, use the topic, ask about it."""

from __future__ import annotations

import json
import os
import sys
import tarfile
from pathlib import Path

import pytest

from tests.e2e.kstatus import status_of
from tests.e2e.kubectl import CommandFailed, Manifest, apply, helm, kubectl, read, run, until
from tests.e2e.release import GATEWAY_URL, NAME, NAMESPACE, Release
from tests.e2e.world import (
    APPLICATIONS,
    ROOT,
    TOPIC_API,
    Toolbox,
    active,
    await_operation,
    await_ready,
    operate,
    operation,
    quickstart,
    segment_topics,
)

pytestmark = pytest.mark.timeout(900)

QUICKSTART = str(ROOT / "examples" / "quickstart.yaml")
GATEWAY_TOKEN = "/var/run/gateway/token"
TOPIC = "orders"


@pytest.fixture(autouse=True, scope="module")
def applied(release: Release) -> None:
    kubectl("apply", "--namespace", APPLICATIONS, "--filename", QUICKSTART)
    await_ready("scalabletopic", TOPIC)


def test_the_topic_is_on_the_broker_and_every_object_is_current(toolbox: Toolbox) -> None:
    assert set(segment_topics(TOPIC)) <= toolbox.segments_on_broker()
    assert len(segment_topics(TOPIC)) == 4
    for manifest in quickstart():
        found = read(manifest["kind"], manifest["metadata"]["name"], APPLICATIONS)
        assert status_of(found) == "Current", found["status"]


def test_messages_survive_reshaping_and_the_death_of_the_leader(toolbox: Toolbox, release: Release) -> None:
    """Hazard C49."""
    with toolbox.traffic(TOPIC):
        operate(operation("split-0", TOPIC, type="Split", split={"segment": 0}))
        leader = release.leader_of(TOPIC)
        apply(operation("split-1-into-4", TOPIC, type="Split", split={"segment": 1, "into": 4}), namespace=APPLICATIONS)
        kubectl("delete", "pod", leader, "--namespace", NAMESPACE, "--grace-period=0", "--force")
        await_operation("split-1-into-4")
        assert release.leader_of(TOPIC) != leader
        operate(operation("merge-2-and-3", TOPIC, type="Merge", merge={"segments": [2, 3]}))
        operate(operation("rebucket", TOPIC, type="Rebucket", rebucket={"segment": 4, "buckets": 4}))
    assert len(active(TOPIC)) == 7


def test_the_gateway_answers_through_the_service_to_a_token_of_a_service_account(toolbox: Toolbox) -> None:
    url = f"{GATEWAY_URL}{TOPIC_API}/{TOPIC}"
    _, body = until(
        lambda: toolbox.ask(f"{url}/stats", GATEWAY_TOKEN),
        lambda answer: answer[0] == 200,
        what="statistics of the topic",
    )
    assert sorted(map(int, json.loads(body)["layout"]["segments"])) == active(TOPIC)
    _, body = until(
        lambda: toolbox.ask(f"{url}/autoScale/explain", GATEWAY_TOKEN),
        lambda answer: answer[0] == 200,
        what="a decision that is explained",
        within_seconds=90,
    )
    assert json.loads(body)["findings"]
    # A token for the brokers is none for the gateway.
    assert toolbox.ask(f"{url}/stats", "/var/run/pulsar/token")[0] == 401


def test_applying_it_again_changes_nothing_after_the_operator_has_acted(release: Release) -> None:
    """Hazards C42 and C72."""
    where = ["--namespace", APPLICATIONS, "--filename", QUICKSTART]
    server_side = ["--server-side", "--field-manager=gitops", "--force-conflicts"]
    kubectl("apply", *server_side, *where)
    before = {each["kind"]: each for each in _objects()}
    await_ready("scalabletopic", TOPIC)
    kubectl("apply", *server_side, *where)
    # A difference would be told by the exit code.
    assert kubectl("diff", "--server-side", "--field-manager=gitops", *where) == ""
    after = {each["kind"]: each for each in _objects()}
    assert {kind: each["metadata"]["generation"] for kind, each in after.items()} == {
        kind: each["metadata"]["generation"] for kind, each in before.items()
    }
    assert {kind: status_of(each) for kind, each in after.items()} == dict.fromkeys(after, "Current")


def test_the_test_of_the_chart_passes(release: Release) -> None:
    said = helm("test", NAME, "--namespace", NAMESPACE, "--logs", "--timeout", "2m")
    assert "Phase:          Succeeded" in said


def _objects() -> list[Manifest]:
    return [read(each["kind"], each["metadata"]["name"], APPLICATIONS) for each in quickstart()]


def test_kubectl_stopics_needs_a_kubeconfig_alone(release: Release, tmp_path: Path) -> None:
    """The gateway is found, and reached through the API server and a pod, with a token that is requested for it."""
    # A leader that is new, or has just changed the topic, has nothing to judge it by yet.
    said = until(
        _explained,
        lambda said: "load-split" in said,
        what="what the rules find is explained",
        within_seconds=150,
    )
    assert f"topic://public/default/{TOPIC}" in said
    shown = json.loads(_stopics("layout", TOPIC, "-n", APPLICATIONS, "-o", "json"))
    assert shown["load"]["known"], shown["load"]
    assert sorted(one["id"] for one in shown["segments"] if one["state"] == "Active") == active(TOPIC)
    assert ["ok", "gateway"] in [line.split()[:2] for line in _stopics("doctor").splitlines()]
    bundle = tmp_path / "report.tar.gz"
    _stopics("report", "--file", str(bundle))
    with tarfile.open(bundle) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    for pod in release.pods():
        assert {f"logs/{pod}/operator.log", f"metrics/{pod}.txt"} <= names


def _explained() -> str:
    """What is explained, or why it is not yet."""
    try:
        return _stopics("explain", TOPIC, "-n", APPLICATIONS)
    except CommandFailed as error:
        return str(error)


def _stopics(*words: str) -> str:
    """Run it as the plugin that kubectl finds on the PATH; answers its output. Raises CommandFailed."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return run("env", f"PATH={path}", "COLUMNS=200", "kubectl", "stopics", *words)
