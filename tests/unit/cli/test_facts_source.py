"""Load and backlog for as long as somebody watches: tokens run out, and replicas go."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from scalable_topics.layout import SegmentLayout, segment_descriptor
from scalable_topics_operator.cli.api_server import PODS
from scalable_topics_operator.cli.gateway_access import GatewayOptions
from scalable_topics_operator.cli.kubernetes import TopicRef, api_server, parse_topic
from scalable_topics_operator.cli.segment_facts import ALL_SEGMENTS, TopicFacts, facts_source
from scalable_topics_operator.cluster.lease_record import REPLICA, LeaseRecord, replica_lease_name
from tests.unit.cli.kubeconfig_file import write_kubeconfig

TOPIC = TopicRef(parse_topic("acme/shop/orders"), "shop/pulsar")
LAYOUT = SegmentLayout.initial(1, created_at_ms=0)
OPTIONS = GatewayOptions(service_account="ops/viewer", operator_namespace="ops")


class Cluster:
    """An API server that leads to gateways on this machine and gives out tokens, of which the newest counts."""

    def __init__(self) -> None:
        self.tokens = 0
        self.knows_nobody = False
        self.gateways: list[TestServer] = []
        self.asked: list[int] = []
        self.known_login = ""
        self.pruned = ""

    async def token(self, _: web.Request) -> web.Response:
        self.tokens += 1
        return web.json_response({"status": {"token": f"token-{self.tokens}"}}, status=201)

    @web.middleware
    async def judge(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Take only the login that is known."""
        if self.known_login and request.headers["Authorization"] != f"Bearer {self.known_login}":
            return web.json_response({"message": "Unauthorized"}, status=401)
        return await handler(request)

    async def leases(self, _: web.Request) -> web.Response:
        found = [
            LeaseRecord(replica_lease_name(str(one)), REPLICA, str(one), 0, 15.0, "7", gateway=f"127.0.0.1:{it.port}")
            for one, it in enumerate(self.gateways)
            if it.started
        ]
        return web.json_response({"items": [record.body("ops", acquired=True) for record in found]})

    async def pods(self, _: web.Request) -> web.Response:
        return web.json_response({"items": []})

    async def add_gateway(self) -> TestServer:
        """Start another replica's."""
        number = len(self.gateways)

        async def answer(request: web.Request) -> web.Response:
            self.asked.append(number)
            if self.knows_nobody or request.headers["Authorization"] != f"Bearer token-{self.tokens}":
                return web.json_response({"reason": "the token has expired"}, status=401)
            if request.path.endswith("/stats"):
                return web.json_response({"subscriptions": {"billing": {"msgBacklog": 7}}})
            if self.pruned and self.pruned in request.path:
                return web.json_response({"reason": "there is no such segment"}, status=404)
            return web.json_response({"billing": {"backlog": 7, "counts": True}})

        app = web.Application()
        app.router.add_get("/{tail:.*}", answer)
        server = TestServer(app)
        await server.start_server()
        self.gateways.append(server)
        return server


@pytest.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    made = Cluster()
    app = web.Application(middlewares=[made.judge])
    app.router.add_get("/apis/coordination.k8s.io/v1/namespaces/ops/leases", made.leases)
    app.router.add_get("/api/v1/namespaces/ops/pods", made.pods)
    app.router.add_post("/api/v1/namespaces/ops/serviceaccounts/viewer/token", made.token)
    monkeypatch.delenv("STOPICS_TOKEN", raising=False)
    async with TestServer(app) as server:
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, server.port or 0)))
        yield made
    for gateway in made.gateways:
        await gateway.close()


def _known(facts: TopicFacts) -> tuple[str, dict[str, int]]:
    return facts.why, dict(facts.backlog)


KNOWN = ("", {"billing": 7})


