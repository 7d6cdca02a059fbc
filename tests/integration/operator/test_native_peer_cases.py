"""R38: the peer's cases of Admin, Service, Stats and EndToEnd with its own brokers, asked through our gateway.

Effects are looked up at the brokers; applications use Pulsar's own V5 client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dev.v5.process import V5Error
from scalable_topics_operator.cluster.resources import TOPICS
from tests.conformance.deliberate_differences import NATIVE_DIFFERENCES, NOT_ON_NATIVE
from tests.conformance.peer_case import PeerCase, judge, load_cases
from tests.support.callers import OUR_KINDS, make_caller
from tests.support.consumption import Kind
from tests.support.consumption_judge import judge_ordered
from tests.support.rest_bench import RestAnswer, RestBench
from tests.support.tcp_proxy import TcpProxy
from tests.support.v5_client import V5Client, V5Consumer
from tests.support.waiting import eventually

pytestmark = [pytest.mark.native, pytest.mark.asyncio(loop_scope="module")]

END_TO_END = "EndToEnd"
AREAS = ("Admin", "Service", "Stats", END_TO_END)
CASES = [case for case in load_cases() if case.area in AREAS and case.key not in NOT_ON_NATIVE]
KEYS = [f"key-{number}" for number in range(20)]
_LOAD_SECONDS = 90.0
# What the peer's operations are asked for with, of a topic of its own for each role.
REQUESTS: dict[str, tuple[str, str]] = {
    "create": ("PUT", ""),
    "delete": ("DELETE", ""),
    "get metadata": ("GET", ""),
    "list": ("GET", ".."),
    "create subscription": ("PUT", "/subscriptions/billing"),
    "delete subscription": ("DELETE", "/subscriptions/billing"),
    "split": ("POST", "/split/0"),
}


@dataclass(frozen=True, slots=True)
class Stage:
    """What a case is played on.

    Args:
        rest: the gateway and the brokers.
        given: of the case.
        local: name of a topic that no other case has.
        directory: for this case's files.
    """

    rest: RestBench
    given: dict[str, Any]
    local: str
    directory: Path

    @property
    def topic(self) -> str:
        """`topic://` name."""
        return self.rest.native.name(self.local)

    def application(self) -> AbstractAsyncContextManager[V5Client]:
        """Pulsar's V5 client."""
        return self.rest.v5(self.directory)

    async def ask(self, method: str, path: str = "", body: Any = None, token: str = "") -> RestAnswer:
        """Ask the gateway about the topic, again where a replica does not know its leader yet."""
        return await eventually(
            lambda: self.rest.ask(method, self.rest.url(self.local) + path, body=body, token=token),
            lambda answer: answer.status != 503,
            what="somebody leads the topic",
        )

    async def change(self, path: str) -> None:
        """Have something done to the topic; a replica hears of segments that were just made a moment after others."""
        answer = await eventually(
            lambda: self.ask("POST", path), lambda answer: answer.status != 404, what="the segment is known"
        )
        assert answer.status == 204, answer
        await self.rest.native.until_same(self.local)


async def _allowed(stage: Stage) -> dict[str, Any]:
    """Rights are Kubernetes verbs: a tenant's administrator has all but those to operate on segments (R33)."""
    rest, operation = stage.rest, stage.given["operation"]
    kinds = [kind for kind in OUR_KINDS if kind != "segmentoperations"]
    tenant_admin = await make_caller(rest.world.kube, rest.world.namespace, stage.local, ["*"], resources=kinds)
    method, path = REQUESTS[operation]
    allowed = []
    for role, token in (("nobody", rest.stranger), ("tenant-admin", tenant_admin), ("super-user", rest.admin)):
        local = f"{stage.local}-{role}"
        if operation != "create":
            await rest.create(local, 1)
        if operation == "delete subscription":
            made = await Stage(rest, {}, local, stage.directory).ask("PUT", f"{path}?type=QUEUE")
            assert made.status == 204, made
        url = rest.url() if operation == "list" else rest.url(local) + path
        before = await _seen(rest, local)
        answer = await eventually(
            lambda token=token, url=url: rest.ask(method, url, token=token),  # type: ignore[misc]
            lambda answer: answer.status != 503,
            what="somebody leads the topic",
        )
        assert answer.status in (200, 204, 403), answer
        if answer.status != 403:
            allowed.append(role)
        changed = await _seen(rest, local) != before
        assert changed == (answer.status != 403 and method != "GET"), f"{role}: {answer}"
    return {"allowed": allowed}


