"""R33 on a real API server: two replicas' gateways, real tokens, real rights."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from pulsar import AuthenticationToken
from yarl import URL

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.lease_record import GATEWAY_ANNOTATION, LEASES, replica_lease_name
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.peer_secret import SECRET_NAME
from scalable_topics_operator.cluster.resources import CONNECTIONS, SECRETS
from scalable_topics_operator.cluster.shards import shard_of
from scalable_topics_operator.gateway.forwarding import LEADER_HEADER
from scalable_topics_operator.gateway.peer_transport import PEER_SECONDS
from tests.support import manifests
from tests.support.callers import make_caller, token_for
from tests.support.metrics import read_metric, until_metric
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import SHARDS, Replicas, replicas
from tests.support.running_operator import FAST_FLAGS, RunningOperator
from tests.support.stopics import stopics
from tests.support.waiting import eventually

EXAMPLE = Path(__file__).parents[3] / "examples" / "keda.yaml"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a gateway said."""

    status: int
    body: dict[str, Any]
    leader: str
    retry_after: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """Real ones, of service accounts in the operator's namespace."""

    viewer: str
    stranger: str
    other_audience: str

    def all(self) -> tuple[str, ...]:
        return self.viewer, self.stranger, self.other_audience


@pytest.fixture
async def two(
    kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, kube_environment: KubernetesAccess, tmp_path: Path
) -> AsyncIterator[Replicas]:
    # Whoever leads a topic shall do so still when it is asked, however busy the machine is.
    flags = (*FAST_FLAGS, "--lease-seconds=8", "--auto-scale-enabled=true", "--auto-scale-interval-seconds=5")
    kubeconfig, load = kube_environment.kubeconfig, {"intervalSeconds": 2}
    async with replicas(2, kube, view, pulsar, kubeconfig, tmp_path, flags, load=load) as found:
        yield found


@pytest.fixture
async def tokens(two: Replicas) -> Tokens:
    """`viewer` may get ScalableTopic `orders`, `stranger` nothing."""
    kube, namespace = two.world.kube, two.world.namespace
    viewer = await make_caller(kube, namespace, "viewer", ["get"], ["orders"])
    return Tokens(
        viewer=viewer,
        stranger=await make_caller(kube, namespace, "stranger"),
        other_audience=await token_for(kube, namespace, "viewer"),
    )


async def _ask(operator: RunningOperator, path: str, token: str | None) -> Answer:
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{operator.gateway_url}{path}") as response,
    ):
        said = response.headers
        return Answer(response.status, await response.json(), said.get(LEADER_HEADER, ""), said.get("Retry-After", ""))


async def _orders(two: Replicas) -> tuple[str, RunningOperator, RunningOperator]:
    """A Ready topic: the path of its explanation, its leader, and the replica that does not lead it."""
    world = two.world
    topic = world.topic_name("orders")
    await world.apply(manifests.topic("orders", str(topic)))
    await world.until_ready("orders")
    await two.until_shared()
    leader = await two.leader_of(shard_of(str(topic), SHARDS))
    (other,) = (operator for operator in two.operators if operator is not leader)
    return f"/admin/v2/scalable/{world.pulsar_namespace}/orders", leader, other


async def _until_led_by(operator: RunningOperator, path: str, token: str, leader: str) -> Answer:
    return await eventually(
        lambda: _ask(operator, path, token),
        lambda answer: answer.leader == leader,
        what=f"{leader} answers for {path}",
    )


async def _until_shown(operator: RunningOperator, path: str, token: str) -> Answer:
    return await eventually(
        lambda: _ask(operator, path, token), lambda answer: answer.status == 200, what=f"{path} is shown"
    )


