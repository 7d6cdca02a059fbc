"""Watch sessions with real replicas, a real API server and a real broker (R20, R33, docs/sessions.md)."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType

from dev import tokens
from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics.layout import layout_topic_name
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.cluster.shards import shard_of
from scalable_topics_operator.gateway.watch_frames import layout_frame
from scalable_topics_operator.operations.layout_message import content_of
from scalable_topics_operator.operations.topic_state import read_state
from tests.support import manifests
from tests.support.callers import ROLES, make_caller
from tests.support.metrics import read_metric
from tests.support.object_watch import Seen, watched_object
from tests.support.pulsar_client import PulsarClient
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import SHARDS, Replicas, replicas
from tests.support.running_operator import FAST_FLAGS, RunningOperator
from tests.support.waiting import eventually
from tests.support.world import phase

Frame = dict[str, Any]


@dataclass
class Watch:
    """What one session was sent, and when."""

    socket: aiohttp.ClientWebSocketResponse
    frames: list[tuple[float, Frame]] = field(default_factory=list)
    closed: asyncio.Future[tuple[int, str]] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    async def read(self) -> None:
        while True:
            message = await self.socket.receive()
            if message.type is WSMsgType.TEXT:
                self.frames.append((time.monotonic(), json.loads(message.data)))
            else:
                is_close = message.type is WSMsgType.CLOSE
                self.closed.set_result((message.data, message.extra or "") if is_close else (0, message.type.name))
                return

    def of(self, kind: str) -> list[Frame]:
        return [frame for _, frame in self.frames if frame["type"] == kind]

    async def until(self, count: int, kind: str = "layout") -> list[Frame]:
        async def read() -> list[Frame]:
            return self.of(kind)

        return await eventually(
            read, lambda frames: len(frames) >= count, what=f"{count} frames {kind}", every_seconds=0.02
        )


@asynccontextmanager
async def watching(operator: RunningOperator, path: str, authorization: str) -> AsyncIterator[Watch]:
    """A session; one whose topic the replica has not heard of yet is tried again."""
    async with aiohttp.ClientSession(headers={"Authorization": authorization}) as session:

        async def connect() -> aiohttp.ClientWebSocketResponse | int:
            try:
                return await session.ws_connect(operator.gateway_url + path)
            except aiohttp.WSServerHandshakeError as refused:
                return refused.status

        async with asyncio.timeout(30):
            while isinstance(socket := await connect(), int):
                assert socket in (404, 503)
                await asyncio.sleep(0.05)
        watch = Watch(socket)
        reading = asyncio.create_task(watch.read())
        try:
            yield watch
        finally:
            await socket.close()
            await asyncio.gather(reading, return_exceptions=True)


async def refused(operator: RunningOperator, path: str, authorization: str) -> int:
    async with aiohttp.ClientSession(headers={"Authorization": authorization}) as session:
        try:
            async with session.ws_connect(operator.gateway_url + path) as socket:
                first = json.loads((await socket.receive(5)).data)
                assert first["type"] in ("layout", "unchanged")
                return 101
        except aiohttp.WSServerHandshakeError as answer:
            return answer.status


@pytest.fixture
async def two(
    kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, kube_environment: KubernetesAccess, tmp_path: Path
) -> AsyncIterator[Replicas]:
    # Nobody is killed here, and what one leads he leads still when it is asked.
    flags = (*FAST_FLAGS, "--lease-seconds=10")
    async with replicas(2, kube, view, pulsar, kube_environment.kubeconfig, tmp_path, flags) as found:
        await found.until_shared()
        yield found


async def leader_and_other(two: Replicas, local: str) -> tuple[RunningOperator, RunningOperator]:
    leader = await two.leader_of(shard_of(str(two.world.topic_name(local)), SHARDS))
    (other,) = (operator for operator in two.operators if operator is not leader)
    return leader, other


async def until_told_leader(watch: Watch, leader: RunningOperator) -> Frame:
    """Wait until a session is told of a leader, for whom its replica may have to look at the Leases first; answers the
    frame.
    """

    async def latest() -> Frame:
        told = watch.of("layout")
        return told[-1] if told else {"leader": None}

    return await eventually(
        latest,
        lambda frame: (frame["leader"] or {}).get("identity") == leader.identity,
        what=f"{leader.identity} is told as the leader",
    )


def watch_path(two: Replicas, local: str) -> str:
    return f"/admin/v2/scalable/{two.world.pulsar_namespace}/{local}/watch"


def in_order(messages: Iterable[str]) -> list[str]:
    """What messages of a layout tell, each once.

    Those of a leader that comes amid a test on a busy machine differ by their term alone, and one whose publication was
    not confirmed is published again. The step tells something of an announcement only: whoever is told of another
    leader while an operation prepares itself is told the step that it has reserved, which nobody publishes.
    """
    return [message for message, _ in groupby(_told_in(message) for message in messages)]


def _told_in(message: str) -> str:
    without_term = re.sub(r'"term":\d+,', "", message)
    return without_term if '"announcement":' in message else re.sub(r'"step":\d+,', "", without_term)


def is_told(published: Iterable[str], told: Iterable[str]) -> bool:
    """Whether all that is published was told, in that order.

    More may have been told: what is committed next makes up for a publication that the brokers did not answer.
    """
    rest = iter(told)
    return all(message in rest for message in published)


def told_by(watch: Watch) -> list[str]:
    """The layouts that a session was sent, as they are published."""
    return in_order(json.dumps(frame["layout"], separators=(",", ":")) for frame in watch.of("layout"))


def positions(watch: Watch) -> dict[str, str]:
    """What a session was told, with its leader, and the position of that."""
    told = {
        _told_in(json.dumps([frame["layout"], frame["leader"]], separators=(",", ":"))): frame["position"]
        for frame in watch.of("layout")
    }
    assert len(set(told.values())) == len(told), "no two states have one position"
    return told


async def published(client: PulsarClient, topic: str) -> list[str]:
    """All messages of a layout topic, oldest first."""
    reader = await client.reader(topic)
    messages = []
    while await asyncio.to_thread(reader.has_message_available):
        messages.append((await asyncio.to_thread(reader.read_next, 10_000)).data().decode())
    await asyncio.to_thread(reader.close)
    return messages


def _delays_ms(two: Replicas, seen: Seen, watch: Watch) -> list[float]:
    """From when a bare watch of the API server tells of a commit to when the frame is there."""
    topic = two.world.topic_name("orders")
    peers = [Peer(one.identity, one.gateway_url.removeprefix("http://"), is_me=False) for one in two.operators]
    committed: dict[str, float] = {}
    for at_seconds, kind, body in seen:
        # A replica that has not heard of the leader yet tells the layout without it, and another may come meanwhile.
        for told_leader in (*peers, None):
            frame = layout_frame(topic, read_state(body.get("status") or {}), told_leader, hold_ms=10_000)
            if kind != "DELETED" and frame is not None:
                committed.setdefault(frame.position, at_seconds)
    told = [(at_seconds, frame["position"]) for at_seconds, frame in watch.frames if frame["type"] == "layout"]
    return [1000 * (at_seconds - committed[position]) for at_seconds, position in told]


async def test_R20_every_replica_tells_a_topics_whole_life_as_its_leader_publishes_it(
    two: Replicas, pulsar: PulsarAccess
) -> None:
    world = two.world
    token = await make_caller(world.kube, world.namespace, "watcher", ["lookup"])
    leader, other = await leader_and_other(two, "orders")
    path = watch_path(two, "orders")
    bearer = f"Bearer {token}"
    async with watched_object(TOPICS, world.namespace, "orders") as seen:
        await world.apply(manifests.topic("orders", str(world.topic_name("orders")), initial=2, subscriptions=["a"]))
        async with (
            watching(leader, path, bearer) as near,
            watching(other, path + "?owners=true", bearer) as far,
        ):
            await world.until_ready("orders")
            for watch in (near, far):
                await until_told_leader(watch, leader)
            assert phase(await world.operate("orders", "Split", segment=0)) == "Succeeded"
            assert phase(await world.operate("orders", "Merge", segments=[2, 3])) == "Succeeded"
            with PulsarClient(pulsar.service_url, pulsar.superuser_token) as client:

                async def both() -> tuple[list[str], list[str]]:
                    # Sealed segments that nobody reads leave meanwhile, which is a change, too.
                    read = await published(client, layout_topic_name(world.topic_name("orders")))
                    return told_by(far), in_order(read)

                told, read = await eventually(
                    both, lambda both: both[0][-1] == both[1][-1], what="told last is what is published last"
                )
                assert is_told(read, told), f"published: {read}\ntold: {told}"
            for watch in (near, far):
                layouts = [frame["layout"] for frame in watch.of("layout")]
                announced = (layout["announcement"]["parents"] for layout in layouts if "announcement" in layout)
                assert [parents for parents, _ in groupby(announced)] == [[0], [2, 3]]
                assert [layout["epoch"] for layout in layouts] == sorted(layout["epoch"] for layout in layouts)
                assert {frame["leader"]["identity"] for frame in watch.of("layout") if frame["leader"]} <= {
                    operator.identity for operator in two.operators
                }
            delays = {name: _delays_ms(two, seen, watch) for name, watch in (("leader", near), ("other", far))}

            async def latest() -> tuple[Frame, Frame]:
                return far.of("owners")[-1], far.of("layout")[-1]["layout"]

            # Sealed segments that nobody reads leave meanwhile, which is another epoch.
            owners, last = await eventually(
                latest, lambda both: both[0]["epoch"] == both[1]["epoch"], what="owners of the last layout"
            )
            active = {str(segment["id"]) for segment in last["segments"] if segment["state"] == "Active"}
            assert set(owners["owners"]) == active
            assert set(owners["owners"].values()) <= set(pulsar.service_url.replace(",", " pulsar://").split())
            await world.delete(TOPICS, "orders")
            for watch in (near, far):
                assert await asyncio.wait_for(watch.closed, 30) == (1000, "the topic was deleted")
                assert watch.frames[-1][1] == {"type": "deleted"}
            assert told_by(near) == told_by(far)
            # Another leader that comes on a busy machine may be told by only one of them before the topic goes.
            told_by_both = positions(near).keys() & positions(far).keys()
            assert told_by_both, f"the same state at both: {positions(near)}, {positions(far)}"
            assert all(positions(near)[state] == positions(far)[state] for state in told_by_both)
    for name, found in delays.items():
        print(f"\nfrom the commit to the frame, at the {name}: {', '.join(f'{one:.1f}' for one in found)} ms")
        # The bare watch is told at the same moment as the replicas; on a busy machine either may be late.
        assert statistics.median(found) < 100
    forwarded = await read_metric(other, 'scalable_topics_gateway_forwarded_total{outcome="answered"}')
    assert not forwarded, "nothing is asked of the leader"


async def test_R33_who_may_watch_and_that_it_ends_with_the_right(two: Replicas, pulsar: PulsarAccess) -> None:
    world = two.world
    watcher = await make_caller(world.kube, world.namespace, "watcher", ["lookup"], ["orders"])
    getter = await make_caller(world.kube, world.namespace, "getter", ["get", "list", "watch", "consume", "produce"])
    await world.apply(manifests.topic("orders", str(world.topic_name("orders"))))
    await world.apply(manifests.topic("other", str(world.topic_name("other"))))
    await world.until_ready("orders")
    await world.until_ready("other")
    leader, other = await leader_and_other(two, "orders")
    path = watch_path(two, "orders")
    stranger = tokens.issue(b"x" * tokens.SECRET_KEY_BYTES, "superuser")
    for operator in two.operators:
        await eventually(
            lambda operator=operator: refused(operator, path, f"Pulsar {pulsar.superuser_token}"),  # type: ignore[misc]
            lambda status: status == 101,
            what="the replica has probed the connection",
        )
        for authorization, asked, status in (
            (f"Bearer {watcher}", path, 101),
            (f"Bearer {watcher}", watch_path(two, "other"), 403),
            (f"Bearer {getter}", path, 403),
            ("Bearer nonsense", path, 401),
            (f"Bearer {pulsar.superuser_token}", path, 401),
            (f"Pulsar {watcher}", path, 401),
            (f"Pulsar {stranger}", path, 401),
            ("Pulsar nonsense", path, 401),
            (f"Pulsar {pulsar.superuser_token}", watch_path(two, "nothing"), 401),
            # A role of the cluster, but none in this namespace.
            (f"Pulsar {pulsar.client_token}", path, 403),
        ):
            assert await refused(operator, asked, authorization) == status, (asked, status)
    grant = f"namespaces/{world.pulsar_namespace}/permissions/client"
    await world.pulsar.call("POST", grant, ["consume"])
    await eventually(
        lambda: refused(other, path, f"Pulsar {pulsar.client_token}"),
        lambda status: status == 101,
        what="a role that may consume may watch",
    )
    async with (
        watching(leader, path, f"Bearer {watcher}") as of_kubernetes,
        watching(other, path, f"Pulsar {pulsar.client_token}") as of_pulsar,
    ):
        await of_kubernetes.until(1)
        await of_pulsar.until(1)
        began = time.monotonic()
        await world.kube.delete(ROLES, world.namespace, "watcher")
        await world.pulsar.call("DELETE", grant)
        for watch in (of_kubernetes, of_pulsar):
            code, reason = await asyncio.wait_for(watch.closed, 75)
            assert code == 4403, reason
        print(f"\nboth sessions ended within {time.monotonic() - began:.0f} s of their rights")
    secrets = (watcher, getter, stranger, pulsar.client_token, pulsar.superuser_token)
    for operator in two.operators:
        log = operator.log_text()
        assert "Traceback" not in log
        assert not [token for token in secrets if token in log or token[-20:] in log]


async def test_R7_watchers_go_on_when_a_leader_goes_and_come_back_where_they_were(two: Replicas) -> None:
    world = two.world
    token = await make_caller(world.kube, world.namespace, "watcher", ["lookup"])
    await world.apply(manifests.topic("orders", str(world.topic_name("orders"))))
    await world.until_ready("orders")
    leader, other = await leader_and_other(two, "orders")
    path, bearer = watch_path(two, "orders"), f"Bearer {token}"
    async with watching(leader, path, bearer) as leaving, watching(other, path, bearer) as staying:
        await leaving.until(1)
        await staying.until(1)

        first = await until_told_leader(staying, leader)
        await asyncio.to_thread(leader.stop)
        code, reason = await asyncio.wait_for(leaving.closed, 5)
        assert (code, reason) == (1001, "this replica ends; ask another one")
        last = await until_told_leader(staying, other)
        assert content_of(json.dumps(last["layout"])) == content_of(json.dumps(first["layout"]))
        assert last["layout"]["term"] >= first["layout"]["term"]
        async with watching(other, f"{path}?since={last['position']}", bearer) as back:
            assert await back.until(1, "unchanged") == [{"type": "unchanged", "position": last["position"]}]
        assert not staying.closed.done()
