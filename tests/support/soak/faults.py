"""The faults of a soak, each done and undone."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any

import aiohttp

from dev import tokens
from scalable_topics_operator.cluster.resources import CONNECTIONS, SECRETS, SEGMENT_OPERATIONS, TOPICS
from tests.support import manifests
from tests.support.consumption import Kind
from tests.support.fault_proxy import FaultProxy
from tests.support.processes import command_lines
from tests.support.random_changes import next_change
from tests.support.running_operator import RunningOperator
from tests.support.soak.reading import Outages
from tests.support.soak.schedule import Fault, Planned
from tests.support.soak.stage import LEASE_SECONDS, SAMPLE_SECONDS, Stage
from tests.support.soak.traffic import ORDERS, Traffic
from tests.support.soak.visiting_process import VISITORS
from tests.support.world import is_ready, phase

BROKER_DEAD_SECONDS, API_DEAD_SECONDS, WRONG_SECONDS = 10.0, 12.0, 10.0
VISIT_MESSAGES = 200
_DONE_SECONDS = 300.0
_ARRIVE_SECONDS = 20.0
_REFUSED = "does not accept the connection's credentials"
_LONG_AGO = "2026-01-01T00:00:00Z"
_KUBE_WRITES = (("PATCH", r"/scalabletopics/[^/]+/status$"),)
_ADMIN_WRITES = (("PUT", r"-segment-[^/]+$"), ("POST", r"-segment-[^/]+/terminate$"), ("DELETE", r"-segment-[^/]+$"))
# Read again after brokers have unloaded it, which lets go of what is acknowledged and not retained.
_RETAINED = {"perSegment": {"retentionTimeMinutes": 30}, "total": {"retentionSizeMegabytes": 64}}


class Faults:
    """Does what a schedule says.

    Args:
        stage: what is struck.
        traffic: the clients.
        outages: told of brokers that die and of segments that are unloaded.
    """

    def __init__(self, stage: Stage, traffic: Traffic, outages: Outages) -> None:
        self._stage = stage
        self._world = stage.world
        self._traffic = traffic
        self._outages = outages
        self._numbers = count(1)
        self._source = "Pipeline"
        self.happened: Counter[str] = Counter()
        """What did, with what came of it where that may differ."""
        self.change_seconds: list[float] = []
        """How long each change of the layout of `orders` took."""
        crowds = traffic.crowds
        self._acts: Mapping[Fault, Callable[[Random], Awaitable[str]]] = {
            Fault.OPERATOR_KILLED: self._kill_operator,
            Fault.OPERATOR_STOPPED: self._stop_operator,
            Fault.OPERATOR_RESTARTED: self._restart_operator,
            Fault.OPERATOR_CUT_OFF: self._cut_off,
            Fault.KUBE_REPLY: self._disturb_kube,
            Fault.ADMIN_REPLY: self._disturb_admin,
            Fault.BROKER_KILLED: self._kill_broker,
            Fault.NAMESPACE_UNLOADED: self._unload,
            Fault.API_SERVER_KILLED: self._kill_api_server,
            Fault.PIPELINE_KILLED: self._kill_pipeline,
            Fault.SOURCE_CHANGED: self._change_source,
            Fault.SECRET_ROTATED: self._rotate_secret,
            Fault.SECRET_WRONG: self._spoil_secret,
            Fault.TOPIC_VISITED: self._visit,
            Fault.TOPIC_SOUGHT: self._seek,
            Fault.TOPIC_MIGRATED: self._migrate,
            Fault.LAYOUT_CHANGED: self._change_layout,
            Fault.STREAM_CHANGED: lambda _: _quiet(crowds[Kind.STREAM].change()),
            Fault.QUEUE_CHANGED: lambda _: _quiet(crowds[Kind.QUEUE].change()),
            Fault.CHECKPOINT_CHANGED: lambda _: _quiet(crowds[Kind.CHECKPOINT].change()),
        }

    async def strike(self, planned: Planned) -> None:
        """Do one fault, and undo it. Raises AssertionError if something does not work as it must."""
        began = time.monotonic()
        detail = await self._acts[planned.fault](Random(planned.pick))
        self.happened[f"{planned.fault}{detail and f': {detail}'}"] += 1
        print(
            f"{time.strftime('%H:%M:%S')} {planned.lane}: {planned.fault} {detail} in {time.monotonic() - began:.1f} s",
            flush=True,
        )

    async def end(self) -> None:
        """What the last ones have left: the load is sampled directly, and no pipeline is to run."""
        await self._set_source("Direct")

    def _mortal(self, random: Random) -> RunningOperator:
        return random.choice(self._stage.operators[1:])

    async def _kill_operator(self, random: Random) -> str:
        operator = self._mortal(random)
        operator.kill()
        await asyncio.sleep(random.choice((0.0, 0.0, 2 * LEASE_SECONDS)))
        await asyncio.to_thread(operator.start)
        return ""

    async def _restart_operator(self, random: Random) -> str:
        operator = self._mortal(random)
        await asyncio.to_thread(operator.stop)
        await asyncio.to_thread(operator.start)
        return ""

    async def _stop_operator(self, random: Random) -> str:
        operator = random.choice(self._stage.operators)
        os.kill(operator.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(random.uniform(1.2, 2.5) * LEASE_SECONDS)
        finally:
            os.kill(operator.pid, signal.SIGCONT)
        return ""

    async def _cut_off(self, random: Random) -> str:
        proxy = random.choice(self._stage.kube_proxies)
        await proxy.refuse()
        try:
            await asyncio.sleep(random.uniform(1.2, 2.5) * LEASE_SECONDS)
        finally:
            await proxy.listen()
        return ""

    async def _disturb_kube(self, random: Random) -> str:
        return await _disturb(random.choice(self._stage.kube_proxies), random.choice(_KUBE_WRITES), random)

    async def _disturb_admin(self, random: Random) -> str:
        return await _disturb(self._stage.admin_proxy, random.choice(_ADMIN_WRITES), random)

    async def _kill_broker(self, _: Random) -> str:
        # The other one is the only address of the connection, and of this run's own admin client.
        pulsar = self._stage.cluster.pulsar
        self._outages.begin()
        await asyncio.to_thread(pulsar.kill_broker, 1)
        await asyncio.sleep(BROKER_DEAD_SECONDS)
        await asyncio.to_thread(pulsar.start_broker, 1)
        self._outages.end()
        return ""

    async def _unload(self, _: Random) -> str:
        self._outages.begin(in_good_order=True)
        with suppress(TimeoutError, aiohttp.ClientError):
            path = f"namespaces/{self._world.pulsar_namespace}/unload"
            await self._world.pulsar.call("PUT", path, {}, allow=(500, 503))
        self._outages.end()
        return ""

    async def _kill_api_server(self, _: Random) -> str:
        cluster = self._stage.cluster
        await asyncio.to_thread(cluster.kill, "kube-apiserver")
        await asyncio.sleep(API_DEAD_SECONDS)
        await asyncio.to_thread(cluster.kubernetes.start)
        return ""

    async def _kill_pipeline(self, _: Random) -> str:
        drivers = command_lines("segment_load stream", str(self._stage.pipelines))
        for driver in drivers:
            with suppress(ProcessLookupError):
                os.kill(driver, signal.SIGKILL)
        return "" if drivers else "none was running"

    async def _change_source(self, _: Random) -> str:
        await self._set_source("Direct" if self._source == "Pipeline" else "Pipeline")
        return f"to {self._source}"

    async def _set_source(self, source: str) -> None:
        self._source = source
        await self._world.change(CONNECTIONS, "pulsar", {"load": {"source": source, "intervalSeconds": SAMPLE_SECONDS}})

    async def _rotate_secret(self, _: Random) -> str:
        key = tokens.secret_key_file(self._stage.brokers.superuser_token_file.parent)
        secret_key = await asyncio.to_thread(key.read_bytes)
        await self._set_token(tokens.issue(secret_key, "superuser", f"rotation-{next(self._numbers)}"))
        return ""

    async def _spoil_secret(self, random: Random) -> str:
        await self._set_token("not-a-token")
        await asyncio.sleep(WRONG_SECONDS)
        return await self._rotate_secret(random)

    async def _set_token(self, token: str) -> None:
        await self._world.kube.merge_patch(
            SECRETS, self._world.namespace, "pulsar-token", {"stringData": {"token": token}}
        )

    async def _visit(self, random: Random) -> str:
        name = await self._make_topic("visited", random)
        await self._traffic.visit(self._full(name), send=VISIT_MESSAGES)
        segments = random.randint(1, 5)
        await self._world.scale(name, segments)
        await self._world.until(
            TOPICS,
            name,
            lambda body: is_ready(body) and body["status"]["segments"]["active"] == segments,
            what=f"has {segments} segments",
            within_seconds=_DONE_SECONDS,
        )
        await self._traffic.visit(self._full(name), send=VISIT_MESSAGES)
        await self._delete(name)
        return ""

    async def _seek(self, random: Random) -> str:
        name = await self._make_topic("sought", random, policies=_RETAINED)
        await self._traffic.visit(self._full(name), send=VISIT_MESSAGES)
        await self._operate(name, "Seek", subscription=VISITORS, timestamp=_LONG_AGO)
        await self._traffic.visit(self._full(name), again=VISIT_MESSAGES)
        await self._delete(name)
        return ""

    async def _migrate(self, random: Random) -> str:
        name, partitions = f"migrated-{next(self._numbers)}", random.choice((0, 2, 3))
        topic = self._world.topic_name(name)
        if partitions:
            await self._world.pulsar.create_partitioned(topic.persistent, partitions)
        else:
            await self._world.pulsar.create_topic(topic.persistent)
        await self._traffic.visit(topic.persistent, send=VISIT_MESSAGES)
        await self._world.apply(
            manifests.topic(name, str(topic), migrateFrom={"topic": str(topic)}, deletionPolicy="Delete")
        )
        await self._world.until_ready(name, within_seconds=_DONE_SECONDS)
        await self._traffic.visit(topic.persistent, send=VISIT_MESSAGES)
        await self._delete(name)
        return f"{partitions or 'no'} partitions"

    async def _make_topic(self, prefix: str, random: Random, **spec: Any) -> str:
        name = f"{prefix}-{next(self._numbers)}"
        await self._world.apply(
            manifests.topic(
                name,
                self._full(name),
                initial=random.randint(1, 3),
                subscriptions=[VISITORS],
                deletionPolicy="Delete",
                autoScale={"enabled": False},
                **spec,
            )
        )
        await self._world.until_ready(name, within_seconds=_DONE_SECONDS)
        return name

    async def _delete(self, name: str) -> None:
        await self._world.delete(TOPICS, name)
        await self._world.until_gone(TOPICS, name, within_seconds=_DONE_SECONDS)

    def _full(self, name: str) -> str:
        return f"{self._world.pulsar_namespace}/{name}"

    async def _change_layout(self, random: Random) -> str:
        wanted = next_change(await self._world.layout(ORDERS), random, most=8)
        began = time.monotonic()
        outcome = await self._operate(ORDERS, wanted.kind, **wanted.block)
        self.change_seconds.append(time.monotonic() - began)
        return f"{wanted.kind} {outcome}"

    async def _operate(self, topic: str, kind: str, **block: Any) -> str:
        while True:
            body = await self._world.operate(topic, kind, within_seconds=_DONE_SECONDS, **block)
            await self._world.delete(SEGMENT_OPERATIONS, body["metadata"]["name"])
            if phase(body) == "Succeeded":
                return phase(body)
            # What is refused is rolled back, and told to whoever asked: he asks again once the token is right.
            assert _REFUSED in body["status"]["message"], f"{kind} of {topic}: {body['status']}"
            self.happened["operation refused for the wrong token, rolled back, and asked for again"] += 1
            await asyncio.sleep(WRONG_SECONDS)


async def _quiet(act: Awaitable[None]) -> str:
    await act
    return ""


async def _disturb(proxy: FaultProxy, call: tuple[str, str], random: Random) -> str:
    """Lose or delay the next such call, or the reply to it."""
    after, late = random.random() < 0.5, random.random() < 0.5
    hold = proxy.hold(*call, after=after)
    try:
        async with asyncio.timeout(_ARRIVE_SECONDS):
            await hold.arrived.wait()
        if late:
            await asyncio.sleep(random.uniform(0.5, 2.0) * LEASE_SECONDS)
        else:
            hold.drop()
    except TimeoutError:
        return "none came"
    finally:
        proxy.withdraw(hold)
    return f"{'reply' if after else 'request'} {'late' if late else 'lost'}"