async def test_R33_every_replica_answers_for_the_leader_whoever_may_see_the_topic(
    two: Replicas, tokens: Tokens
) -> None:
    path, leader, other = await _orders(two)
    lease = await two.world.kube.get(LEASES, two.world.namespace, replica_lease_name(leader.identity))
    assert leader.gateway_url == "http://" + lease["metadata"]["annotations"][GATEWAY_ANNOTATION]
    for view in ("/stats", "/autoScale/explain", "/autoScalePolicy/effective"):
        for operator in (leader, other):
            answer = await _until_shown(operator, path + view, tokens.viewer)
            assert answer.leader == leader.identity
    forwarded = await read_metric(other, 'scalable_topics_gateway_forwarded_total{outcome="answered"}')
    assert forwarded is not None
    assert forwarded >= 3
    for operator in (leader, other):
        for token, asked, status in (
            (None, f"{path}/stats", 401),
            ("nonsense", f"{path}/stats", 401),
            (tokens.other_audience, f"{path}/stats", 401),
            (tokens.stranger, f"{path}/stats", 403),
            (tokens.viewer, f"{path}-else/stats", 404),
            (tokens.viewer, f"{path}-partition-0/stats", 400),
            (tokens.viewer, "/internal/load/any/pulsar", 401),
        ):
            # A look at the caller's rights may take too long on a busy machine, which is a 503.
            answer = await eventually(
                partial(_ask, operator, asked, token), lambda answer: answer.status != 503, what=f"{asked} is judged"
            )
            assert (answer.status, bool(answer.body["reason"])) == (status, True), asked


async def test_replicas_share_one_token_and_no_secret_reaches_a_log(two: Replicas, tokens: Tokens) -> None:
    path, leader, other = await _orders(two)
    secret = await two.world.kube.get(SECRETS, two.world.namespace, SECRET_NAME)
    peer_token = base64.b64decode(secret["data"]["token"]).decode()
    for operator in (leader, other):
        answer = await _ask(operator, f"/internal/load/{two.world.namespace}/pulsar", peer_token)
        assert answer.status in (200, 404, 503)
        # Good for this route and no other.
        assert (await _ask(operator, f"{path}/stats", peer_token)).status == 401
        for token in tokens.all():
            await _ask(operator, f"{path}/stats", token)
    for operator in (leader, other):
        log = operator.log_text()
        assert "Traceback" not in log
        for token in (*tokens.all(), peer_token):
            assert token not in log
            # A part of a token's signature would be as bad.
            assert token[-20:] not in log


async def test_R7_a_leader_that_dies_is_missed_for_a_moment_and_its_successor_answers(
    two: Replicas, tokens: Tokens
) -> None:
    path, leader, other = await _orders(two)
    await _until_led_by(other, f"{path}/stats", tokens.viewer, leader.identity)
    leader.kill()
    answer = await _ask(other, f"{path}/stats", tokens.viewer)
    assert (answer.status, bool(answer.retry_after), answer.leader) == (503, True, "")
    await _until_led_by(other, f"{path}/stats", tokens.viewer, other.identity)
    # An end takes more than a second; who does not answer is not waited for besides.
    assert await asyncio.to_thread(other.stop) < 1 + PEER_SECONDS


async def test_stopics_asks_with_a_token_it_requests(two: Replicas, tokens: Tokens) -> None:
    path, leader, other = await _orders(two)
    await _until_led_by(other, f"{path}/stats", tokens.viewer, leader.identity)
    namespace = two.world.namespace

    async def ask(account: str) -> tuple[int, str]:
        options = (f"--gateway={other.gateway_url}", f"--service-account={namespace}/{account}", "-n", namespace)
        said = await stopics("explain", "orders", "-o", "json", *options)
        return said.code, said.output + said.errors

    await _until_shown(other, f"{path}/autoScale/explain", tokens.viewer)
    code, output = await ask("viewer")
    assert code == 0, output
    # What else is asked depends on whether the load is known by now.
    assert "consumer-split" in {finding["rule"] for finding in json.loads(output)["findings"]}
    code, output = await ask("stranger")
    assert code == 1
    assert f"system:serviceaccount:{namespace}:stranger lacks the right to get" in output


