"""pip-475's resolution rule with real replicas and brokers: ordinary topics watched through their migration (R25)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from scalable_topics_operator.cluster.resources import TOPICS
from tests.support.rest_bench import RestBench
from tests.support.running_operator import RunningOperator
from tests.support.session_client import connect

pytestmark = pytest.mark.asyncio(loop_scope="module")

Frame = dict[str, Any]


@asynccontextmanager
async def _watching(
    rest: RestBench, operator: RunningOperator, topic: str
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    url = f"{operator.gateway_url}{rest.url(topic)}/watch?domain=persistent"
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {rest.admin}"}) as session,
        await connect(session, url) as socket,
    ):
        yield socket


async def _next(socket: aiohttp.ClientWebSocketResponse, within_seconds: float = 30.0) -> Frame:
    async with asyncio.timeout(within_seconds):
        message = await socket.receive()
        assert message.type is aiohttp.WSMsgType.TEXT, message
        found: Frame = json.loads(message.data)
        return found


async def test_an_ordinary_topic_is_watched_through_its_growth_and_its_migration(rest: RestBench) -> None:
    world, name = rest.world, rest.world.topic_name("watched").persistent
    one, other = rest.two.operators
    await world.pulsar.create_partitioned(name, 2)
    for number in range(2):
        # Else brokers would delete it as unused.
        await world.pulsar.create_subscription(f"{name}-partition-{number}", "keeps-it")
    async with _watching(rest, one, "watched") as first, _watching(rest, other, "watched") as second:
        modelled = await _next(first)
        assert modelled == await _next(second), "replicas tell the same"
        assert modelled["layout"]["routing"] == "Modulo"
        topics = [segment["topic"] for segment in modelled["layout"]["segments"]]
        assert topics == [f"{name}-partition-{number}" for number in range(2)]
        await world.pulsar.call("POST", f"persistent/{name.removeprefix('persistent://')}/partitions", 3)
        for socket in (first, second):
            assert len((await _next(socket))["layout"]["segments"]) == 3
        assert (await rest.ask("POST", f"{rest.url('watched')}/migrate")).status == 204
        for socket in (first, second):
            told = [await _next(socket)]
            while "routing" in told[-1]["layout"]:
                told.append(await _next(socket))
            assert any("announcement" in frame["layout"] for frame in told)
            states = [segment["state"] for segment in told[-1]["layout"]["segments"]]
            assert states == ["Sealed"] * 3 + ["Active"] * 3
        (split, *_) = (await world.layout("watched")).active
        assert (await rest.ask("POST", f"{rest.url('watched')}/split/{split.segment_id}")).status == 204
        for socket in (first, second):
            told = [await _next(socket)]
            while told[-1]["layout"]["epoch"] == 0:
                told.append(await _next(socket))
            assert told[-1]["layout"]["epoch"] == 1


async def test_looking_for_what_is_ordinary_or_missing_makes_nothing(rest: RestBench) -> None:
    """R32."""
    world, name = rest.world, rest.world.topic_name("looked-at").persistent
    for path in ("", "/watch"):
        for query in ("", "?domain=persistent"):
            assert (await rest.ask("GET", rest.url("looked-at") + path + query)).status == 404
    assert not any("looked-at" in topic for topic in await world.pulsar.topics(world.pulsar_namespace))
    await world.pulsar.create_topic(name)
    await world.pulsar.create_subscription(name, "keeps-it")
    await world.pulsar.set_properties(name, {"team": "shop"})
    assert (await rest.ask("GET", rest.url("looked-at"))).status == 404
    answer = await rest.ask("GET", f"{rest.url('looked-at')}?domain=persistent")
    assert (answer.status, answer.body["routing"], answer.body["properties"]) == (200, "Modulo", {"team": "shop"})
    assert answer.body["segments"]["0"]["legacyTopicName"] == name
    answer = await rest.ask("GET", f"{rest.url('looked-at')}/subscriptions/x/session")
    assert (answer.status, "migrate it first" in answer.reason) == (404, True)
    for token in (rest.viewer, rest.stranger):
        assert (await rest.ask("GET", f"{rest.url('looked-at')}/watch?domain=persistent", token=token)).status == 403
    assert not any(one["metadata"]["name"] == "looked-at" for one in await world.kube.list_all(TOPICS, world.namespace))
    assert await world.pulsar.properties(name) == {"team": "shop"}