async def _seen(rest: RestBench, local: str) -> Any:
    """What the brokers have of a topic."""
    record = await rest.native.record(local)
    if record is None:
        return None
    return record["epoch"], sorted((await rest.native.stats(local))["subscriptions"])


async def _unknown_topic(stage: Stage) -> dict[str, Any]:
    before = await stage.rest.native.names()
    statuses = {(await stage.ask("GET", path)).status for path in ("", "/stats", "/watch")}
    segment = await stage.rest.ask("GET", f"{_segments_url(stage)}/0000-ffff-0")
    made = await stage.rest.native.names() != before
    return {"allowed": made or statuses | {segment.status} != {404}}


async def _unknown_segment(stage: Stage) -> dict[str, Any]:
    await stage.rest.create(stage.local, 2)
    before = await stage.rest.native.record(stage.local)
    statuses = {
        (await stage.rest.ask("GET", f"{_segments_url(stage)}/{descriptor}{rest}")).status
        for descriptor in ("0000-7fff-9", "0000-3fff-0")
        for rest in ("", "/subscriptions", "/subscription/s/backlog")
    }
    return {"allowed": statuses != {404} or await stage.rest.native.record(stage.local) != before}


async def _made_again(stage: Stage) -> dict[str, Any]:
    """A segment that was deleted behind the brokers' back is made again for whoever produces to it."""
    await stage.rest.create(stage.local, 1)
    path = f"segments/{stage.rest.world.pulsar_namespace}/{stage.local}/0000-ffff-0"
    await stage.rest.world.pulsar.call("DELETE", f"{path}?force=true")
    async with stage.application() as application:
        stored = await application.produce(stage.topic, "list", ["key"])
    return {"allowed": stored == [0]}


async def _override_on_missing(stage: Stage) -> dict[str, Any]:
    return {"status": (await stage.ask("POST", "/autoScalePolicy", {})).status}


async def _override_refused(stage: Stage) -> dict[str, Any]:
    await stage.rest.create(stage.local, 1)
    before, override = await stage.rest.native.record(stage.local), stage.given["override"]
    statuses = {
        (await stage.ask("POST", "/autoScalePolicy", override)).status,
        (await stage.rest.ask("POST", _namespace_policy(stage), body=override)).status,
    }
    assert await stage.rest.native.record(stage.local) == before, "the brokers were told nothing"
    return {"status": statuses.pop() if len(statuses) == 1 else statuses}


async def _override_of_namespace(stage: Stage) -> dict[str, Any]:
    rest, url, override = stage.rest, _namespace_policy(stage), stage.given["override"]
    await rest.create(stage.local, 1)

    async def stored() -> Any:
        return ((await rest.native.record(stage.local)) or {}).get("autoScalePolicy")

    before = await stored()
    assert before != override
    assert (await rest.ask("POST", url, body=override)).status == 204
    first = (await rest.ask("GET", url)).body
    await eventually(stored, lambda found: found == override, what="the brokers go by it")
    assert (await rest.ask("DELETE", url)).status == 204
    last = (await rest.ask("GET", url)).body
    await eventually(stored, lambda found: found == before, what="the brokers go by it no more")
    return {"reads": ["same" if first == override else first, last]}


async def _deleted(stage: Stage) -> dict[str, Any]:
    await stage.rest.create(stage.local, 2)
    assert (await stage.ask("PUT", "/subscriptions/s?type=STREAM")).status == 204
    await _with_load(stage)
    segments = [one.segment_id for one in (await stage.rest.native.layout(stage.local)).active]
    assert (await stage.ask("DELETE", "?force=true")).status == 204
    gone = [
        await stage.rest.world.pulsar.call("POST", f"{_broker_segment(stage, name)}/terminate", allow=(404,)) == 404
        for name in ("0000-7fff-0", "8000-ffff-1")
    ]
    has_topic = await stage.rest.native.record(stage.local) is not None
    # Its successor would be shown with what was left.
    await stage.rest.create(stage.local, 2)
    stats = await stage.rest.native.stats(stage.local)
    loads = [one.get("load") for one in stats["layout"]["segments"].values()]
    return {
        "topic": has_topic,
        "subscription": "s" in stats["subscriptions"],
        "loadRecord": any(loads),
        "segmentDeletes": ">=2" if len(segments) == 2 and all(gone) else gone,
    }


