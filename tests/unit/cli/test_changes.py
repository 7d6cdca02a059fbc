"""`stopics split`, `merge`, `rebucket`, `route`, `drain`: what is asked of Kubernetes, what is shown, how they fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from scalable_topics.layout import SegmentLayout, to_record
from scalable_topics_operator.cli.main import app
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from tests.unit.cli.kubeconfig_file import answering
from tests.unit.gateway.model_kubernetes import Kubernetes

LAYOUT = SegmentLayout.initial(2).split(0, now_ms=1)
DONE: dict[str, Any] = {
    "phase": "Succeeded",
    "message": "segments [1] were replaced by [4, 5]",
    "plan": {
        "parents": [{"id": 1, "range": "8000-ffff"}],
        "children": [{"id": 4, "range": "8000-bfff", "buckets": 1}, {"id": 5, "range": "c000-ffff", "buckets": 1}],
        "subscriptions": ["audit", "billing"],
        "notes": ["producers wait for it"],
    },
}


@dataclass
class Cluster:
    """An API server with one topic, and a user with a kubeconfig.

    Args:
        kubernetes: the API server.
        ends: what becomes of a SegmentOperation.
        environment: of the command.
    """

    kubernetes: Kubernetes
    ends: dict[str, Any] = field(default_factory=lambda: DONE)
    environment: dict[str, str] = field(default_factory=dict)

    def specs(self) -> list[dict[str, Any]]:
        """Specs of what was made."""
        return [one["spec"] for one in self.kubernetes.all_of(SEGMENT_OPERATIONS)]

    async def run(self, *arguments: str, **environment: str) -> Result:
        """Run the command in a thread, since it has an event loop of its own."""
        variables = {**self.environment, **environment}
        return await asyncio.to_thread(CliRunner().invoke, app, list(arguments), env=variables, prog_name="stopics")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    kubernetes = Kubernetes(ObjectCache())
    found = Cluster(kubernetes)
    kubernetes.put(
        {
            "apiVersion": TOPICS.api_version,
            "kind": TOPICS.kind,
            "metadata": {"namespace": "shop", "name": "orders"},
            "spec": {"topic": "topic://acme/shop/orders", "connectionRef": {"name": "pulsar"}},
            "status": {
                "backend": "Classic",
                "layout": to_record(LAYOUT),
                "subscriptions": [{"name": "billing"}, {"name": "audit"}],
            },
        }
    )

    def becomes(body: Body) -> dict[str, Any] | None:
        return found.ends

    kubernetes.becomes = becomes
    async with answering(tmp_path, kubernetes.handle) as kubeconfig:
        found.environment = {"KUBECONFIG": str(kubeconfig), "COLUMNS": "300"}
        yield found


def _lines(text: str) -> list[str]:
    return [" ".join(one.split()) for one in text.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "spec"),
    [
        (("split", "orders", "1"), {"type": "Split", "split": {"segment": 1}}),
        (("split", "orders", "1", "--into", "4"), {"type": "Split", "split": {"segment": 1, "into": 4}}),
        (("split", "orders", "1", "--at", "C000"), {"type": "Split", "split": {"segment": 1, "at": 0xC000}}),
        (("split", "orders", "1", "--at", "0xc000"), {"type": "Split", "split": {"segment": 1, "at": 0xC000}}),
        (("merge", "orders", "3", "2"), {"type": "Merge", "merge": {"segments": [3, 2]}}),
        (
            ("rebucket", "topic://acme/shop/orders", "1", "--buckets", "8"),
            {"type": "Rebucket", "rebucket": {"segment": 1, "buckets": 8}},
        ),
    ],
)
async def test_a_change_is_an_operation_that_is_waited_for(
    cluster: Cluster, arguments: tuple[str, ...], spec: dict[str, Any]
) -> None:
    result = await cluster.run(*arguments)
    assert result.exit_code == 0, result.output
    assert cluster.specs() == [{"scalableTopic": "orders", **spec}]
    (made,) = cluster.kubernetes.all_of(SEGMENT_OPERATIONS)
    assert _lines(result.stdout) == [
        "topic: shop/orders",
        "result: segments [1] were replaced by [4, 5]",
        f"operation: shop/{made['metadata']['name']}",
        "segment range buckets",
        "seals 1 8000-ffff -",
        "makes 4 8000-bfff 1",
        "makes 5 c000-ffff 1",
        "cursors on each: audit, billing",
        "note: producers wait for it",
    ]


async def test_a_dry_run_says_so_and_goes_by_itself(cluster: Cluster) -> None:
    result = await cluster.run("split", "orders", "1", "--dry-run", "-o", "json")
    assert result.exit_code == 0, result.output
    (spec,) = cluster.specs()
    assert (spec["dryRun"], spec["ttlSecondsAfterFinished"]) == (True, 300)
    shown = json.loads(result.stdout)
    assert (shown["dryRun"], shown["phase"], shown["plan"]) == (True, "Succeeded", DONE["plan"])


@pytest.mark.parametrize(
    ("ends", "exit_code", "words"),
    [
        (
            {"phase": "Failed", "reason": "NotPossible", "message": "segment 1 is sealed"},
            1,
            "NotPossible: segment 1 is sealed",
        ),
        ({"phase": "Running", "step": "Sealing"}, 3, "NotEnded: Running: Sealing; not ended in time, and goes on"),
    ],
)
async def test_what_does_not_succeed_is_told_by_the_exit_code(
    cluster: Cluster, ends: dict[str, Any], exit_code: int, words: str
) -> None:
    cluster.ends = ends
    result = await cluster.run("merge", "orders", "2", "3", "--timeout", "1")
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert words in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("split", "orders", "1", "--at", "c000", "--into", "2"), "--at makes exactly two parts"),
        (("split", "orders", "1", "--at", "0000"), "is no place to split at"),
        (("split", "orders", "1", "--at", "12345"), "four hexadecimal digits, 0001 to ffff"),
        (("split", "orders", "1", "--into", "1"), "Invalid value"),
        (("merge", "orders", "2", "2"), "two segments or more"),
        (("rebucket", "orders", "1"), "Missing option"),
        (("split", "orders", "one"), "Invalid value"),
        (("route", "orders", "not base64!", "--base64"), "not base64"),
    ],
)
async def test_what_cannot_be_meant_is_refused_before_anything_is_asked(
    cluster: Cluster, arguments: tuple[str, ...], words: str
) -> None:
    result = await cluster.run(*arguments)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert cluster.specs() == []


async def test_keys_are_routed_by_the_recorded_layout(cluster: Cluster) -> None:
    result = await cluster.run("route", "orders", "customer-1", "customer-2", "-o", "json")
    assert result.exit_code == 0, result.output
    routes = json.loads(result.stdout)["routes"]
    assert [one["key"] for one in routes] == ["customer-1", "customer-2"]
    assert all(LAYOUT.segment(one["segment"]).is_active for one in routes)
    encoded = json.loads((await cluster.run("route", "orders", "Y3VzdG9tZXItMQ==", "--base64", "-o", "json")).stdout)
    assert encoded["routes"][0]["hash"] == routes[0]["hash"]
    lines = _lines((await cluster.run("route", "orders", "customer-1")).stdout)
    assert lines[:2] == ["topic: topic://acme/shop/orders, epoch 1", "key: customer-1"]
    assert lines[2].startswith(f"hash: {routes[0]['hash']}: ")


@pytest.mark.parametrize(
    ("words", "offered"),
    [("stopics split or", "orders"), ("stopics split x", ""), ("stopics subscriptions orders b", "billing")],
)
async def test_shells_are_offered_names_out_of_the_cluster(cluster: Cluster, words: str, offered: str) -> None:
    asked = {"_STOPICS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    result = await cluster.run(**asked)
    assert (result.stdout.strip(), result.exit_code) == (offered, 0)
    # Where there is no cluster nothing is offered, and nothing said.
    result = await cluster.run(**asked, KUBECONFIG="/nowhere")
    assert result.output.strip() == ""


async def test_what_holds_sealed_segments_is_asked_by_a_dry_run_of_a_prune(cluster: Cluster) -> None:
    cluster.ends = {"phase": "Succeeded", "plan": {"notes": ["segment 0: its retention of 60 min is not over"]}}
    result = await cluster.run("drain", "orders", "--no-load")
    assert result.exit_code == 0, result.output
    (spec,) = cluster.specs()
    assert (spec["type"], spec["prune"], spec["dryRun"]) == ("Prune", {"segments": [0]}, True)
    assert any("its retention of 60 min is not over" in line for line in _lines(result.stdout))


@pytest.mark.parametrize(("segment", "words"), [("1", "segment 1 is active"), ("9", "there is no segment 9")])
async def test_only_sealed_segments_are_drained(cluster: Cluster, segment: str, words: str) -> None:
    result = await cluster.run("drain", "orders", segment, "--no-load")
    assert result.exit_code == 1
    assert words in result.stderr
    assert cluster.specs() == []
