"""Topics created a second: the operator over a real API server, beside a bare loop that asks the broker the same."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import uuid
from pathlib import Path

from bench.fleet import fleet
from bench.measurement import Better, Group, Measured, Measurement, Of, Target
from bench.section import Run, Section, Servers
from bench.topic_calls import RECORDING_FLAGS, SEGMENTS, SUBSCRIPTIONS, TopicCalls, recorded, send_many
from dev.access import PulsarAccess
from tests.support.crds import install_crds
from tests.support.proxied_operator import proxied_operator
from tests.support.pulsar_view import PulsarView

_TOPICS, _PACED = 100, 100
_BARE, _OPERATOR = "bare loop, same calls", "operator, from objects to all Ready"
_BARE_NAMESPACE = "tests/bare"
_CENTILE = 0.99


async def _measure(run: Run) -> Measured:
    access, count = PulsarAccess.from_environment(), run.size(_TOPICS, 4)
    profile = run.profile_to / "topics.prof" if run.profile_to is not None else None
    await asyncio.to_thread(install_crds)
    bare, operator, middle, slow = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        calls = await _recorded(access, Path(folder))
        async with fleet(access, Path(folder), profile=profile) as many:
            # The first round warms the broker's caches and its policy topic.
            await _bare_round(calls, access, count)
            await many.grow("first", (count,))
            for number in range(run.rounds):
                bare.append(await _bare_round(calls, access, count))
                operator.append(count / (await many.grow(f"round-{number}", (count,)))[count].seconds)
            for number in range(run.rounds):
                per_second = statistics.median(bare) / 2
                seconds = sorted(await many.latencies(f"paced-{number}", run.size(_PACED, 4), per_second))
                middle.append(statistics.median(seconds))
                slow.append(seconds[min(len(seconds) - 1, int(_CENTILE * len(seconds)))])
    made = (
        Measurement(_BARE, "topics/s", tuple(bare), Better.HIGHER),
        Measurement(
            *(_OPERATOR, "topics/s", tuple(operator), Better.HIGHER),
            Target("0.8 of a bare loop that sends the same calls", 0.8, Of.RATIO),
        ),
    )
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
            Group(f"{count} topics at once, {of}", made, reference=_BARE, is_peer=True),
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
        _OPERATOR: "Besides the same calls of the brokers the operator writes a finalizer, a journal and a status into "
        "each object, and has to be told of each of its own writes by a watch: on two cores the API server takes from "
        "the broker what that costs.",
    },
)


async def _recorded(access: PulsarAccess, folder: Path) -> TopicCalls:
    async with PulsarView(access.admin_url, access.superuser_token) as view:
        await view.create_namespace(_BARE_NAMESPACE)
    async with proxied_operator(access, folder, RECORDING_FLAGS) as bench:
        return await recorded(bench)


async def _bare_round(calls: TopicCalls, access: PulsarAccess, count: int) -> float:
    prefix = f"bare-{uuid.uuid4().hex[:10]}"
    return count / (await send_many(calls, access, _BARE_NAMESPACE, prefix, (count,)))[count]