async def _no_segments(stage: Stage) -> dict[str, Any]:
    answer = await stage.ask("PUT", "?numInitialSegments=0", {})
    assert await stage.rest.native.record(stage.local) is None
    return {"error": "illegal-argument" if answer.status == 400 else answer.status}


async def _reshaped(stage: Stage, path: str) -> dict[str, Any]:
    await stage.rest.create(stage.local, 2)
    assert (await stage.ask("PUT", "/subscriptions/s?type=QUEUE")).status == 204
    await stage.change(path)
    layout = await stage.rest.native.layout(stage.local)
    return {"epoch": layout.epoch, "total": len(layout.segments)}


async def _with_load(stage: Stage) -> None:
    """Send until the brokers have a record of the load of both segments."""
    async with stage.application() as application:
        producer = await application.producer(stage.topic, "p", KEYS, total=10**6, per_second=200)

        def has_load(answer: RestAnswer) -> bool:
            loads = [one["load"] for one in answer.body["layout"]["segments"].values()] if answer.status == 200 else []
            return bool(loads) and all(load and load["msgRateIn"] for load in loads)

        await eventually(
            lambda: stage.ask("GET", "/stats"), has_load, what="there is load", within_seconds=_LOAD_SECONDS
        )
        await producer.stop()


async def _folded(stage: Stage) -> dict[str, Any]:
    """Of what a client calls its producers on segments the topic's stats show one name."""
    await stage.rest.create(stage.local, 1)
    assert (await stage.ask("PUT", "/subscriptions/s?type=QUEUE")).status == 204
    for segment_id in range(6):
        await stage.change(f"/split/{segment_id}")
    segment = stage.given["segment"]
    async with stage.application() as application:
        producer = await application.producer(
            stage.topic, "p", KEYS, total=10**6, per_second=100, producer_name=stage.local
        )
        await producer.until(3 * len(KEYS))
        there = (await stage.rest.native.call("GET", stage.local, f"/segments/{segment}/stats"))["producers"]
        shown = (await stage.ask("GET", "/stats")).body["producers"]
        await producer.stop()
    assert len(there) == len(shown) == 1, (there, shown)
    (on_segment,), (of_topic,) = there, shown
    assert on_segment["producerName"].replace(stage.local, "p") == stage.given["name"]
    return {"name": of_topic["producerName"].replace(stage.local, "p")}


async def _auto_created(stage: Stage) -> dict[str, Any]:
    """By a client of the brokers; nobody has declared it, so our gateway knows none, and makes none by being asked."""
    async with stage.application() as application:
        await application.produce(stage.topic, "list", KEYS)
    layout = await stage.rest.native.layout(stage.local)
    assert (await stage.ask("GET")).status == 404
    assert not any(
        one["spec"]["topic"] == stage.topic
        for one in await stage.rest.world.kube.list_all(TOPICS, stage.rest.world.namespace)
    )
    return {"segments": len(layout.active)}