async def test_R34_one_replica_asks_the_brokers_and_the_others_ask_that_one(two: Replicas, tokens: Tokens) -> None:
    world = two.world
    connection = shard_of(str(ObjectKey(CONNECTIONS.plural, world.namespace, "pulsar")), SHARDS)
    holders = await two.until_shared()
    held = [shard for shard, holder in holders.items() if holder != holders[connection]]
    (other,) = (operator for operator in two.operators if operator.identity != holders[connection])
    local = next(
        name for name in (f"of-{n}" for n in range(99)) if shard_of(str(world.topic_name(name)), SHARDS) in held
    )
    await world.apply(manifests.topic("orders", str(world.topic_name(local)), initial=2))
    await world.until_ready("orders")
    path = f"/admin/v2/scalable/{world.pulsar_namespace}/{local}/autoScale/explain"
    await eventually(
        lambda: _ask(other, path, tokens.viewer),
        lambda answer: answer.status == 200 and answer.leader == other.identity and answer.body["load"]["fresh"],
        what="the load is fresh where nobody asks the brokers",
        within_seconds=60,
    )
    holders, asking = await _asking(two)
    assert asking == {holders[connection]}


async def _asking(two: Replicas) -> tuple[dict[int, str], set[str]]:
    """The shards' holders and who asks brokers for their load, over two rounds of it in which no shard moves."""
    series = 'scalable_topics_admin_call_seconds_count{operation="get-broker-stats",outcome="ok"}'

    async def counts() -> dict[str, float]:
        return {one.identity: await read_metric(one, series) or 0.0 for one in two.operators}

    async def asked_so_often(least: float) -> dict[str, float]:
        return await eventually(counts, lambda seen: sum(seen.values()) >= least, what="brokers are asked twice more")

    for _ in range(5):
        holders, before = await two.until_shared(), await counts()
        after = await asked_so_often(sum(before.values()) + 2)
        if await two.until_shared() == holders:
            return holders, {identity for identity, count in after.items() if count > before[identity]}
    raise AssertionError("a shard moved at every look")


async def test_the_examples_for_keda_ask_for_what_there_is(two: Replicas, tokens: Tokens, pulsar: PulsarAccess) -> None:
    """KEDA takes a value out of JSON by its path, and Prometheus a series by its labels."""
    documents = [one for one in yaml.safe_load_all(EXAMPLE.read_text()) if one["kind"] == "ScaledObject"]
    triggers = {one["type"]: one["metadata"] for document in documents for one in document["spec"]["triggers"]}
    world = two.world
    topic = world.topic_name("orders")
    await world.apply(manifests.topic("orders", str(topic), subscriptions=["billing"]))
    await world.until_ready("orders")
    async with Client(pulsar.service_url, AuthenticationToken(pulsar.superuser_token)) as client:
        producer = await client.producer(f"{world.pulsar_namespace}/orders")
        for number in range(50):
            await producer.send(b"x", key=str(number))
    path = URL(triggers["metrics-api"]["url"]).path.replace("acme/shop/orders", f"{world.pulsar_namespace}/orders")

    async def backlog() -> Any:
        answer = await _ask(two.operators[0], path, tokens.viewer)
        value: Any = answer.body
        for part in triggers["metrics-api"]["valueLocation"].split("."):
            if part not in value:
                return answer
            value = value[part]
        return value

    await eventually(backlog, lambda found: found == 50, what="the backlog is shown", within_seconds=60)
    name, labels = re.fullmatch(r"max\((\w+)\{(.*)\}\)", triggers["prometheus"]["query"]).groups()  # type: ignore[union-attr]
    wanted = dict(
        label.split("=") for label in labels.replace("acme/shop/orders", f"{world.pulsar_namespace}/orders").split(",")
    )
    series = f"{name}{{{','.join(f'{key}={wanted[key]}' for key in sorted(wanted))}}}"
    leader = await two.leader_of(shard_of(str(topic), SHARDS))
    await until_metric(leader, series, lambda found: found == 50)
