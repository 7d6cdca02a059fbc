"""What the chart's NetworkPolicies let through, as rendered: each port and destination that is needed, and no more.

Whether a network enforces it is in `tests/e2e/test_network_policies.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.chart.rendering import SETS, Document, documents, of_kind, pods_of, rendered

_INSTANCE = {"app.kubernetes.io/name": "scalable-topics", "app.kubernetes.io/instance": "demo"}
_OPERATOR = {**_INSTANCE, "app.kubernetes.io/component": "operator"}

DNS, API_SERVER = [(53, "UDP"), (53, "TCP")], [(6443, "TCP")]

# Of values `full`: by policy and direction, who, and by which ports.
EXPECTED: dict[tuple[str, str], list[tuple[Any, list[tuple[Any, str]]]]] = {
    ("topics", "ingress"): [
        ([{"namespace": {"kubernetes.io/metadata.name": "tools"}}, {"pod": _INSTANCE}], [("gateway", "TCP")]),
        ([{"namespace": {"kubernetes.io/metadata.name": "monitoring"}}, {"pod": _INSTANCE}], [("metrics", "TCP")]),
    ],
    ("topics", "egress"): [
        (None, DNS),
        (None, API_SERVER),
        ([{"pod": _OPERATOR}], [("gateway", "TCP")]),
        ([{"namespace": {"kubernetes.io/metadata.name": "pulsar"}}], [(8080, "TCP"), (6650, "TCP")]),
    ],
    ("topics-hooks", "ingress"): [],
    ("topics-hooks", "egress"): [
        (None, DNS),
        (None, API_SERVER),
        ([{"pod": _OPERATOR}], [("gateway", "TCP"), ("metrics", "TCP")]),
    ],
}


def test_what_is_needed_is_let_through_and_nothing_else() -> None:
    found = of_kind(documents(rendered("full")), "NetworkPolicy")
    let = {
        (policy["metadata"]["name"], direction): [_rule(rule, peers) for rule in policy["spec"].get(direction) or ()]
        for policy in found
        for direction, peers in (("ingress", "from"), ("egress", "to"))
    }
    assert let == EXPECTED
    # What is not named is denied, in both directions.
    assert all(set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"} for policy in found)


@pytest.mark.parametrize("name", SETS)
def test_every_pod_has_its_policy_or_there_is_none(name: str) -> None:
    found = documents(rendered(name))
    policies = of_kind(found, "NetworkPolicy")
    for pod in pods_of(found):
        labels = pod["metadata"]["labels"]
        selecting = [policy for policy in policies if _selects(policy["spec"]["podSelector"], labels)]
        assert len(selecting) == (1 if policies else 0), labels


@pytest.mark.parametrize("name", SETS)
def test_every_open_port_is_one_that_a_policy_knows(name: str) -> None:
    """A port that is opened and that no policy lets through is reached by nobody; one that needs none is not opened."""
    (operator,) = of_kind(documents(rendered(name)), "Deployment")
    opened = {
        port["name"]
        for container in operator["spec"]["template"]["spec"]["containers"]
        for port in container.get("ports", ())
    }
    let = {port for _, ports in EXPECTED["topics", "ingress"] for port, _ in ports}
    assert opened <= let
    assert "metrics" in opened


def _rule(rule: Document, peers: str) -> tuple[Any, list[tuple[Any, str]]]:
    who = [
        {kind: one[f"{kind}Selector"]["matchLabels"] for kind in ("namespace", "pod") if f"{kind}Selector" in one}
        for one in rule.get(peers, ())
    ]
    assert all(len(one) == len(kinds) for one, kinds in zip(rule.get(peers, ()), who, strict=True))
    return who or None, [(port["port"], port.get("protocol", "TCP")) for port in rule.get("ports", ())]


def _selects(selector: Document, labels: dict[str, str]) -> bool:
    matches = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    for one in selector.get("matchExpressions", ()):
        assert one["operator"] == "In"
        matches = matches and labels.get(one["key"]) in one["values"]
    return matches
