"""A leader is killed: how long it takes until its successor commits a change."""

import asyncio
import time
from dataclasses import dataclass

from bench.measurement import Better, Group, Measured, Measurement, Target
from bench.section import Run, Section, Servers
from bench.stage import Stage, stage
from scalable_topics_operator.cluster.election import LeaseTimes
from scalable_topics_operator.cluster.shards import shard_of
from tests.support import manifests
from tests.support.replicas import LEASE_SECONDS, SHARDS, Replicas, replicas
from tests.support.waiting import eventually
from tests.support.world import phase

_REPLICAS = 2
_TOPIC = "led"
_LEASES = (LEASE_SECONDS, LeaseTimes().lease_seconds)
_LOOK_SECONDS = 0.02
_MOST_SECONDS = 120.0
_TARGET = Target("a successor commits at most 3 s after the dead leader's Lease has run out", 3)


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a killed leader's topic had to wait for, in seconds since the kill.

    Args:
        lease_seconds: until another held the Lease.
        commit_seconds: until that one had committed a layout.
    """

    lease_seconds: float
    commit_seconds: float


async def _measure(run: Run) -> Measured:
    groups = []
    async with stage() as on:
        for lease in _LEASES[:1] if run.is_small else _LEASES:
            taken = await _killed(on, lease, run.rounds)
            rows = (
                _beyond("a successor holds the Lease", lease, [one.lease_seconds for one in taken], None),
                _beyond("a successor has committed a layout", lease, [one.commit_seconds for one in taken], _TARGET),
            )
            groups.append(Group(f"Lease of {lease:g} s, from kill -9, less the Lease's duration", rows))
    return Measured(tuple(groups))


SECTION = Section(
    "failing-over",
    "Failover",
    f"{_REPLICAS} replicas share 4 shards. The one that leads a topic is killed with SIGKILL, and in that moment a "
    "split or merge of that topic is asked for. Times are from the kill, less the duration of the Lease, which a "
    "successor has to wait for: a Lease that was renewed a moment before the kill runs for nearly all of it, one that "
    "was due to be renewed for less, so that times below 0 are possible.",
    _measure,
    Servers.CLASSIC,
)


def _beyond(what: str, lease: float, seconds: list[float], target: Target | None) -> Measurement:
    return Measurement(what, "s", tuple(one - lease for one in seconds), Better.LOWER, target)


async def _killed(on: Stage, lease: float, rounds: int) -> list[_Taken]:
    flags = (f"--lease-seconds={lease:g}", "--log-level=INFO")
    folder = on.folder / f"lease-{lease:g}"
    folder.mkdir()
    async with replicas(_REPLICAS, on.kube, on.view, on.pulsar, on.kubeconfig, folder, flags) as found:
        await found.until_shared()
        await found.world.apply(manifests.topic(_TOPIC, str(found.world.topic_name(_TOPIC)), initial=1))
        await found.world.until_ready(_TOPIC)
        return [await _kill(found, number) for number in range(rounds)]


async def _kill(found: Replicas, number: int) -> _Taken:
    """Kill the leader, and have a split done by its successor, or in the next round a merge; then start it again."""
    world = found.world
    shard = shard_of(str(world.topic_name(_TOPIC)), SHARDS)
    leader = await found.leader_of(shard)
    dead, before = leader.identity, await world.layout(_TOPIC)
    active = [one.segment_id for one in before.active]
    kind, block = ("Merge", {"segments": active}) if number % 2 else ("Split", {"segment": active[0]})
    name = f"{_TOPIC}-{number}"
    killed_at = time.monotonic()
    leader.kill()
    await world.apply(manifests.operation(name, _TOPIC, kind, **block))

    async def led_at() -> float:
        lease = (await found.shards()).get(shard)
        return time.monotonic() if lease is not None and lease.holder not in ("", dead) else 0.0

    async def committed_at() -> float:
        return time.monotonic() if (await world.layout(_TOPIC)).epoch > before.epoch else 0.0

    times = await asyncio.gather(
        *(
            eventually(at, what=f"{kind} after a kill", within_seconds=_MOST_SECONDS, every_seconds=_LOOK_SECONDS)
            for at in (led_at, committed_at)
        )
    )
    assert phase(await world.until_ended(name)) == "Succeeded"
    await asyncio.to_thread(leader.start)
    await found.until_shared()
    return _Taken(*(at - killed_at for at in times))
