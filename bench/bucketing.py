"""What entry buckets cost a producer (pip-486): messages on segments of one bucket and of several, by turns."""

import statistics
import uuid
from collections import defaultdict
from contextlib import AsyncExitStack

from bench.measuring import Rate, table
from bench.producing import library_round
from dev.access import PulsarAccess
from scalable_topics.layout import TopicName
from tests.support.pulsar_view import PulsarView
from tests.support.scripted_leader import ScriptedLeader

_SEGMENTS = 4
# Of each segment; the first is the base of the ratios: no message waits for another one's bucket there.
_BUCKETS = (1, 4, 16)
_PULSAR_NAMESPACE = "public/default"


async def report(count: int, rounds: int) -> str:
    """Send `count` keyed messages in each round with each number of buckets, batching on."""
    access = PulsarAccess.from_environment()
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
        for number in range(rounds + 1):
            for buckets, topic in topics.items():
                rate, fill = await library_round(access, topic, count)
                if number:
                    rates[buckets].append(rate)
                    fills[buckets].append(fill)
    title = f"Keyed messages sent by one producer to {_SEGMENTS} segments, by entry buckets of each segment"
    return table(title, "messages/s", [Rate(_name(number, fills[number]), tuple(rates[number])) for number in _BUCKETS])


def _name(buckets: int, fills: list[float]) -> str:
    many = "1 bucket, as if there were none" if buckets == 1 else f"{buckets} buckets"
    return f"{many}; {statistics.median(fills):.0f} messages an entry"
