"""Load as real brokers show it: in bulk, and segment by segment for credentials that may not list brokers (R34)."""

from __future__ import annotations

import asyncio

import pytest

from dev.access import PulsarAccess
from scalable_topics.layout import HashRange, TopicName, classic_segment_name
from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.backends.admin import PulsarAdmin
from scalable_topics_operator.load.direct import DirectSampler, sample_topic
from scalable_topics_operator.load.sample import LoadSample
from scalable_topics_operator.load.sampling import Sampling
from scalable_topics_operator.load.statistics import read_bulk_topic
from scalable_topics_operator.operations.errors import AccessDenied
from tests.support.waiting import eventually

from .plain_http import Clients, PlainHttp, admin_for

NOBODY = "127.0.0.1:1"


@pytest.fixture
async def segment(topic: TopicName, plain: PlainHttp) -> str:
    name = classic_segment_name(topic, HashRange.full(), 0)
    path = f"persistent/{name.removeprefix('persistent://')}"
    await plain.do("PUT", path)
    # Brokers delete what nobody uses.
    await plain.do("PUT", f"{path}/subscription/keeps-it")
    return name


def _is_what_is_sent(rates: Rates) -> bool:
    return 50 < rates.msg_rate_in < 400 and 5_000 < rates.bytes_rate_in < 60_000


async def _send_for_ever(clients: Clients, segment: str) -> None:
    producer = await clients.producer(segment)
    while True:
        for _ in range(20):
            producer.send_async(b"x" * 100, None)
        await asyncio.sleep(0.1)


@pytest.mark.both_lines
async def test_rates_of_a_segment_are_sampled_in_bulk(admin: PulsarAdmin, clients: Clients, segment: str) -> None:
    traffic = asyncio.create_task(_send_for_ever(clients, segment))
    brokers = await admin.cluster.brokers()
    sampler = DirectSampler(admin.cluster, 1.0, 5.0)

    async def look() -> LoadSample:
        return await sampler.sample((*brokers, NOBODY))

    sample = await eventually(
        look,
        # A period in which the machine stalls has another rate.
        lambda sample: segment in sample.segments and _is_what_is_sent(sample.segments[segment].rates),
        what="the segment is settled, with its rate",
        within_seconds=40,
        every_seconds=0.5,
    )
    traffic.cancel()
    # From brokers' settings; a whole period passed before the segment counted.
    assert sample.unseen_seconds == 10.0
    assert sample.missing.keys() == {NOBODY}


async def test_a_count_of_messages_begins_anew_when_a_segment_is_loaded_again(
    admin: PulsarAdmin, clients: Clients, segment: str, plain: PlainHttp
) -> None:
    """What a reload is recognised by."""

    async def count() -> int:
        broker = (await admin.cluster.brokers())[0]
        found = {topic: statistics async for topic, statistics in admin.cluster.topic_loads(broker)}
        reading = read_bulk_topic(found.get(segment))
        return reading.messages_in if reading is not None else 0

    await clients.send(segment, "1", "2", "3")
    await eventually(count, lambda found: found == 3, what="three messages are counted", within_seconds=20)
    await plain.do("PUT", f"persistent/{segment.removeprefix('persistent://')}/unload")
    await clients.send(segment, "4")
    await eventually(count, lambda found: found == 1, what="the count began anew", within_seconds=20)


async def test_a_segment_is_asked_for_itself_without_the_right_to_list_brokers(
    pulsar: PulsarAccess, clients: Clients, segment: str
) -> None:
    traffic = asyncio.create_task(_send_for_ever(clients, segment))
    sampling = Sampling()
    async with admin_for(pulsar, pulsar.namespace_admin_token) as limited:
        with pytest.raises(AccessDenied):
            await anext(limited.cluster.topic_loads())

        async def rate() -> float:
            await sample_topic(limited.topics, [segment], sampling, 1.0)
            reading = await limited.topics.stats(segment)
            return float(reading["msgRateIn"])

        await eventually(rate, lambda found: found > 50, what="the broker shows a rate", within_seconds=30)
        sample = await sample_topic(limited.topics, [segment], sampling, 1.0)
        assert sample.unsettled == {segment}, "it counts only after a whole period"
        missing = classic_segment_name(TopicName("team", segment.split("/")[3], "gone"), HashRange.full(), 0)
        assert not (await sample_topic(limited.topics, [missing], Sampling(), 1.0)).unsettled
    traffic.cancel()