async def _under_traffic(stage: Stage, segments: int, path: str) -> dict[str, Any]:
    """Pulsar's own producer stores the message that is under way at a seal twice now and then (measured), so what comes
    to a consumer is held to what is stored: to what a subscription has whose consumer comes when all is over.
    """
    await stage.rest.create(stage.local, segments)
    assert (await stage.ask("PUT", "/subscriptions/kept?type=QUEUE")).status == 204
    async with stage.application() as application:
        stream = await application.consumer(Kind.STREAM, stage.topic, "ordered", "stream")
        producer = await application.producer(stage.topic, "p", KEYS, total=10**6, per_second=300)
        await producer.until(100)
        await stage.change(path)
        await producer.until(100)
        await producer.stop()
        reader = await application.consumer(Kind.QUEUE, stage.topic, "kept", "reader")
        await stage.rest.native.until_drained(stage.local, "ordered", "kept")
        for consumer in (stream, reader):
            await consumer.stop()
    sent = Counter(one.message for one in producer.sent)
    received, stored = (Counter(one.message for one in consumer.receipts) for consumer in (stream, reader))
    assert len({one.segment for one in producer.sent}) > segments, "the new segments were used"
    # Of one sender, one message is under way at a time.
    assert (stored - sent).total() <= 1, stored.most_common(2)
    return {"lost": (sent - received).total(), "duplicates": (received - stored).total()}


async def _watch_lost(stage: Stage) -> dict[str, Any]:
    await stage.rest.create(stage.local, 1)
    failed = 0
    access = stage.rest.pulsar
    async with (
        TcpProxy(access.service_url) as proxy,
        V5Client.connected(proxy.service_url, access.superuser_token_file, stage.directory) as application,
    ):
        producer = await application.producer(stage.topic, "p", KEYS, total=10**6, per_second=100)
        await producer.until(50)
        assert proxy.connections
        proxy.cut()
        try:
            await producer.until(50)
            await stage.change("/split/0")
            await producer.until(2 * len(KEYS))
            await producer.stop()
        except V5Error:
            failed += 1
    assert {one.segment for one in producer.sent} == {0, 1, 2}, "it learnt of the split afterwards"
    return {"failedSends": failed}


async def _replayed(stage: Stage) -> dict[str, Any]:
    await stage.rest.create(stage.local, 1)
    # The brokers prune, within a minute, what no subscription needs.
    assert (await stage.ask("PUT", "/subscriptions/keeper?type=QUEUE")).status == 204
    total = stage.given["before"] + stage.given["after"]
    async with stage.application() as application:
        await application.produce(stage.topic, "before", [f"k{one}" for one in range(stage.given["before"])])
        await stage.change("/split/0")
        await application.produce(stage.topic, "after", [f"k{one}" for one in range(stage.given["after"])])
        stream = await application.consumer(Kind.STREAM, stage.topic, "new", "one")
        await stream.until(total)
        received = await stream.stop()
    return {"received": len({(one.producer, one.key, one.number) for one in received})}


async def _not_redelivered(stage: Stage) -> dict[str, Any]:
    await stage.rest.create(stage.local, 1)
    async with stage.application() as application:
        first = await application.consumer(Kind.STREAM, stage.topic, "s", "one")
        await application.produce(stage.topic, "before", [f"k{one}" for one in range(stage.given["before"])])
        await stage.change("/split/0")
        await first.until(stage.given["before"])
        await first.stop()
        second = await application.consumer(Kind.STREAM, stage.topic, "s", "one")
        await application.produce(stage.topic, "after", KEYS)
        await second.until(len(KEYS))
        received = await second.stop()
    return {"redelivered": sum(one.producer == "before" for one in received)}


async def _kept_keys(stage: Stage) -> dict[str, Any]:
    await stage.rest.create(stage.local, stage.given["segments"])
    keys = [f"k{one}" for one in range(60)]
    alice_name, bob_name = stage.given["consumers"]
    async with stage.application() as application:
        alice = await application.consumer(Kind.STREAM, stage.topic, "s", alice_name)
        bob = await application.consumer(Kind.STREAM, stage.topic, "s", bob_name)
        await application.produce(stage.topic, "first", keys)
        await _until_all(application, [alice, bob], len(keys))
        before = {one.key for one in alice.received}
        had = len(bob.received)
        await alice.stop()
        again = await application.consumer(Kind.STREAM, stage.topic, "s", alice_name)
        await application.produce(stage.topic, "second", keys)
        await _until_all(application, [again, bob], len(keys) + had)
        after = {one.key for one in again.received if one.producer == "second"}
    assert before, "alice had nothing to read"
    return {"keySetUnchanged": before == after}