async def test_another_token_is_requested_when_the_gateway_knows_the_old_one_no_more(cluster: Cluster) -> None:
    await cluster.add_gateway()
    async with facts_source(OPTIONS) as source:
        assert _known(await source.look(TOPIC, LAYOUT)) == KNOWN
        assert _known(await source.look(TOPIC, LAYOUT)) == KNOWN
        assert cluster.tokens == 1, "it is kept while it is good"
        cluster.tokens += 1
        assert _known(await source.look(TOPIC, LAYOUT)) == KNOWN
    assert cluster.tokens == 3


def _with_program(folder: Path) -> Path:
    """Have the kubeconfig's user log in by a program, which numbers its logins; answers the file with the last one."""
    count, program, kubeconfig = folder / "logins", folder / "gives.py", folder / "kubeconfig"
    count.write_text("0")
    program.write_text(
        f"import json, pathlib; count = pathlib.Path({str(count)!r}); number = int(count.read_text()) + 1\n"
        "count.write_text(str(number)); print(json.dumps({'status': {'token': f'login-{number}'}}))"
    )
    content = yaml.safe_load(kubeconfig.read_text())
    called = {"command": sys.executable, "args": [str(program)]}
    content["users"][0]["user"] = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", **called}}
    kubeconfig.write_text(yaml.safe_dump(content))
    return count


async def test_a_command_logs_in_once_and_again_where_that_is_no_longer_enough(
    cluster: Cluster, tmp_path: Path
) -> None:
    await cluster.add_gateway()
    logins = _with_program(tmp_path)
    cluster.known_login = "login-1"
    async with api_server() as kube, facts_source(OPTIONS) as source:
        await kube.list_all(PODS, "ops")
        assert _known(await source.look(TOPIC, LAYOUT)) == KNOWN
        assert logins.read_text() == "1"
        # Neither of its tokens is good any more.
        cluster.tokens += 1
        cluster.known_login = "login-2"
        assert _known(await source.look(TOPIC, LAYOUT)) == KNOWN
        assert logins.read_text() == "2"
        cluster.known_login = "login-3"
        async with api_server() as another:
            await another.list_all(PODS, "ops")
        async with api_server() as another:
            await another.list_all(PODS, "ops")
    assert logins.read_text() == "3"


async def test_another_replica_is_asked_when_the_one_that_was_is_gone(cluster: Cluster) -> None:
    first = await cluster.add_gateway()
    async with facts_source(OPTIONS) as source:
        assert _known(await source.look(TOPIC, LAYOUT)) == KNOWN
        await first.close()
        why, _ = _known(await source.look(TOPIC, LAYOUT))
        assert "no replica of the operator shows itself" in why
        await cluster.add_gateway()
        assert _known(await source.look(TOPIC, LAYOUT)) == KNOWN
    assert sorted(set(cluster.asked)) == [0, 1]


async def test_who_is_refused_from_the_start_is_told_so_and_may_be_known_later(cluster: Cluster) -> None:
    await cluster.add_gateway()
    async with facts_source(OPTIONS) as source:
        cluster.knows_nobody = True
        assert (await source.look(TOPIC, LAYOUT)).why == f"{TOPIC.topic}: 401 the token has expired"
        assert (len(cluster.asked), cluster.tokens) == (1, 1)
        cluster.knows_nobody = False
        assert _known(await source.look(TOPIC, LAYOUT)) == KNOWN


async def test_a_segment_that_was_pruned_meanwhile_has_no_backlog_and_that_of_the_others_is_whole(
    cluster: Cluster,
) -> None:
    await cluster.add_gateway()
    layout = SegmentLayout.initial(2, created_at_ms=0)
    one = layout.segments[1]
    cluster.pruned = segment_descriptor(one.hash_range, one.segment_id)
    async with facts_source(OPTIONS) as source:
        facts = await source.look(TOPIC, layout)
    assert (facts.why, facts.backlog, facts.backlog_of) == ("", {"billing": 7}, ALL_SEGMENTS)
    assert (facts.of(0).backlog, facts.of(1).backlog) == ({"billing": 7}, {})
