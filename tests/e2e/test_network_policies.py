"""The chart's network policies as a network enforces them: who reaches the operator, whom it reaches; and it works."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from dev import pulsar_pod
from dev.e2e import Images
from tests.e2e.conftest import remove_objects
from tests.e2e.kubectl import Manifest, apply, helm, kubectl, read_all, until
from tests.e2e.release import GATEWAY_URL, NAME, NAMESPACE, SELECTOR, Release, Values
from tests.e2e.world import (
    APPLICATIONS,
    TOOLBOX,
    TOPIC_API,
    Toolbox,
    active,
    await_ready,
    connection,
    operate,
    operation,
    topic,
)

pytestmark = [pytest.mark.whole, pytest.mark.network_policies, pytest.mark.timeout(900)]

TOPIC = "fenced"
MONITORING, STRANGERS = "monitoring", "strangers"
GATEWAY, METRICS = 8081, 8080
BROKER = f"{pulsar_pod.BROKER_SERVICE}.{pulsar_pod.NAMESPACE}.svc"
DENIAL = "deny-all"
# Of addresses, those at which somebody answers.
KNOCK = """
import json, socket, sys
reached = []
for address in sys.argv[1:]:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
        reached.append(address)
    except OSError:
        pass
print(json.dumps(reached))
"""


@pytest.fixture(autouse=True, scope="module")
def places(release: Release, images: Images) -> Iterator[None]:
    """Pods in other namespaces; these go afterwards, with the policy of the release's namespace that is not its own."""
    for namespace in (MONITORING, STRANGERS):
        apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        apply(_visitor(images.operator), namespace=namespace)
    for namespace in (MONITORING, STRANGERS):
        kubectl("wait", "--namespace", namespace, f"pod/{TOOLBOX}", "--for=condition=Ready", "--timeout=60s")
    apply(connection(), topic(TOPIC, segments={"initial": 1}), namespace=APPLICATIONS)
    await_ready("scalabletopic", TOPIC)
    yield
    kubectl("delete", "namespace", MONITORING, STRANGERS, "--timeout=60s")
    kubectl("delete", "networkpolicy", DENIAL, "--namespace", NAMESPACE, "--ignore-not-found")


def test_without_policies_everybody_reaches_the_gateway_and_the_metrics(release: Release) -> None:
    _await_reached(release, {APPLICATIONS: (True, True), MONITORING: (True, True), STRANGERS: (True, True)})


def test_with_policies_those_whom_the_values_name_reach_it_and_it_works(release: Release, toolbox: Toolbox) -> None:
    release.upgrade(_policies())
    _replace_pods(release)
    _await_fenced(release)
    _await_works(release, toolbox)


def test_it_reaches_what_the_values_name_and_nothing_else(release: Release, toolbox: Toolbox) -> None:
    addresses = [f"{BROKER}:{pulsar_pod.WEB_PORT}", f"{BROKER}:{pulsar_pod.SERVICE_PORT}"]
    assert _knock(APPLICATIONS, TOOLBOX, addresses) == addresses
    for pod in release.pods():
        assert _knock(NAMESPACE, pod, addresses) == addresses[:1]


def test_beside_a_policy_that_denies_everything_it_works_and_so_do_its_hooks(
    release: Release, toolbox: Toolbox
) -> None:
    apply(_denial(), namespace=NAMESPACE)
    _replace_pods(release)
    _await_fenced(release)
    _await_works(release, toolbox)
    assert "Phase:          Succeeded" in helm("test", NAME, "--namespace", NAMESPACE, "--timeout", "2m")
    remove_objects()
    assert "Nothing is left that needs the operator." in release.uninstall()


def _await_fenced(release: Release) -> None:
    _await_reached(release, {APPLICATIONS: (True, False), MONITORING: (False, True), STRANGERS: (False, False)})


def _await_reached(release: Release, expected: dict[str, tuple[bool, bool]]) -> None:
    """Wait until pods of these namespaces reach the gateway, and the metrics: of every replica and through Services."""
    hosts = [*_addresses(release).values(), f"{NAME}-{{}}.{NAMESPACE}.svc"]
    gateway = [f"{host.format('gateway')}:{GATEWAY}" for host in hosts]
    metrics = [f"{host.format('metrics')}:{METRICS}" for host in hosts]

    def reached() -> dict[str, list[str]]:
        return {namespace: _knock(namespace, TOOLBOX, [*gateway, *metrics]) for namespace in expected}

    wanted = {
        namespace: [*(gateway if to_gateway else []), *(metrics if to_metrics else [])]
        for namespace, (to_gateway, to_metrics) in expected.items()
    }
    until(reached, lambda seen: seen == wanted, what="those and no others are let in")


def _await_works(release: Release, toolbox: Toolbox) -> None:
    """See that the operator has the API server, the brokers and the other replica, and an application the gateway."""
    number = active(TOPIC)[0]
    operate(operation(f"split-{number}", TOPIC, type="Split", split={"segment": number}))
    leader = release.leader_of(TOPIC)
    (other,) = [address for pod, address in _addresses(release).items() if pod != leader]
    # What only the leader knows: the other one has to ask it.
    for gateway in (f"http://{other}:{GATEWAY}", GATEWAY_URL):
        until(
            partial(toolbox.ask, f"{gateway}{TOPIC_API}/{TOPIC}/stats", "/var/run/gateway/token"),
            lambda answer: answer[0] == 200,
            what=f"statistics from {gateway}",
        )


def _replace_pods(release: Release) -> None:
    """Have other pods, which have no connection yet."""
    before = release.pods()
    kubectl("delete", "pods", "--namespace", NAMESPACE, f"--selector={SELECTOR}")
    until(
        lambda: (release.pods(), release.ready_pods()),
        lambda seen: seen[0] == seen[1] and len(seen[0]) == len(before),
        what="other pods are ready",
        within_seconds=90,
    )
    release.await_leaders()


def _knock(namespace: str, pod: str, addresses: Sequence[str]) -> list[str]:
    """Those of some addresses that a pod reaches."""
    command = ["exec", "--namespace", namespace, pod, "--", "python3", "-c", KNOCK, *addresses]
    found: list[str] = json.loads(kubectl(*command))
    return found


def _addresses(release: Release) -> dict[str, str]:
    """The address of each replica, by its name."""
    pods = {each["metadata"]["name"]: each for each in read_all("pods", NAMESPACE, SELECTOR)}
    return {name: pods[name]["status"]["podIP"] for name in release.pods()}


def _policies() -> Values:
    """Values as docs/installing.md has them, for this cluster."""
    slices = read_all("endpointslices", "default", "kubernetes.io/service-name=kubernetes")
    return {
        "networkPolicy": {
            "enabled": True,
            "gatewayFrom": [_namespace(APPLICATIONS)],
            "metricsFrom": [_namespace(MONITORING)],
            "egress": [{"to": [_namespace(pulsar_pod.NAMESPACE)], "ports": [{"port": pulsar_pod.WEB_PORT}]}],
            "apiServerPorts": [port["port"] for each in slices for port in each["ports"]],
        }
    }


def _namespace(name: str) -> Manifest:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


def _denial() -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": DENIAL},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
    }


def _visitor(image: str) -> Manifest:
    container = {"name": TOOLBOX, "image": image, "imagePullPolicy": "IfNotPresent", "command": ["sleep", "infinity"]}
    spec = {"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": TOOLBOX}, "spec": spec}
