"""A story made up by a seed: what users do to a topic, and what happens to replicas, servers and the network."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from scalable_topics_operator.cluster.lease_record import LEASES
from tests.simulation.explore import SimulationFailed
from tests.simulation.faults import Fault, FaultKind
from tests.simulation.fleet.consumers import ConsumerGroup
from tests.simulation.fleet.mirrors import show_others
from tests.simulation.fleet.network import Fate, Server
from tests.simulation.fleet.virtual_time import VirtualLoop, run_virtually
from tests.simulation.fleet.world import FleetWorld, make_settings
from tests.simulation.run import check_end

_NAMES = ("second", "third")
_DECLARED = "declared"
_CALM_SECONDS = 60.0
_CALM_ROUNDS = 12

Act = Callable[[random.Random, FleetWorld], Any]


def tell_fleet_story(seed: int) -> FleetWorld:
    """Make up and run a story. Raises SimulationFailed, which says how to run it again."""
    told: list[FleetWorld] = []
    try:
        with _errors_told_to(told):
            return run_virtually(seed, _tell(seed, told))
    except BaseException as error:
        world = told[0] if told else None
        trace = "\n".join(world.trace[-220:]) if world is not None else ""
        raise SimulationFailed(
            f"seed {seed}: {type(error).__name__}: {error}\nagain: make simulate STORY=replicas:{seed}\n{trace}"
        ) from error


class _Errors(logging.Handler):
    """What a replica did not expect, it logs and tries again; in a story it is a fault."""

    def __init__(self, told: list[FleetWorld]) -> None:
        super().__init__(logging.ERROR)
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        if self._told:
            why = repr(record.exc_info[1]) if record.exc_info else ""
            self._told[0].violated(f"{record.getMessage()} {why}")


@contextmanager
def _errors_told_to(told: list[FleetWorld]) -> Iterator[None]:
    logger, errors = logging.getLogger("scalable_topics_operator"), _Errors(told)
    before = logger.level, logger.propagate
    logger.addHandler(errors)
    # The rest is what a story is made of.
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(errors)
        logger.setLevel(before[0])
        logger.propagate = before[1]


async def _tell(seed: int, told: list[FleetWorld]) -> FleetWorld:
    rng = random.Random(seed)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    world = FleetWorld(loop, random.Random(f"chances {seed}"), make_settings(auto_scale=rng.random() < 0.4))
    told.append(world)
    clients = asyncio.create_task(world.let_clients_work())
    try:
        await _live(rng, world)
        clients.cancel()
        world.stop_writing()
        clients = asyncio.create_task(world.let_consumers_finish())
        await _calm(world)
    finally:
        clients.cancel()
        for replica in world.alive:
            replica.die()
        await asyncio.gather(*(replica.ended() for replica in world.replicas), return_exceptions=True)
    return world


async def _live(rng: random.Random, world: FleetWorld) -> None:
    network = world.network
    network.rate = rng.choice((0.0, 0.003, 0.01, 0.03))
    network.budget = rng.randrange(1, 16)
    network.fates = tuple(rng.sample(tuple(Fate), rng.randrange(2, len(Fate) + 1)))
    faults = world.watch_faults
    faults.late, faults.twice, faults.never = (rng.choice((0.0, 0.0, chance)) for chance in (0.1, 0.1, 0.02))
    world.most_policy_seconds = rng.choice((0.0, 1.5, 8.0))
    world.density = rng.choice((0.0, 500.0, 4000.0))
    world.group = ConsumerGroup(world, random.Random(rng.random()), rng.choice((0, 0, 1, 3, 5)))
    world.declare_connection()
    for _ in range(rng.randrange(1, 4)):
        world.start_replica()
    world.always_declared = frozenset({_DECLARED})
    world.declare_topic(
        initial=rng.randrange(1, 4),
        retain=rng.random() < 0.5,
        subscriptions=[{"name": _DECLARED}],
        autoScale=_knobs(rng),
    )
    await asyncio.sleep(rng.choice((0.0, 2.0, 25.0)))
    for _ in range(rng.randrange(3, 12)):
        act = rng.choice(_ACTS)
        world.note(f"-- {act.__name__}")
        ended = act(rng, world)
        if asyncio.iscoroutine(ended):
            await ended
        await asyncio.sleep(rng.choice((0.0, 0.1, 1.0, 5.0, 20.0)))
        world.raise_violation()


async def _calm(world: FleetWorld) -> None:
    """Let everything go well until nothing changes any more, then judge."""
    world.note("-- nothing goes wrong from here on")
    world.network.heal()
    faults = world.watch_faults
    faults.late = faults.twice = faults.never = 0.0
    world.density = world.most_policy_seconds = 0.0
    world.hot = (0, 0, 0.0)
    if world.topic_body() is not None:
        world.change_topic({"spec": {"paused": False, "autoScale": {"enabled": False}}})
    if not world.alive:
        world.start_replica()
    before = None
    for _ in range(_CALM_ROUNDS):
        await asyncio.sleep(_CALM_SECONDS)
        world.raise_violation()
        for replica in world.replicas:
            if replica._running is not None and replica._running.done() and not replica.is_dead:
                await replica.ended()
                raise AssertionError(f"{replica.name} has ended by itself")
        now = world.pulse(), world.group.pulse()
        if now == before:
            break
        before = now
    else:
        raise AssertionError(f"nothing settles: {[body.standing for body in world.objects]}")
    for mirror in world.objects:
        if not mirror.gone:
            show_others(mirror, world.server)
    check_end(world)
    world.group.check_end()


def _knobs(rng: random.Random) -> dict[str, Any]:
    return {
        "enabled": rng.random() < 0.7,
        "minSegments": 1,
        "maxSegments": 6,
        "split": {"cooldown": "5s", "msgRateIn": 2000},
        "merge": {"cooldown": "5s", "window": "10s", "msgRateIn": 300},
    }


# What users do


def _some_active(world: FleetWorld) -> list[int]:
    return [segment.segment_id for segment in world.layout.active] if world.layout is not None else []


def _split(rng: random.Random, world: FleetWorld) -> None:
    if active := _some_active(world):
        world.request_operation("Split", segment=rng.choice(active), into=rng.choice((2, 2, 3)))


def _merge(rng: random.Random, world: FleetWorld) -> None:
    active = _some_active(world)
    if len(active) > 1:
        first = rng.randrange(len(active) - 1)
        world.request_operation("Merge", segments=active[first : first + 2])


def _rebucket(rng: random.Random, world: FleetWorld) -> None:
    if active := _some_active(world):
        world.request_operation("Rebucket", segment=rng.choice(active), buckets=rng.randrange(1, 9))


def _prune(rng: random.Random, world: FleetWorld) -> None:
    world.request_operation("Prune")


def _scale(rng: random.Random, world: FleetWorld) -> None:
    world.change_topic({"spec": {"segments": {"desired": rng.choice((None, 1, 2, 4))}}})


def _subscriptions(rng: random.Random, world: FleetWorld) -> None:
    names = rng.sample(_NAMES, rng.randrange(len(_NAMES) + 1))
    entries = [{"name": name, "deletionPolicy": rng.choice(("Delete", "Retain"))} for name in names]
    world.change_topic({"spec": {"subscriptions": [{"name": _DECLARED}, *entries]}})


def _pause(rng: random.Random, world: FleetWorld) -> None:
    world.change_topic({"spec": {"paused": rng.random() < 0.5}})


def _label(rng: random.Random, world: FleetWorld) -> None:
    world.change_topic({"metadata": {"labels": {"team": str(rng.randrange(1000))}}})


def _make_anew(rng: random.Random, world: FleetWorld) -> None:
    """Somebody deletes the object, and declares it again at once if it is gone already."""
    world.delete_topic()
    if rng.random() < 0.7:
        world.disconnect()
    if world.topic_body() is None:
        world.declare_topic(initial=rng.randrange(1, 4), subscriptions=[{"name": _DECLARED}])


async def _make_anew_later(rng: random.Random, world: FleetWorld) -> None:
    world.delete_topic()
    world.disconnect()
    await asyncio.sleep(rng.uniform(0.0, 60.0))
    if world.topic_body() is None:
        world.declare_topic(initial=rng.randrange(1, 4), subscriptions=[{"name": _DECLARED}])


def _load(rng: random.Random, world: FleetWorld) -> None:
    world.density = rng.choice((0.0, 500.0, 5000.0, 20000.0))
    first = rng.randrange(0, 60000)
    world.hot = (first, min(65535, first + rng.randrange(1, 20000)), rng.choice((0.0, 20000.0)))


# What clients do


def _read(rng: random.Random, world: FleetWorld) -> None:
    if rng.random() < 0.5:
        world.read_all()
    else:
        world.reading = set(rng.sample((_DECLARED, *_NAMES, "appears"), 2))


def _write(rng: random.Random, world: FleetWorld) -> None:
    world.writing = rng.random() < 0.7


def _subscribe(rng: random.Random, world: FleetWorld) -> None:
    world.subscribe_everywhere("appears")


def _cut_consumer(rng: random.Random, world: FleetWorld) -> None:
    """A consumer reaches its brokers and not the gateway."""
    if world.group.consumers:
        rng.choice(world.group.consumers).cut(rng.choice((5.0, 30.0, 90.0)))


# What happens to replicas


def _kill(rng: random.Random, world: FleetWorld) -> None:
    if world.alive:
        rng.choice(world.alive).die()
    if rng.random() < 0.8 or not world.alive:
        world.start_replica()


async def _roll(rng: random.Random, world: FleetWorld) -> None:
    """A rolling update: one comes, one goes in good order."""
    if world.alive:
        leaving = rng.choice(world.alive)
        world.start_replica()
        await leaving.leave()


def _sleep(rng: random.Random, world: FleetWorld) -> None:
    if world.alive:
        rng.choice(world.alive).sleep(rng.choice((1.0, 8.0, 16.0, 40.0)))


def _join(rng: random.Random, world: FleetWorld) -> None:
    if len(world.alive) < 4:
        world.start_replica()


def _delete_leases(rng: random.Random, world: FleetWorld) -> None:
    """Somebody deletes Leases, or one."""
    for body in list(world.server.all(LEASES.plural)):
        if rng.random() < 0.6:
            world.user("DELETE", LEASES.path(body["metadata"]["namespace"], body["metadata"]["name"]))


# What happens in between


def _cut(rng: random.Random, world: FleetWorld) -> None:
    if world.alive:
        replica = rng.choice(world.alive)
        server, seconds = rng.choice(tuple(Server)), rng.choice((2.0, 8.0, 20.0, 45.0))
        world.network.cut(replica.name, server, seconds)
        if server is Server.API_SERVER:
            world.break_watch(replica, seconds)


def _outage(rng: random.Random, world: FleetWorld) -> None:
    server, seconds = rng.choice(tuple(Server)), rng.choice((2.0, 8.0, 20.0, 45.0))
    world.network.cut("*", server, seconds)
    if server is Server.API_SERVER:
        for replica in world.alive:
            world.break_watch(replica, seconds)


def _break_watch(rng: random.Random, world: FleetWorld) -> None:
    if world.alive:
        world.break_watch(rng.choice(world.alive), rng.choice((1.0, 10.0, 50.0)))


def _jump(rng: random.Random, world: FleetWorld) -> None:
    """Somebody sets the clock."""
    world.loop.wall_offset_seconds += rng.choice((-3600.0, -5.0, 5.0, 3600.0))


def _roll_over(rng: random.Random, world: FleetWorld) -> None:
    world.disturb(Fault(FaultKind.ROLLED_OVER), None)


def _resurrect(rng: random.Random, world: FleetWorld) -> None:
    world.disturb(Fault(FaultKind.RESURRECTED), None)


def _reopen_next(rng: random.Random, world: FleetWorld) -> None:
    """The next seals do not hold, or leave writes in flight (hazards A1-26680, A1-26678)."""
    for topic in world.active_topics():
        if rng.random() < 0.5:
            world.broker.arm_reopening(topic.name, rng.choice((0, 1, 2, 3)))
        else:
            world.broker.arm_hanging_adds(topic.name, 2)


def _reopen(rng: random.Random, world: FleetWorld) -> None:
    if sealed := world.sealed_topics():
        world.broker.reopen(rng.choice(sealed))


_ACTS: tuple[Act, ...] = (
    _split,
    _split,
    _split,
    _split,
    _merge,
    _merge,
    _merge,
    _rebucket,
    _prune,
    _scale,
    _subscriptions,
    _pause,
    _label,
    _make_anew,
    _make_anew_later,
    _load,
    _load,
    _read,
    _read,
    _write,
    _subscribe,
    _cut_consumer,
    _kill,
    _kill,
    _roll,
    _sleep,
    _sleep,
    _join,
    _delete_leases,
    _cut,
    _cut,
    _outage,
    _break_watch,
    _jump,
    _roll_over,
    _resurrect,
    _reopen_next,
    _reopen,
)
