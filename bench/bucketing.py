"""What entry buckets cost a producer (pip-486): messages on segments of one bucket and of several, by turns."""

import uuid
from collections import defaultdict
from contextlib import AsyncExitStack

from bench.measurement import Better, Group, Measured, Measurement
from bench.producing import library_round
from bench.section import Run, Section, Servers
from dev.access import PulsarAccess
from scalable_topics.layout import TopicName
from tests.support.pulsar_view import PulsarView
from tests.support.scripted_leader import ScriptedLeader

_MESSAGES = 30_000
_SEGMENTS = 4
# Of each segment; the first is the base of the ratios: no message waits for another one's bucket there.
_BUCKETS = (1, 4, 16)
_PULSAR_NAMESPACE = "public/default"


async def _measure(run: Run) -> Measured:
    access = PulsarAccess.from_environment()
    count = run.size(_MESSAGES, 2_000)
    rates: dict[int, list[float]] = defaultdict(list)
    fills: dict[int, list[float]] = defaultdict(list)
    async with AsyncExitStack() as stack:
        view = await stack.enter_async_context(PulsarView(access.admin_url, access.superuser_token))
        topics = {}
        for buckets in _BUCKETS:
            topic = topics[buckets] = TopicName.parse(f"{_PULSAR_NAMESPACE}/bench-{uuid.uuid4().hex[:10]}")
            leader = ScriptedLeader(
                topic,
                view,
                access.service_url,
                access.superuser_token,
                segments=_SEGMENTS,
                bucket_budget=_SEGMENTS * buckets,
            )
            await stack.enter_async_context(leader)
        # The first round warms all ways and does not count.
        for number in range(run.rounds + 1):
            for buckets, topic in topics.items():
                rate, fill = await library_round(access, topic, count)
                if number:
                    rates[buckets].append(rate)
                    fills[buckets].append(fill)
    speed = (Measurement(_name(one), "messages/s", tuple(rates[one]), Better.HIGHER) for one in _BUCKETS)
    size = (Measurement(_name(one), "messages in an entry", tuple(fills[one]), Better.NEITHER) for one in _BUCKETS)
    base = _name(_BUCKETS[0])
    return Measured((Group("Speed", tuple(speed), reference=base), Group("Batches", tuple(size), reference=base)))


SECTION = Section(
    "bucketing",
    "What entry buckets cost a producer",
    f"Keyed messages sent by one producer of the library to {_SEGMENTS} segments, by the number of entry buckets of "
    "each segment. An entry holds messages of one bucket alone, so that more buckets make smaller batches.",
    _measure,
    Servers.CLASSIC,
)


def _name(buckets: int) -> str:
    return "1 bucket, as if there were none" if buckets == 1 else f"{buckets} buckets"
