"""What a broker tells of all its topics counts as a whole or not at all (R34)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.load.direct import DirectSampler
from scalable_topics_operator.load.sample import LoadSample
from tests.unit.backends.scripted_server import connect, serve
from tests.unit.load.test_statistics import bulk

SEGMENTS = [f"persistent://t/n/a-segment-{which}" for which in ("0000-7fff-0", "8000-ffff-1")]
TWO = json.dumps(
    {"t/n": {f"0x{number}_": next(iter(bulk(name)["t/n"].values())) for number, name in enumerate(SEGMENTS)}}
)


@asynccontextmanager
async def sampled(text: str) -> AsyncIterator[tuple[LoadSample, str]]:
    """A sample of one broker that answers this, and the broker."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=text if request.path.endswith("/broker-stats/topics") else "{}")

    async with serve(answer) as server, PulsarAdmin(connect(server)) as admin:
        broker = server.host_and_port
        server.brokers = [broker]
        yield await DirectSampler(admin.cluster, 5.0, 5.0).sample((broker,)), broker


async def test_persistent_topics_of_every_bundle_are_seen() -> None:
    async with sampled(TWO) as (sample, _):
        assert sample.missing == {}
        assert sample.unsettled == set(SEGMENTS)


async def test_topics_of_other_domains_are_not() -> None:
    async with sampled(TWO.replace('"persistent"', '"non-persistent"')) as (sample, _):
        assert (sample.missing, sample.unsettled, sample.segments) == ({}, frozenset(), {})


@pytest.mark.parametrize(
    "text",
    [TWO[:-1], TWO[: TWO.index(SEGMENTS[1])], TWO + "x", TWO.replace('"0x1_":', '"0x1_"'), "[]", "null", "<html>"],
)
async def test_of_an_answer_that_is_not_whole_nothing_counts(text: str) -> None:
    """Who is taken to have no load would be merged."""
    async with sampled(text) as (sample, broker):
        assert set(sample.missing) == {broker}
        assert "not as brokers give it" in sample.missing[broker]
        assert (sample.unsettled, sample.segments) == (frozenset(), {})