async def _joined(stage: Stage, *, again: bool) -> dict[str, Any]:
    """A second consumer of a segment joins while messages come, and once more after it has left, if it is to."""
    await stage.rest.create(stage.local, 1)
    (segment,) = (await stage.rest.native.layout(stage.local)).active
    assert segment.buckets == stage.given["buckets"]
    async with stage.application() as application:
        everybody = [await application.consumer(Kind.STREAM, stage.topic, "s", "one")]
        producer = await application.producer(stage.topic, "p", KEYS, total=10**6, per_second=300)
        await producer.until(200)
        everybody.append(await application.consumer(Kind.STREAM, stage.topic, "s", "two"))
        await _until_any(application, everybody[-1])
        await producer.until(300)
        if again:
            await everybody[-1].stop()
            await producer.until(200)
            everybody.append(await application.consumer(Kind.STREAM, stage.topic, "s", "two"))
            await _until_any(application, everybody[-1])
        await producer.stop()
        sent = [one.message for one in producer.sent]
        await application.until(
            lambda: {one for consumer in everybody for one in _messages(consumer)} >= set(sent),
            lambda: f"of {len(sent)} they have received {[len(one.received) for one in everybody]}",
            within_seconds=90,
        )
    judgement = judge_ordered(sent, [receipt for consumer in everybody for receipt in consumer.receipts])
    return {"stuck": False, "orderViolations": len(judgement.disordered)}


def _messages(consumer: V5Consumer) -> set[Any]:
    return {one.message for one in consumer.receipts}


async def _until_any(application: V5Client, consumer: V5Consumer) -> None:
    await application.until(lambda: bool(consumer.received), lambda: f"{consumer.name} has received nothing", 60)


async def _until_all(application: V5Client, consumers: list[V5Consumer], total: int) -> None:
    await application.until(
        lambda: sum(len(one.received) for one in consumers) >= total,
        lambda: f"of {total} they have received {[len(one.received) for one in consumers]}",
        60,
    )


def _segments_url(stage: Stage) -> str:
    return f"/admin/v2/segments/{stage.rest.world.pulsar_namespace}/{stage.local}"


def _broker_segment(stage: Stage, descriptor: str) -> str:
    return f"segments/{stage.rest.world.pulsar_namespace}/{stage.local}/{descriptor}"


def _namespace_policy(stage: Stage) -> str:
    return f"/admin/v2/namespaces/{stage.rest.world.pulsar_namespace}/scalableTopicAutoScalePolicy"


Story = Callable[[Stage], Awaitable[dict[str, Any]]]
STORIES: dict[str, Story] = {
    **{f"least privilege for {operation}": _allowed for operation in REQUESTS},
    "missing parent: may not": _unknown_topic,
    "active segment may be re-created on connect": _made_again,
    "unknown id may not": _unknown_segment,
    "override on a missing topic": _override_on_missing,
    "invalid override refused at both levels": _override_refused,
    "namespace override set, read, removed": _override_of_namespace,
    "delete removes subscriptions and load records too": _deleted,
    "zero segments refused": _no_segments,
    "split through the service": lambda stage: _reshaped(stage, "/split/0"),
    "merge through the service": lambda stage: _reshaped(stage, "/merge/0/1"),
    "fold name p-seg-12 at 12": _folded,
    "lookup auto-creates one segment when policy allows": _auto_created,
    "split under traffic loses nothing": lambda stage: _under_traffic(stage, 1, "/split/0"),
    "merge under traffic loses nothing": lambda stage: _under_traffic(stage, 2, "/merge/0/1"),
    "producer survives loss of the watch connection": _watch_lost,
    "new earliest subscriber replays the sealed parent": _replayed,
    "drained sealed backlog is not redelivered": _not_redelivered,
    "same name inside grace keeps its keys": _kept_keys,
    "consumer joining mid-traffic keeps per-key order": lambda stage: _joined(stage, again=False),
    "join, leave, rejoin does not wedge the release": lambda stage: _joined(stage, again=True),
}


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_peer_case(case: PeerCase, native_rest: RestBench, tmp_path: Path) -> None:
    local = f"case-{CASES.index(case)}"
    judge(case, await STORIES[case.name](Stage(native_rest, case.given, local, tmp_path)), NATIVE_DIFFERENCES)
