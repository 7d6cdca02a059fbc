"""`stopics migrate`: what it asks of Kubernetes, what it shows, where it stops, and how it fails (pip-475)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from scalable_topics_operator.cli.main import app
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from tests.unit.cli.kubeconfig_file import answering
from tests.unit.gateway.model_kubernetes import Kubernetes

REPORT: dict[str, Any] = {
    "partitions": 4,
    "entries": 120,
    "storageBytes": 4096,
    "subscriptions": [
        {"name": "billing", "kind": "Stream", "backlogEntries": 7},
        {"name": "audit", "kind": "Unknown", "backlogEntries": 0},
    ],
    "clientCount": 22,
    "clients": [
        {
            "role": "Consumer",
            "topic": "persistent://acme/shop/orders-partition-3",
            "name": "old-reader\x1b[2J",
            "address": "10.0.0.7:4242",
            "version": "Pulsar-Java-v3.0.0",
            "subscription": "billing",
        }
    ],
    "properties": ["team"],
    "policies": {"messageTtlSeconds": 7200, "retentionMinutes": None},
    "policiesNotCarried": ["maxConsumers"],
    "schemas": 3,
    "obstacles": [],
}
OLD_CLIENTS = {"reason": "LegacyClients", "message": "22 connections of clients that do not know scalable topics"}
REFUSED = {"phase": "Failed", **OLD_CLIENTS}


@dataclass
class Cluster:
    """An API server with some ScalableTopics, and a user with a kubeconfig.

    Args:
        kubernetes: the API server.
        ends: what becomes of a SegmentOperation, by topic and whether it is a dry run.
        environment: of the command.
    """

    kubernetes: Kubernetes
    ends: Callable[[str, bool], dict[str, Any] | None]
    environment: dict[str, str] = field(default_factory=dict)

    def has(self, *names: str, scalable: tuple[str, ...] = ()) -> None:
        """Have topics with label team=shop, some of them with a layout."""
        for name in names:
            self.kubernetes.put(
                {
                    "apiVersion": TOPICS.api_version,
                    "kind": TOPICS.kind,
                    "metadata": {"namespace": "shop", "name": name, "labels": {"team": "shop"}},
                    "spec": {"topic": f"topic://acme/shop/{name}", "connectionRef": {"name": "pulsar"}},
                    "status": {"layout": {"epoch": 0}} if name in scalable else {},
                }
            )

    def asked(self, *, dry_run: bool) -> list[str]:
        """Topics that were looked at, or migrated, in the order in which that was asked for."""
        specs = [one["spec"] for one in self.kubernetes.all_of(SEGMENT_OPERATIONS)]
        return [one["scalableTopic"] for one in specs if one.get("dryRun", False) is dry_run]

    async def run(self, *arguments: str, answer: str = "", **environment: str) -> Result:
        """Run the command in a thread, since it has an event loop of its own."""
        variables = {**self.environment, **environment}
        words = ["migrate", *arguments]
        return await asyncio.to_thread(CliRunner().invoke, app, words, input=answer, env=variables)


def _well(topic: str, dry_run: bool) -> dict[str, Any]:
    if dry_run:
        return {"phase": "Succeeded", "message": "dry run: nothing was changed", "plan": {"migration": REPORT}}
    return {"phase": "Succeeded", "message": "segments [0, 1, 2, 3] were replaced by [4, 5, 6, 7]"}


def _with_old_clients(*topics: str) -> Callable[[str, bool], dict[str, Any]]:
    """Some topics have old clients, the others nothing in the way."""

    def ends(topic: str, dry_run: bool) -> dict[str, Any]:
        if topic not in topics:
            return _well(topic, dry_run)
        if not dry_run:
            return REFUSED
        return {"phase": "Succeeded", "plan": {"migration": {**REPORT, "obstacles": [OLD_CLIENTS]}}}

    return ends


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    kubernetes = Kubernetes(ObjectCache())
    found = Cluster(kubernetes, _well)

    def becomes(body: Body) -> dict[str, Any] | None:
        spec = body["spec"]
        assert body["kind"] == SEGMENT_OPERATIONS.kind
        assert spec["type"] == "Migrate"
        return found.ends(spec["scalableTopic"], spec.get("dryRun", False))

    kubernetes.becomes = becomes
    async with answering(tmp_path, kubernetes.handle) as kubeconfig:
        found.environment = {"KUBECONFIG": str(kubeconfig), "COLUMNS": "300"}
        yield found


def _lines(text: str) -> list[str]:
    return [" ".join(one.split()) for one in text.splitlines()]


@pytest.mark.parametrize("name", ["orders", "topic://acme/shop/orders", "acme/shop/orders"])
async def test_one_topic_is_migrated_and_waited_for(cluster: Cluster, name: str) -> None:
    cluster.has("orders", "others")
    result = await cluster.run(name, "--force")
    assert result.exit_code == 0, result.output
    (made,) = cluster.kubernetes.all_of(SEGMENT_OPERATIONS)
    assert made["metadata"]["namespace"] == "shop"
    assert made["spec"] == {"scalableTopic": "orders", "type": "Migrate", "migrate": {"force": True}}
    assert _lines(result.stdout) == [
        "topic: topic://acme/shop/orders",
        "result: migrated: segments [0, 1, 2, 3] were replaced by [4, 5, 6, 7]",
        f"operation: shop/{made['metadata']['name']}",
    ]
    assert f"shop/orders: SegmentOperation {made['metadata']['name']} is made" in result.stderr


async def test_a_refusal_is_no_success(cluster: Cluster) -> None:
    cluster.has("orders")
    cluster.ends = _with_old_clients("orders")
    result = await cluster.run("orders")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"stopics: shop/orders: LegacyClients: {OLD_CLIENTS['message']}" in result.stderr
    result = await cluster.run("orders", "-o", "json")
    assert result.exit_code == 1
    shown = json.loads(result.stdout)
    assert (shown["phase"], shown["reason"], shown["migration"]) == ("Failed", "LegacyClients", None)


async def test_what_has_not_ended_in_time_goes_on_and_is_told_step_by_step(cluster: Cluster) -> None:
    cluster.has("orders")
    cluster.ends = lambda topic, dry_run: {"phase": "Running", "step": "Sealing"}
    result = await cluster.run("orders", "--timeout", "1")
    (made,) = cluster.kubernetes.all_of(SEGMENT_OPERATIONS)
    assert (result.exit_code, result.stdout) == (3, "")
    assert _lines(result.stderr).count("shop/orders: Running: Sealing") == 1
    assert f"kubectl describe segmentoperation {made['metadata']['name']} -n shop" in result.stderr


async def test_a_dry_run_is_shown_as_a_report(cluster: Cluster) -> None:
    cluster.has("orders")
    result = await cluster.run("orders", "--dry-run")
    assert result.exit_code == 0, result.output
    assert cluster.asked(dry_run=False) == []
    lines = _lines(result.stdout)
    for line in (
        "verdict: may be migrated",
        "partitions: 4",
        "retained: 120 entries of 4096 bytes",
        "subscription kind backlog",
        "billing Stream 7",
        "audit Unknown 0",
        "carried over, properties: team",
        "carried over, policies: messageTtlSeconds 7200",
        "carried over, schema versions: 3",
        "not carried over, policies: maxConsumers",
        "old clients (22):",
        "Consumer old-reader?[2J billing 10.0.0.7:4242 Pulsar-Java-v3.0.0 persistent://acme/shop/orders-partition-3",
        "and: 21 more",
    ):
        assert line in lines, lines
    cluster.ends = _with_old_clients("orders")
    result = await cluster.run("orders", "--dry-run")
    assert result.exit_code == 1
    assert "verdict: cannot be migrated now" in _lines(result.stdout)
    assert f"obstacle LegacyClients: {OLD_CLIENTS['message']}" in _lines(result.stdout)
    assert "stopics: shop/orders: LegacyClients" in result.stderr
    result = await cluster.run("orders", "--dry-run", "-o", "json")
    assert json.loads(result.stdout)["migration"]["obstacles"] == [OLD_CLIENTS]


async def test_a_plan_has_a_line_for_each_topic_and_changes_nothing(cluster: Cluster) -> None:
    cluster.has("a", "b", "c", scalable=("c",))
    cluster.ends = _with_old_clients("b")
    result = await cluster.run("--selector", "team=shop", "--plan")
    assert result.exit_code == 1
    lines = _lines(result.stdout)
    assert lines[0] == "topic name partitions entries bytes subscriptions backlog old clients verdict"
    assert lines[1] == "shop/a topic://acme/shop/a 4 120 4096 2 7 22 may be migrated"
    assert lines[2] == f"shop/b topic://acme/shop/b 4 120 4096 2 7 22 LegacyClients: {OLD_CLIENTS['message']}"
    assert lines[3] == "shop/c topic://acme/shop/c - - - - - - scalable already"
    assert (sorted(cluster.asked(dry_run=True)), cluster.asked(dry_run=False)) == (["a", "b"], [])
    cluster.ends = _well
    result = await cluster.run("-l", "team=shop", "--plan", "-o", "json")
    assert result.exit_code == 0, result.output
    assert [one["verdict"] for one in json.loads(result.stdout)["topics"]] == [
        "may be migrated",
        "may be migrated",
        "scalable already",
    ]


async def test_the_first_failure_ends_a_run_after_its_wave(cluster: Cluster) -> None:
    cluster.has("a", "b", "c", "d", "e", "f", scalable=("b",))
    cluster.ends = _with_old_clients("c")
    result = await cluster.run("-l", "team=shop", "--yes", "--wave", "2")
    assert result.exit_code == 1
    assert cluster.asked(dry_run=False) == ["a", "c"]
    ends = {line.split()[0]: line for line in _lines(result.stdout)[-6:]}
    assert ends["shop/a"].endswith("migrated")
    assert ends["shop/b"].endswith("scalable already")
    assert ends["shop/c"].endswith(f"LegacyClients: {OLD_CLIENTS['message']}")
    assert all(ends[f"shop/{name}"].endswith("not begun") for name in "def")
    assert "stopics: 3 topics were not begun; LegacyClients" in result.stderr
    cluster.ends = _well
    result = await cluster.run("-l", "team=shop", "--yes", "--wave", "50", "-o", "json")
    assert result.exit_code == 0, result.output
    verdicts = [one["verdict"] for one in json.loads(result.stdout)["topics"]]
    assert verdicts == ["migrated", "scalable already", "migrated", "migrated", "migrated", "migrated"]


@pytest.mark.parametrize(("answer", "migrated"), [("n\n", []), ("", []), ("y\n", ["a"])])
async def test_whoever_is_asked_may_say_no(cluster: Cluster, answer: str, migrated: list[str]) -> None:
    cluster.has("a")
    result = await cluster.run("-l", "team=shop", answer=answer)
    assert "Migrate 1 topics in waves of 5? This cannot be taken back" in result.stderr
    assert (result.exit_code == 0) == bool(migrated)
    assert cluster.asked(dry_run=False) == migrated


async def test_what_is_scalable_already_is_passed_over(cluster: Cluster) -> None:
    cluster.has("a", scalable=("a",))
    result = await cluster.run("a")
    assert (result.exit_code, "is a scalable topic already" in result.stderr) == (1, True)
    result = await cluster.run("-l", "team=shop")
    assert (result.exit_code, "all 1 topics are scalable already" in result.stderr) == (0, True)
    assert cluster.kubernetes.all_of(SEGMENT_OPERATIONS) == []


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        ((), 2, "name one topic, or choose many with --selector"),
        (("a", "-l", "team=shop"), 2, "name one topic, or choose many with --selector"),
        (("a", "--plan"), 2, "of one topic use --dry-run"),
        (("-l", "team=shop", "--dry-run"), 2, "with --selector use --plan"),
        (("-l", " "), 2, "--selector names no labels"),
        (("-l", "team=shop", "-A", "-n", "shop"), 2, "exclude each other"),
        (("-l", "team=shop", "--wave", "51"), 2, "Invalid value"),
        (("a", "--timeout", "0"), 2, "Invalid value"),
        (("nothing",), 1, "404 nothing not found"),
        (("acme/shop/nothing",), 1, "no ScalableTopic in namespace shop declares topic://acme/shop/nothing"),
        (("topic://acme",), 2, "is not a topic name"),
        (("-l", "team=nobody", "--plan"), 1, "no ScalableTopic in shop has the labels team=nobody"),
    ],
)
async def test_failures_say_what_to_do(
    cluster: Cluster, arguments: tuple[str, ...], exit_code: int, words: str
) -> None:
    cluster.has("a")
    result = await cluster.run(*arguments)
    assert (result.exit_code, words in result.stderr) == (exit_code, True), result.output
    assert "Traceback" not in result.output
    assert cluster.kubernetes.all_of(SEGMENT_OPERATIONS) == []


async def test_an_api_server_that_refuses_or_is_away_is_told_apart(cluster: Cluster) -> None:
    cluster.has("a")
    cluster.kubernetes.status = 403
    result = await cluster.run("a")
    assert (result.exit_code, "not today" in result.stderr) == (1, True)
    cluster.kubernetes.status = 500
    result = await cluster.run("a")
    assert (result.exit_code, "t0ken" in result.output) == (3, False)
    result = await cluster.run("-l", "team=shop", "--yes", "-o", "json")
    assert (result.exit_code, "may have been made" in result.stderr) == (3, True)
    assert [one["verdict"] for one in json.loads(result.stdout)["topics"]] == ["Unreachable"], "none is left out"
    cluster.kubernetes.status = None
    cluster.kubernetes.lose_replies = 1
    result = await cluster.run("a")
    assert result.exit_code == 0, result.output
    assert cluster.asked(dry_run=False) == ["a"], "what was made without an answer is found again"
