"""Topics created a second: the operator over a real API server, beside a bare loop that asks the broker the same."""

from __future__ import annotations

import statistics
import uuid

from bench.fleet import fleet
from bench.measurement import Better, Group, Measured, Measurement, Target
from bench.section import Run, Section, Servers
from bench.stage import stage
from bench.topic_calls import (
    BESIDE_BARE,
    OPERATOR,
    SEGMENTS,
    SUBSCRIPTIONS,
    TopicCalls,
    beside_bare,
    recorded,
    send_many,
)
from dev.access import PulsarAccess

_TOPICS, _PACED = 100, 100
_CENTILE = 0.99


async def _measure(run: Run) -> Measured:
    count = run.size(_TOPICS, 4)
    profile = run.profile_to / "topics.prof" if run.profile_to is not None else None
    bare, operator, middle, slow = [], [], [], []
    async with stage() as on:
        calls = await recorded(on)
        async with fleet(on, profile=profile) as many:
            # The first round warms the broker's caches and its policy topic.
            await _bare_round(calls, on.pulsar, count)
            await many.grow("first", (count,))
            for number in range(run.rounds):
                bare.append(await _bare_round(calls, on.pulsar, count))
                operator.append(count / (await many.grow(f"round-{number}", (count,)))[count].seconds)
            for number in range(run.rounds):
                per_second = statistics.median(bare) / 2
                seconds = sorted(await many.latencies(f"paced-{number}", run.size(_PACED, 4), per_second))
                middle.append(statistics.median(seconds))
                slow.append(seconds[min(len(seconds) - 1, int(_CENTILE * len(seconds)))])
    paced = (
        Measurement("from declared to Ready, median", "s", tuple(middle), Better.LOWER),
        Measurement(
            *("from declared to Ready, p99", "s", tuple(slow), Better.LOWER),
            Target("p99 of 5 s at half the bare rate", 5),
        ),
    )
    of = f"of {SEGMENTS} segments, {len(SUBSCRIPTIONS)} subscriptions and 2 policies"
    return Measured(
        (
            beside_bare(f"{count} topics at once, {of}", bare, operator),
            Group("Topics declared one by one, at half the rate of the bare loop", paced),
        ),
        (f"One creation is {len(calls)} calls to the broker.",),
    )


SECTION = Section(
    "topics",
    "Topics created",
    "Objects are created on a real API server, and an operator makes topics of them. Beside it a bare loop that sends "
    "the broker the calls that the operator was seen to send for one topic, without objects, journal and status: that "
    "is the most that any controller could do with these calls. API server, etcd, broker, operator and the measuring "
    "itself share the machine.",
    _measure,
    Servers.CLASSIC,
    {
        OPERATOR: "Besides the same calls of the brokers the operator writes a finalizer, a journal and a status into "
        "each object, and has to be told of each of its own writes by a watch: on two cores the API server takes from "
        "the broker what that costs.",
        BESIDE_BARE.text: "On two cores, all of which are busy, a topic takes the bare loop 0.22 s of a core in all, "
        "nearly all of it the broker's, and the operator 0.30 s: some 0.05 s more are the API server's and etcd's, for "
        "four writes and a read of the object and for telling those who watch it, and the rest is the operator's own. "
        "Where brokers have cores of their own, this is not taken from them. Of the operator's own, most is the HTTP "
        "of 106 calls: [profile](evidence/profiles/topics.txt).",
    },
    is_profiled=True,
)


async def _bare_round(calls: TopicCalls, access: PulsarAccess, count: int) -> float:
    prefix = f"bare-{uuid.uuid4().hex[:10]}"
    return count / (await send_many(calls, access, prefix, (count,)))[count]
