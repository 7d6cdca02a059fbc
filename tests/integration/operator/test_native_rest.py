"""R2, R32, R33: the gateway serves topics whose layout the brokers own as it serves the others.

What comes of it is looked up at the brokers of Pulsar 5, not asked of the REST.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import aiohttp
import pulsar
import pytest

from scalable_topics.layout import from_pip468
from scalable_topics.sdk import Client, ClientError, ConnectError, GatewayOptions, ScalableTopicNotFoundError
from scalable_topics.sdk.errors import SessionRefusedError
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, SUBSCRIPTIONS, TOPICS
from tests.support.consumption import Kind
from tests.support.rest_bench import RestAnswer, RestBench
from tests.support.waiting import eventually

pytestmark = [pytest.mark.native, pytest.mark.asyncio(loop_scope="module")]


async def _types(rest: RestBench, topic: str) -> dict[str, str]:
    """The subscriptions that the brokers have, with their types."""
    return {name: one["type"] for name, one in (await rest.native.stats(topic))["subscriptions"].items()}


async def _make(rest: RestBench, topic: str, segments: int, properties: dict[str, str] | None = None) -> None:
    """Create a topic, and wait until both replicas know who leads it."""
    await rest.create(topic, segments, properties)
    for operator in rest.two.operators:
        await eventually(
            lambda operator=operator: rest.ask("GET", f"{rest.url(topic)}/stats", at=operator),  # type: ignore[misc]
            lambda answer: answer.status == 200,
            what=f"{operator.identity} knows the leader of {topic}",
        )


async def test_a_topic_comes_and_goes(native_rest: RestBench, tmp_path: Path) -> None:
    rest, url = native_rest, native_rest.url("comes")
    await _make(rest, "comes", 2, {"team": "shop"})
    body = await rest.world.get(TOPICS, "comes")
    assert body["status"]["backend"] == "Native"
    theirs = await rest.native.record("comes")
    assert theirs is not None
    assert theirs["properties"]["team"] == "shop"
    shown = (await rest.ask("GET", url)).body
    assert shown["properties"] == {"team": "shop"}, "the claim is nobody's business"
    assert [(one.segment_id, one.hash_range, one.buckets) for one in from_pip468(shown).active] == [
        (one.segment_id, one.hash_range, one.buckets) for one in (await rest.native.layout("comes")).active
    ]
    assert rest.native.name("comes") in (await rest.ask("GET", rest.url())).body
    assert (await rest.ask("PUT", url, body={})).status == 409

    async with rest.v5(tmp_path) as application:
        producer = await application.producer(rest.native.name("comes"), "p", ["key"], total=10**6, per_second=50)
        await producer.until(1)
        answer = await rest.ask("DELETE", url)
        assert (answer.status, "producers and 0 consumers" in answer.reason) == (412, True)
        assert await rest.native.record("comes") == theirs, "nothing was done"
        await producer.stop()
    answer = await eventually(
        lambda: rest.ask("DELETE", url), lambda answer: answer.status != 412, what="the producer is gone"
    )
    assert answer.status == 204
    assert await rest.native.record("comes") is None


async def test_r32_asking_for_what_is_missing_creates_nothing(native_rest: RestBench) -> None:
    before = await native_rest.native.names()
    for path in ("", "/stats", "/subscriptions", "/autoScalePolicy/effective", "/watch"):
        assert (await native_rest.ask("GET", native_rest.url("nowhere") + path)).status == 404, path
    assert await native_rest.native.names() == before


async def test_segments_are_split_merged_and_rebucketed_by_the_brokers(native_rest: RestBench) -> None:
    rest, url = native_rest, native_rest.url("shaped")
    await _make(rest, "shaped", 2)
    planned = await rest.ask("POST", f"{url}/split/0?dryRun=true")
    assert planned.status == 200
    assert [child["range"] for child in planned.body["plan"]["children"]] == ["0000-3fff", "4000-7fff"]
    assert (await rest.native.layout("shaped")).epoch == 0

    answer = await rest.ask("POST", f"{url}/split/0")
    assert answer.status == 204
    operation = await rest.world.get(SEGMENT_OPERATIONS, answer.operation.partition("/")[2])
    assert operation["status"]["phase"] == "Succeeded"
    assert [one.segment_id for one in (await rest.native.layout("shaped")).active] == [2, 3, 1]
    await rest.until_shown(url, segments=4)
    assert (await rest.ask("POST", f"{url}/merge/2/3")).status == 204
    await rest.until_shown(url, segments=5)
    assert (await rest.ask("POST", f"{url}/rebucket/1?buckets=8")).status == 204
    layout = await rest.native.until_same("shaped")
    assert [(one.segment_id, one.buckets) for one in layout.active][1] == (5, 8)

    async def refused(path: str, body: Any = None) -> tuple[int, str]:
        answer = await rest.ask("POST", f"{url}/{path}", body=body)
        return answer.status, answer.reason

    for path, status, why in (
        ("split/1", 412, "is sealed"),
        ("split/99", 404, "no segment 99"),
        ("split/4?at=4096", 412, "two halves only"),
        ("split/4?into=4", 412, "two halves only"),
        ("merge/4/4", 400, "twice"),
        ("migrate", 409, "scalable topic already"),
        ("subscriptions/nobody/skip-all", 404, "no subscription nobody"),
    ):
        found = await refused(path)
        assert (found[0], why in found[1]) == (status, True), found
    assert (await rest.native.layout("shaped")).epoch == layout.epoch


async def test_subscriptions_are_the_brokers_own_and_no_object_is_made(native_rest: RestBench, tmp_path: Path) -> None:
    rest, url = native_rest, f"{native_rest.url('read')}/subscriptions"
    await _make(rest, "read", 2)
    for name, kind in (("ordered", "STREAM"), ("shared", "QUEUE")):
        assert (await rest.ask("PUT", f"{url}/{name}?type={kind}")).status == 204
        assert (await rest.ask("PUT", f"{url}/{name}?type={kind}")).status == 204, "twice is once"
    assert await _types(rest, "read") == {"ordered": "STREAM", "shared": "QUEUE"}
    assert await rest.world.kube.list_all(SUBSCRIPTIONS, rest.world.namespace) == []
    for name, kind, status, why in (
        ("ordered", "QUEUE", 409, "of type STREAM"),
        ("shared", "STREAM", 409, "of type QUEUE"),
        ("group", "CHECKPOINT", 412, "keep their positions themselves"),
    ):
        answer = await rest.ask("PUT", f"{url}/{name}?type={kind}")
        assert (answer.status, why in answer.reason) == (status, True), answer
    assert await _types(rest, "read") == {"ordered": "STREAM", "shared": "QUEUE"}

    async with rest.v5(tmp_path) as application:
        topic = rest.native.name("read")
        await application.produce(topic, "before", [f"k{number}" for number in range(20)])
        assert (await rest.ask("PUT", f"{url}/late?type=STREAM&initialPosition=latest")).status == 204
        own = await application.consumer(Kind.QUEUE, topic, "own", "reader")
        await own.until(20)

        async def shown() -> dict[str, Any]:
            return {one["subscription"]: one for one in (await rest.ask("GET", url)).body}

        found = await eventually(
            shown, lambda found: found["shared"]["msgBacklog"] == 20, what="the backlog is the brokers'"
        )
        assert {name: (one["type"], one["declaredBy"], one["phase"]) for name, one in found.items()} == {
            "ordered": ("STREAM", "request", "Active"),
            "shared": ("QUEUE", "request", "Active"),
            "late": ("STREAM", "request", "Active"),
            "own": ("QUEUE", "clients", "Active"),
        }
        assert found["late"]["msgBacklog"] == 0

        stream = await application.consumer(Kind.STREAM, topic, "ordered", "alice")
        await stream.until(20)
        one = await eventually(
            lambda: rest.ask("GET", f"{url}/ordered"),
            lambda answer: bool(answer.body["assignment"]["consumers"]),
            what="who reads what is told",
        )
        (consumer,) = one.body["assignment"]["consumers"]
        assert consumer["name"] == "alice"
        assert [part["segment"] for part in consumer["segments"]] == [0, 1]

        answer = await rest.ask("DELETE", f"{url}/ordered")
        assert (answer.status, "1 consumers" in answer.reason) == (412, True), answer
        assert "ordered" in await _types(rest, "read")
        await stream.stop()
        assert (await rest.ask("DELETE", f"{url}/ordered?force=true")).status == 204
        await own.stop()
    assert (await rest.ask("DELETE", f"{url}/shared")).status == 204
    assert (await rest.ask("DELETE", f"{url}/shared")).status == 404
    assert set(await _types(rest, "read")) == {"late", "own"}


async def test_subscriptions_are_moved(native_rest: RestBench, tmp_path: Path) -> None:
    rest, url = native_rest, f"{native_rest.url('moved')}/subscriptions/s"
    await _make(rest, "moved", 2)
    assert (await rest.ask("PUT", f"{url}?type=QUEUE")).status == 204
    async with rest.v5(tmp_path) as application:
        await application.produce(rest.native.name("moved"), "list", [f"k{number}" for number in range(10)])
    assert (await rest.ask("POST", f"{url}/skip-all")).status == 204
    await rest.native.until_drained("moved", "s")
    before_all = round((time.time() - 3600) * 1000)
    assert (await rest.ask("POST", f"{url}/seek?timestamp={before_all}")).status == 204
    await eventually(
        lambda: rest.native.stats("moved"),
        lambda stats: stats["subscriptions"]["s"]["msgBacklog"] == 10,
        what="everything is to be read again",
    )
    positions = {"positions": [{"segment": 0, "ledgerId": 1, "entryId": 0}]}
    answer = await rest.ask("POST", f"{url}/restore", body=positions)
    assert (answer.status, "by their consumers" in answer.reason) == (412, True)


async def test_an_ordinary_topic_is_migrated_and_its_old_segment_is_shown(native_rest: RestBench) -> None:
    rest, url = native_rest, native_rest.url("plain")
    old = rest.world.topic_name("plain").persistent
    await rest.world.pulsar.create_topic(old)
    await rest.world.pulsar.create_subscription(old, "billing")
    with rest.application() as application:
        await application.send(old, "m0", "m1", "m2")
    assert (await rest.ask("POST", f"{url}/migrate?dryRun=true")).status == 200
    assert await rest.native.record("plain") is None
    assert (await rest.ask("POST", f"{url}/migrate")).status == 204
    await rest.until_shown(url, segments=2)
    assert [one.topic for one in (await rest.native.layout("plain")).sealed] == [old]
    record = (await rest.ask("GET", url)).body
    assert record["segments"]["0"]["legacyTopicName"] == old
    stats = await eventually(
        lambda: rest.ask("GET", f"{url}/stats"), lambda answer: answer.status == 200, what="there are stats"
    )
    segments = stats.body["layout"]["segments"]
    assert [(one["state"], one["hashRange"]) for one in segments.values()] == [
        ("Sealed", "0000-ffff"),
        ("Active", "0000-ffff"),
    ]
    assert stats.body["subscriptions"]["billing"]["msgBacklog"] == 3
    path = f"/admin/v2/segments/{rest.world.pulsar_namespace}/plain"
    for descriptor, backlog in (("0000-ffff-0", 3), ("0000-ffff-1", 0)):
        assert (await rest.ask("GET", f"{path}/{descriptor}/subscription/billing/backlog")).body == backlog


async def test_stats_and_segments_tell_what_the_brokers_tell(native_rest: RestBench, tmp_path: Path) -> None:
    rest, url = native_rest, native_rest.url("busy")
    await _make(rest, "busy", 2)
    assert (await rest.ask("PUT", f"{url}/subscriptions/s?type=QUEUE")).status == 204
    async with rest.v5(tmp_path) as application:
        keys = [f"k{number}" for number in range(8)]
        producer = await application.producer(rest.native.name("busy"), "p", keys, total=10**6, per_second=100)

        def shows_traffic(answer: RestAnswer) -> bool:
            if answer.status != 200:
                return False
            segments = answer.body["layout"]["segments"].values()
            return answer.body["msgRateIn"] > 0 and all(one["load"] and one["load"]["msgRateIn"] for one in segments)

        stats = await eventually(
            lambda: rest.ask("GET", f"{url}/stats"), shows_traffic, what="stats show the load", within_seconds=90
        )
        await producer.stop()
    segments = stats.body["layout"]["segments"]
    assert {key: (one["name"], one["state"], one["hashRange"]) for key, one in segments.items()} == {
        "0": (f"segment://{rest.world.pulsar_namespace}/busy/0000-7fff-0", "Active", "0000-7fff"),
        "1": (f"segment://{rest.world.pulsar_namespace}/busy/8000-ffff-1", "Active", "8000-ffff"),
    }
    rates = [stats.body[name] for name in ("msgRateIn", "byteRateIn", "msgRateOut", "byteRateOut")]
    assert rates == [round(rate, 3) for rate in rates]
    assert stats.body["averageMsgSize"] > 0
    assert all(one["ownerBroker"] and not one["terminated"] for one in segments.values())
    assert stats.body["autoScale"]["engine"] == "Broker"
    assert stats.body["scaling"]["maxBacklog"] == stats.body["subscriptions"]["s"]["msgBacklog"] > 0
    sent = len(producer.sent)

    path = f"/admin/v2/segments/{rest.world.pulsar_namespace}/busy/0000-7fff-0"
    record = (await rest.ask("GET", path)).body
    assert (record["segmentId"], record["hashRange"]) == (0, {"start": 0, "end": 0x7FFF})
    left = 0
    for descriptor in ("0000-7fff-0", "8000-ffff-1"):
        path = f"/admin/v2/segments/{rest.world.pulsar_namespace}/busy/{descriptor}"
        cursors = (await rest.ask("GET", f"{path}/subscriptions")).body
        assert (cursors["s"]["consumers"], cursors["s"]["counts"]) == (0, True)
        assert (await rest.ask("GET", f"{path}/subscription/s/backlog")).body == cursors["s"]["backlog"]
        left += cursors["s"]["backlog"]
        assert (await rest.ask("GET", f"{path}/subscription/none/backlog")).status == 404
        assert (await rest.ask("POST", f"{path}/terminate")).status == 405
    assert left == sent


async def test_the_policy_in_force_and_whose_decisions_they_are(native_rest: RestBench) -> None:
    rest, url = native_rest, native_rest.url("ruled")
    await _make(rest, "ruled", 1)
    assert (await rest.ask("POST", f"{url}/autoScalePolicy", body={"enabled": True, "maxSegments": 7})).status == 204

    async def effective() -> tuple[dict[str, Any], dict[str, tuple[Any, str]]]:
        answer = await rest.ask("GET", f"{url}/autoScalePolicy/effective")
        knobs = answer.body.get("knobs", ()) if answer.status == 200 else ()
        return answer.body, {one["knob"]: (one["value"], one["origin"]) for one in knobs}

    body, knobs = await eventually(
        effective, lambda found: found[1].get("maxSegments", (0,))[0] == 7, what="the override counts"
    )
    assert body["engine"] == "Broker"
    stats = await eventually(
        lambda: rest.native.stats("ruled"),
        lambda stats: stats["autoScale"]["policy"]["maxSegments"] == 7,
        what="the brokers go by it",
    )
    theirs = stats["autoScale"]["policy"]
    assert knobs["maxDagDepth"] == (theirs["maxDagDepth"], "brokers")
    assert knobs["split.msgRateIn"] == (theirs["splitMsgRateInThreshold"], "brokers")
    assert "SegmentAutoScalePolicy" in knobs["maxSegments"][1]
    explained = await eventually(
        lambda: rest.ask("GET", f"{url}/autoScale/explain"), lambda answer: answer.status == 200, what="it is explained"
    )
    assert explained.body["engine"] == "Broker"
    assert "the brokers split and merge by themselves" in explained.body["findings"][0]["why"]


async def test_watchers_are_told_the_names_of_the_brokers(native_rest: RestBench) -> None:
    rest = native_rest
    await _make(rest, "watched", 2)
    gateway = rest.two.operators[0].gateway_url
    headers = {"Authorization": f"Bearer {rest.admin}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.ws_connect(f"{gateway}{rest.url('watched')}/watch?owners=true") as socket,
    ):
        first = await socket.receive_json(timeout=15)
        names = [one["topic"] for one in first["layout"]["segments"]]
        prefix = f"segment://{rest.world.pulsar_namespace}/watched"
        assert names == [f"{prefix}/0000-7fff-0", f"{prefix}/8000-ffff-1"]
        owners = await socket.receive_json(timeout=15)
        assert (owners["type"], set(owners["owners"])) == ("owners", {"0", "1"})
        assert set(owners["owners"].values()) == {rest.pulsar.service_url}
        # Not by us: what the brokers do is told, too.
        await rest.native.call("POST", "watched", "/split/1")
        async with asyncio.timeout(30):
            while (frame := await socket.receive_json())["type"] != "layout":
                pass
        assert frame["layout"]["epoch"] == 1
        active = [one["topic"] for one in frame["layout"]["segments"] if one["state"] == "Active"]
        assert active == [f"{prefix}/0000-7fff-0", f"{prefix}/8000-bfff-2", f"{prefix}/c000-ffff-3"]


async def test_r33_a_token_of_pulsar_is_judged_by_a_lookup_of_a_native_segment(native_rest: RestBench) -> None:
    rest = native_rest
    await _make(rest, "judged", 1)
    gateway = rest.two.operators[0].gateway_url
    url = f"{gateway}{rest.url('judged')}/watch"
    for token, status in ((rest.pulsar.superuser_token, 101), (rest.pulsar.client_token, 403), ("none", 401)):
        async with aiohttp.ClientSession(headers={"Authorization": f"Pulsar {token.strip()}"}) as session:
            if status == 101:
                async with session.ws_connect(url) as socket:
                    assert (await socket.receive_json(timeout=15))["type"] == "layout"
            else:
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await session.ws_connect(url)
                assert refused.value.status == status


async def test_consumers_of_ours_are_told_to_use_the_v5_client(native_rest: RestBench) -> None:
    rest = native_rest
    await _make(rest, "session", 1)
    async with rest.session("session", "s", "alice") as session:
        frame = await session.next("refused")
        assert (frame["status"], frame["final"]) == (412, True)
        assert "the brokers coordinate consumers" in frame["reason"]
        assert "Java V5 client" in frame["reason"]
        await session.is_ended()
    assert await rest.world.kube.list_all(SUBSCRIPTIONS, rest.world.namespace) == []
    assert await _types(rest, "session") == {}


async def test_the_python_library_says_at_once_that_it_cannot(native_rest: RestBench) -> None:
    rest, name = native_rest, native_rest.native.name("python")
    await _make(rest, "python", 2)
    gateway = GatewayOptions(rest.two.operators[0].gateway_url, token=rest.admin)
    plain = name.replace("topic://", "persistent://")
    async with Client(
        rest.pulsar.service_url, pulsar.AuthenticationToken(rest.pulsar.superuser_token), gateway=gateway
    ) as client:
        attempts: list[tuple[Any, type[ClientError], str]] = [
            (lambda: client.producer(name), ScalableTopicNotFoundError, "Java V5 client"),
            (lambda: client.queue_consumer(name, "s"), ScalableTopicNotFoundError, "Java V5 client"),
            (lambda: client.stream_consumer(name, "s"), SessionRefusedError, "Java V5 client"),
            (lambda: client.checkpoint_consumer(name, "s"), SessionRefusedError, "Java V5 client"),
            (lambda: client.producer(plain), ConnectError, "Java V5 client"),
            (lambda: client.queue_consumer(plain, "s"), ConnectError, "Java V5 client"),
            (lambda: client.stream_consumer(plain, "s"), ConnectError, "Java V5 client"),
        ]
        for attempt, error, text in attempts:
            async with asyncio.timeout(20):
                with pytest.raises(error, match=text):
                    await attempt()
    assert await rest.native.record("python") is not None
    assert await _types(rest, "python") == {}, "nothing was made of it"
