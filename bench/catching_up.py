"""How fast a sealed backlog is caught up with by as many consumers as have entry buckets of it."""

from bench.measurement import Better, Group, Measured, Measurement
from bench.section import Run, Section, Servers
from bench.stage import stage
from tests.support.bucket_drain import BUCKETS, KEYS, Backlog, Drain
from tests.support.drain_record import DrainRecord
from tests.support.replicas import replicas

_MESSAGES = 50_000
_CONSUMERS = (1, 4, 16)
_HANDLING_MS = 1.0
# A round has to wait for 21 processes that join, and its spread is small.
_MOST_ROUNDS = 3


async def _measure(run: Run) -> Measured:
    messages = run.size(_MESSAGES, 2_000)
    rounds = min(run.rounds, _MOST_ROUNDS)
    drains = [Drain(consumers, _HANDLING_MS, number) for number in range(rounds) for consumers in _CONSUMERS]
    records: dict[int, list[DrainRecord]] = {consumers: [] for consumers in _CONSUMERS}
    async with (
        stage() as on,
        replicas(1, on.kube, on.view, on.pulsar, on.kubeconfig, on.folder, ("--log-level=INFO",)) as one,
    ):
        backlog = Backlog(one, on.pulsar, on.folder, messages)
        await backlog.fill(drains)
        for drain in drains:
            records[drain.consumers].append(await backlog.drained(drain))
    rates = tuple(
        Measurement(_name(consumers), "messages/s", tuple(messages / one.seconds for one in found), Better.HIGHER)
        for consumers, found in records.items()
    )
    busy = tuple(
        Measurement(_name(consumers), "s", tuple(one.busy_seconds for one in found), Better.LOWER)
        for consumers, found in records.items()
    )
    base = _name(_CONSUMERS[0])
    return Measured(
        (
            Group(f"A sealed backlog of {messages:,} messages", rates, reference=base),
            Group("Until every one of them has its first message", busy),
        )
    )


SECTION = Section(
    "catching-up",
    "Catching up with a backlog",
    f"A segment of {BUCKETS} entry buckets, with messages over {KEYS:,} keys, is sealed by a split. Stream consumers, "
    f"each a process that takes {_HANDLING_MS:g} ms for a message, begin together on a subscription of their own and "
    "share the buckets: one has all of them, 4 have 4 each, 16 have one each. The time is from the first message that "
    "any of them received to the last one, joining and dealing out the buckets included.",
    _measure,
    Servers.CLASSIC,
)


def _name(consumers: int) -> str:
    each = BUCKETS // consumers
    return f"{consumers} consumer{'s' * (consumers > 1)} of {each} bucket{'s' * (each > 1)} each"
