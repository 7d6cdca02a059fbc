"""A story made up by a seed: what users and clients do, what goes wrong, and in which order calls are sent."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from scalable_topics.layout import WHOLE, Part
from scalable_topics_operator.operations.context import DeclaredSubscription
from scalable_topics_operator.operations.protocols import MessagePosition
from scalable_topics_operator.operations.requests import (
    CursorRequest,
    MergeRequest,
    PruneRequest,
    RebucketRequest,
    RestoreRequest,
    SeekRequest,
    SkipAllRequest,
    SplitRequest,
)
from scalable_topics_operator.operations.subscriptions import SubscriptionWish
from tests.simulation.explore import SimulationFailed
from tests.simulation.faults import Fault, FaultKind, RandomFaults
from tests.simulation.model_backend import OLD
from tests.simulation.model_broker import ModelTopic
from tests.simulation.model_store import TopicObject
from tests.simulation.run import Run, check_end
from tests.simulation.scripts import INTENT, note_later_fields
from tests.simulation.world import HOME, World

_NAMES = ("declared", "second", "third")


def tell_random(seed: int) -> World:
    """Make up and run a story of a topic. Raises SimulationFailed, which says how to run it again."""
    return _make_up("operations", seed, _declare)


def tell_migration(seed: int) -> World:
    """Make up and run a story of an ordinary topic that is migrated. Raises SimulationFailed."""
    return _make_up("migrations", seed, _declare_migration)


def _make_up(kind: str, seed: int, begin: Callable[[random.Random, World], None]) -> World:
    rng = random.Random(seed)
    run = Run(World())
    world = run.world
    try:
        asyncio.run(_tell(rng, run, begin))
    except BaseException as error:
        trace = "\n".join([*world.trace[-160:], *(f"   event {event}" for event in world.events[-10:])])
        raise SimulationFailed(
            f"seed {seed}: {type(error).__name__}: {error}\nagain: make simulate STORY={kind}:{seed}\n{trace}"
        ) from error
    return world


async def _tell(rng: random.Random, run: Run, begin: Callable[[random.Random, World], None]) -> None:
    world = run.world
    world.plan = RandomFaults(rng, rate=rng.choice((0.01, 0.03, 0.1)), budget=rng.randrange(1, 9))
    begin(rng, world)
    await run.settle()
    for body in world.objects:
        if body.state.layout is not None:
            note_later_fields(body)
    for _ in range(rng.randrange(2, 6)):
        for _ in range(rng.randrange(1, 4)):
            act = rng.choice(_ACTS)
            world.trace.append(f"-- {act.__name__}")
            act(rng, world)
        await run.settle()
    await run.calm()
    check_end(world)


def _declare(rng: random.Random, world: World) -> None:
    world.declare(replace(INTENT, initial_segments=rng.randrange(1, 5)))


def _declare_migration(rng: random.Random, world: World) -> None:
    """Somebody reads a part of it; where clients that do not know scalable topics are attached, it waits for them."""
    world.make_ordinary(rng.choice((0, 1, 2, 3)))
    for name in world.ordinary:
        for subscription in rng.sample((*_NAMES, "found"), rng.randrange(3)):
            world.broker.create_subscription(name, subscription, latest=rng.random() < 0.3)
        for _ in range(rng.randrange(4)):
            world.broker.produce(name)
    if rng.random() < 0.3:
        world.broker.attach(rng.choice(world.ordinary), f"{OLD}producer")
    world.reading = {"found"} if rng.random() < 0.5 else set()
    world.declare(replace(INTENT, initial_segments=1, migrates=True))


def _body(world: World) -> TopicObject:
    assert world.present is not None
    return world.present


def _split(rng: random.Random, world: World) -> None:
    layout = world.layout
    if layout is not None:
        world.ask(_body(world), SplitRequest(rng.choice(layout.active).segment_id, into=rng.choice((2, 2, 3))))


def _merge(rng: random.Random, world: World) -> None:
    layout = world.layout
    if layout is not None and len(layout.active) > 1:
        first = rng.randrange(len(layout.active) - 1)
        count = rng.choice((2, 2, 3))
        world.ask(_body(world), MergeRequest(tuple(one.segment_id for one in layout.active[first : first + count])))


def _rebucket(rng: random.Random, world: World) -> None:
    layout = world.layout
    if layout is not None:
        world.ask(_body(world), RebucketRequest(rng.choice(layout.active).segment_id, rng.randrange(1, 9)))


def _prune(rng: random.Random, world: World) -> None:
    layout = world.layout
    if layout is not None and layout.sealed:
        chosen = (rng.choice(layout.sealed).segment_id,) if rng.random() < 0.5 else ()
        world.ask(_body(world), PruneRequest(chosen))


def _scale(rng: random.Random, world: World) -> None:
    _body(world).desired = rng.choice((None, 1, 2, 3))


def _change_subscriptions(rng: random.Random, world: World) -> None:
    body = _body(world)
    names = rng.sample(_NAMES, rng.randrange(len(_NAMES) + 1))
    kinds = (
        DeclaredSubscription(),
        DeclaredSubscription(latest=True),
        DeclaredSubscription(delete_with_entry=True),
    )
    body.intent = replace(body.intent, subscriptions={name: rng.choice(kinds) for name in names})


def _seek(rng: random.Random, world: World) -> None:
    subscription = rng.choice((*_NAMES, "found"))
    if rng.random() < 0.3:
        world.holding[subscription] = rng.choice((1, 3, 1_000))
    to_ms = world.clock.now_ms() - 1000 * rng.choice((-10, 0, 50, 400, 10_000))
    wants: CursorRequest = SeekRequest(subscription, to_ms)
    if rng.random() < 0.3:
        wants = SkipAllRequest(subscription)
    elif (topics := [topic for topic in world.segment_topics() if topic.entries]) and rng.random() < 0.4:
        wants = _checkpoint(rng, topics, subscription)
    world.ask(_body(world), wants)


def _checkpoint(rng: random.Random, topics: Sequence[ModelTopic], subscription: str) -> RestoreRequest:
    """Positions of some segments and buckets, or of some that never were."""
    positions = {}
    for topic in rng.sample(topics, rng.randint(1, min(3, len(topics)))):
        entry = rng.choice(topic.entries)
        segment_id = topic.record.segment_id if topic.record else 99
        bucket = WHOLE if entry.entry_id % 3 else entry.entry_id % 2
        positions[Part(segment_id, bucket)] = MessagePosition(entry.ledger_id, entry.entry_id)
    return RestoreRequest(subscription, positions, allow_gaps=rng.random() < 0.5)


def _wish(rng: random.Random, world: World) -> None:
    wish = SubscriptionWish(
        rng.choice((*_NAMES, "asked")), rng.random() < 0.5, latest=rng.random() < 0.3, forced=rng.random() < 0.5
    )
    _body(world).wishes.append(wish)


def _change_policies(rng: random.Random, world: World) -> None:
    body = _body(world)
    retention = rng.choice((None, 0, 5, -1))
    body.intent = replace(body.intent, per_segment=replace(body.intent.per_segment, retention_minutes=retention))


def _read(rng: random.Random, world: World) -> None:
    if rng.random() < 0.5:
        world.read_all()
    else:
        world.reading = set(rng.sample((*_NAMES, "found", "appears"), 2))


def _write(rng: random.Random, world: World) -> None:
    world.writing = rng.random() < 0.7


def _subscribe(rng: random.Random, world: World) -> None:
    world.subscribe_everywhere("found")


def _attach(rng: random.Random, world: World) -> None:
    count = rng.randrange(2)
    for topic in world.segment_topics():
        for cursor in topic.cursors.values():
            cursor.consumers = count


def _wait(rng: random.Random, world: World) -> None:
    world.clock.advance(rng.choice((61, 301, 700)))


def _terminate(rng: random.Random, world: World) -> None:
    topics = world.active_topics()
    if topics and world.layout is not None:
        world.terminate(rng.choice(topics).name)


def _reopen(rng: random.Random, world: World) -> None:
    sealed = world.sealed_topics()
    if sealed:
        name = rng.choice(sealed)
        world.broker.reopen(name)
        for _ in range(rng.randrange(3)):
            world.broker.produce(name)


def _write_behind_the_end(rng: random.Random, world: World) -> None:
    """Somebody opens what was read, writes to it and seals it, long before anybody looks again."""
    sealed = world.sealed_topics()
    if not sealed:
        return
    world.read_all()
    name = rng.choice(sealed)
    world.broker.reopen(name)
    for _ in range(rng.randrange(1, 4)):
        world.broker.produce(name)
    world.terminate(name)
    world.clock.advance(701)
    if rng.random() < 0.5:
        _prune(rng, world)


def _lose_status(rng: random.Random, world: World) -> None:
    world.wipe(_body(world))


def _lose_topic(rng: random.Random, world: World) -> None:
    kind = rng.choice((FaultKind.DROPPED, FaultKind.REPLACED, FaultKind.RESURRECTED))
    world.disturb(Fault(kind, rng.randrange(6)), None)


def _lose_claim(rng: random.Random, world: World) -> None:
    if world.layout is not None:
        world.drop(_body(world).topic.persistent)


def _hand_over(rng: random.Random, world: World) -> None:
    """The object goes and another one comes."""
    body = _body(world)
    body.retain = rng.random() < 0.7
    body.deleting = True
    if not body.retain:
        world.disconnect()
        for topic in world.segment_topics():
            for cursor in topic.cursors.values():
                cursor.consumers = 0
    intent = replace(INTENT, initial_segments=rng.randrange(1, 4), migrates=body.intent.migrates)
    world.declare(intent, installation=HOME)


_ACTS: tuple[Callable[[random.Random, World], None], ...] = (
    _split,
    _split,
    _split,
    _merge,
    _merge,
    _rebucket,
    _prune,
    _seek,
    _seek,
    _wish,
    _scale,
    _change_subscriptions,
    _change_subscriptions,
    _change_policies,
    _read,
    _read,
    _write,
    _subscribe,
    _attach,
    _wait,
    _wait,
    _terminate,
    _reopen,
    _write_behind_the_end,
    _lose_status,
    _lose_topic,
    _lose_claim,
    _hand_over,
)
