"""What replicas write while nothing is to be done."""

import asyncio
from collections.abc import Callable

from bench.measurement import Better, Group, Measured, Measurement, Target
from bench.section import Run, Section, Servers
from bench.stage import stage
from scalable_topics_operator.cluster.election import LeaseTimes
from tests.support.resting_fleet import Watched, resting_fleet

_REPLICAS = 3
_FLEETS = (10, 1000)
# A round is a minute in which next to nothing happens.
_MOST_ROUNDS = 3
_SMALL_FLEETS = (2, 4)
_LEASE_SECONDS = LeaseTimes().lease_seconds
_WATCHED_SECONDS = 60
# Every topic is compared with the brokers at least once while it is watched.
_DRIFT_SECONDS = 50
_NOTHING = Target("topics at rest cost no write other than Leases", 0)


async def _measure(run: Run) -> Measured:
    fleets = _SMALL_FLEETS if run.is_small else _FLEETS
    seen: dict[int, list[Watched]] = {count: [] for count in fleets}
    flags = (
        f"--lease-seconds={_LEASE_SECONDS:g}",
        f"--drift-seconds={_DRIFT_SECONDS}",
        "--drift-per-second=100",
        "--log-level=INFO",
    )
    async with (
        stage() as on,
        resting_fleet(_REPLICAS, on.kube, on.view, on.pulsar, on.folder, flags) as fleet,
    ):
        for count in fleets:
            await fleet.grow(count)
            # What followed from creating them shall have come to its end.
            await asyncio.sleep(run.size(2 * int(_LEASE_SECONDS), 2))
            for _ in range(min(run.rounds, _MOST_ROUNDS)):
                seen[count].append(await fleet.watch(run.size(_WATCHED_SECONDS, 5)))

    def rows(unit: str, value: Callable[[Watched], float], target: Target | None = None) -> tuple[Measurement, ...]:
        return tuple(
            Measurement(f"{count:,} topics", unit, tuple(map(value, found)), Better.LOWER, target)
            for count, found in seen.items()
        )

    def an_hour(writes: int, one: Watched) -> float:
        return writes * 3600 / one.seconds

    return Measured(
        (
            Group("Lease writes", rows("an hour", lambda one: an_hour(one.lease_writes, one))),
            Group(
                "Lease writes, by topic",
                rows("a topic-hour", lambda one: an_hour(one.lease_writes, one) / one.topics),
            ),
            Group(
                "Other writes to the API server, by topic",
                rows("a topic-hour", lambda one: an_hour(len(one.other_writes), one) / one.topics, _NOTHING),
            ),
            Group("Processor time of all replicas", rows("% of a core", lambda one: one.cpu_percent)),
            Group("Resident memory of the largest replica", rows("MB", lambda one: one.memory_mb)),
        )
    )


SECTION = Section(
    "resting",
    "At rest",
    f"{_REPLICAS} replicas with 4 shards and Leases of {_LEASE_SECONDS:g} s look after topics that nobody asks "
    f"anything of; every topic is compared with the brokers every {_DRIFT_SECONDS} s. All their calls to the API "
    f"server go through a proxy that counts them. A round is {_WATCHED_SECONDS} s.",
    _measure,
    Servers.CLASSIC,
)
