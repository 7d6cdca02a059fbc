"""Stories of one scalable topic, told again for every fault at every call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from scalable_topics.layout import Part, layout_topic_name
from scalable_topics_operator.operations.context import DeclaredSubscription, TopicIntent, TotalPolicies
from scalable_topics_operator.operations.protocols import MessagePosition, SchemaVersion
from scalable_topics_operator.operations.requests import (
    CursorRequest,
    MergeRequest,
    PruneRequest,
    RebucketRequest,
    ReshapeRequest,
    RestoreRequest,
    SeekRequest,
    SkipAllRequest,
    SplitRequest,
)
from scalable_topics_operator.operations.segment_policies import SegmentPolicies
from scalable_topics_operator.operations.subscriptions import SubscriptionWish
from tests.simulation.model_store import TopicObject
from tests.simulation.world import World

Act = Callable[[World], None]

EARLY = DeclaredSubscription()
LATE = DeclaredSubscription(latest=True)
DELETED_WITH_ENTRY = DeclaredSubscription(delete_with_entry=True)
BY_OBJECT = DeclaredSubscription(by_object=True)

INTENT = TopicIntent(
    initial_segments=2,
    subscriptions={"declared": EARLY},
    properties={"team": "orders"},
    permissions={"app": frozenset({"produce", "consume"})},
    per_segment=SegmentPolicies(message_ttl_seconds=3600),
    total=TotalPolicies(backlog_quota_bytes=1000),
)


@dataclass(frozen=True, slots=True)
class Script:
    """One story.

    Args:
        name: of the story.
        setup: acts after each of which everything settles, without faults.
        acts: acts after each of which everything settles, with faults.
        ranges: active ranges at the end, unless something was refused or lost.
        check: what must hold at the end besides.
        needs_status: only the status knows what is to be done, so that its loss changes the end.
        stride: faults are tried at every so-manieth call unless all are asked for; for a long story whose parts
            are stories of their own.
    """

    name: str
    setup: Sequence[Act]
    acts: Sequence[Act]
    ranges: Sequence[str]
    check: Act = lambda world: None
    needs_status: bool = False
    stride: int = 1

    def __str__(self) -> str:
        return self.name


def _created(segments: int) -> Sequence[Act]:
    """A topic in use: with messages, schemas, a reader that is not done, and one that is."""

    def create(world: World) -> None:
        world.declare(replace(INTENT, initial_segments=segments))

    def use(world: World) -> None:
        for topic in world.active_topics():
            topic.schemas = (SchemaVersion("STRING", ""), SchemaVersion("JSON", "{}"))
            for _ in range(3):
                world.broker.produce(topic.name)
        world.subscribe_everywhere("found")
        world.subscribe_everywhere("reader")
        for topic in world.active_topics():
            topic.cursors["reader"].durable = False
        world.reading.add("found")
        note_later_fields(the_topic(world))

    return create, use


def _ordinary(partitions: int) -> Sequence[Act]:
    """An ordinary topic in use, as `_created` has it."""

    def make(world: World) -> None:
        world.make_ordinary(partitions)
        for name in world.ordinary:
            topic = world.broker.topics[name]
            topic.schemas = (SchemaVersion("STRING", ""),)
            for _ in range(3):
                world.broker.produce(name)
            for subscription in ("found", "reader", "declared"):
                world.broker.create_subscription(name, subscription, latest=False)
            topic.cursors["reader"].durable = False
        world.reading.add("found")

    return (make,)


def _migrate(world: World) -> None:
    world.declare(replace(INTENT, initial_segments=1, migrates=True))


def _migrate_and_let_go(world: World) -> None:
    """Its object is deleted before the operator has looked at it, or in the middle of it."""
    _migrate(world)
    the_topic(world).deleting = True


def note_later_fields(body: TopicObject) -> None:
    """As a later release would have left them (hazard A1-26008)."""
    layout = dict(body.status["layout"])
    layout["laterField"] = {"kept": True}
    layout["segments"] = [{**segment, "laterField": segment["id"]} for segment in layout["segments"]]
    body.status = {**body.status, "layout": layout}
    body.version += 1


def the_topic(world: World) -> TopicObject:
    """The oldest object that is there."""
    return next(body for body in world.objects if not body.gone)


def _split(segment_id: int, into: int = 2) -> Act:
    return lambda world: _ask(world, SplitRequest(segment_id, into=into))


def _ask(world: World, wants: ReshapeRequest | PruneRequest | CursorRequest) -> None:
    world.ask(the_topic(world), wants)


def _read_all(world: World) -> None:
    world.writing = False
    world.read_all()


def _stop_writing(world: World) -> None:
    world.writing = False


def _stop_reading(world: World) -> None:
    world.reading.clear()


def _seek(subscription: str, back_seconds: float) -> Act:
    def act(world: World) -> None:
        to_ms = world.clock.now_ms() - round(back_seconds * 1000)
        world.sought[subscription] = to_ms
        _ask(world, SeekRequest(subscription, to_ms))

    return act


def _skip_all(subscription: str) -> Act:
    def act(world: World) -> None:
        world.sought[subscription] = world.clock.now_ms()
        _ask(world, SkipAllRequest(subscription))

    return act


def _restore(subscription: str) -> Act:
    """To where two messages of segment 0 had been received."""

    def act(world: World) -> None:
        layout = the_topic(world).state.layout
        assert layout is not None
        second = world.topic_of(layout.segment(0)).entries[1]
        positions = {Part(0): MessagePosition(second.ledger_id, second.entry_id)}
        _ask(world, RestoreRequest(subscription, positions, allow_gaps=True))

    return act


def _hold(subscription: str, looks: int) -> Act:
    """Its consumers let go of their segments after having been waited for so often."""
    return lambda world: world.holding.update({subscription: looks})


def _write_more(world: World) -> None:
    for topic in world.active_topics():
        world.broker.produce(topic.name)


def _acknowledge(subscription: str) -> Act:
    def act(world: World) -> None:
        for topic in world.segment_topics():
            world.broker.acknowledge(topic.name, subscription)

    return act


def _wish(wish: SubscriptionWish) -> Act:
    return lambda world: the_topic(world).wishes.append(wish)


def _wait(seconds: float) -> Act:
    return lambda world: world.clock.advance(seconds)


def _change(**changes: object) -> Act:
    def act(world: World) -> None:
        body = the_topic(world)
        body.intent = replace(body.intent, **changes)  # type: ignore[arg-type]

    return act


def _scale(desired: int) -> Act:
    def act(world: World) -> None:
        the_topic(world).desired = desired

    return act


def _delete(*, retain: bool) -> Act:
    def act(world: World) -> None:
        world.stop_writing()
        body = the_topic(world)
        body.retain, body.deleting = retain, True

    return act


def _declare_again(world: World) -> None:
    world.declare(replace(INTENT, initial_segments=1))


def _adopt(world: World) -> None:
    body = the_topic(world)
    body.gone = True
    world.declare(replace(INTENT, adopt=True), installation="installation-2")


def _terminate_first(world: World) -> None:
    world.terminate(world.active_topics()[0].name)


def _reopen_and_end_again(world: World) -> None:
    """A seal came undone, an entry was written, and drift repair died before it recorded the new end."""
    _read_all(world)
    world.clock.advance(700)
    _reopen_sealed(world)
    layout = the_topic(world).state.layout
    assert layout is not None
    world.terminate(world.name_of(layout.sealed[0]))
    _ask(world, PruneRequest((layout.sealed[0].segment_id,)))


def _drop_first(world: World) -> None:
    world.drop(world.active_topics()[0].name)


def _reopen_sealed(world: World) -> None:
    layout = the_topic(world).state.layout
    assert layout is not None
    name = world.topic_of(layout.sealed[0]).name
    world.broker.reopen(name)
    world.broker.produce(name)


def _drop_claim(world: World) -> None:
    world.drop(the_topic(world).topic.persistent)


def _drop_layout_topic(world: World) -> None:
    world.broker.topics.pop(layout_topic_name(the_topic(world).topic))


def _attach_to(subscription: str) -> Act:
    def act(world: World) -> None:
        for topic in world.segment_topics():
            topic.cursors[subscription].consumers = 1

    return act


def _delete_rival(world: World) -> None:
    """A second object for the same topic comes and goes, with the worst policy it can have (hazard C14)."""
    world.stop_writing()
    rival = world.declare(INTENT, retain=False)
    rival.deleting = True


def _attach_reader(world: World) -> None:
    """A consumer that holds on to what is sealed."""
    layout = the_topic(world).state.layout
    assert layout is not None
    for segment in layout.sealed:
        world.topic_of(segment).cursors["found"].consumers = 1


def _nothing_is_left(world: World) -> None:
    assert not world.broker.topics, sorted(world.broker.topics)
    assert all(body.gone for body in world.objects)


def _everything_was_kept(world: World) -> None:
    kept = [*world.segment_topics(), *(world.broker.topics[name] for name in world.ordinary)]
    assert sum(len(topic.entries) for topic in kept) >= 6


def _sealed(count: int) -> Act:
    def check(world: World) -> None:
        layout = the_topic(world).state.layout
        assert layout is not None
        assert len(layout.sealed) == count, layout.sealed

    return check


def _cursors(subscription: str, *, there: bool, sealed_too: bool) -> Act:
    def check(world: World) -> None:
        layout = the_topic(world).state.layout
        assert layout is not None
        for segment in layout.segments.values():
            expected = there and (sealed_too or segment.is_active)
            assert (subscription in world.topic_of(segment).cursors) == expected, segment

    return check


def _stands_at(subscription: str) -> Act:
    """What was written before the time is acknowledged, and nothing else, on every segment."""

    def check(world: World) -> None:
        for topic in world.segment_topics():
            later = sum(at_ms >= world.sought[subscription] for at_ms in topic.times_ms)
            assert topic.backlog(subscription) == later, f"{topic.name} has {topic.backlog(subscription)}, not {later}"

    return check


def _stands_at_the_checkpoint(subscription: str) -> Act:
    """Two messages of segment 0 are acknowledged, and nothing of what follows it."""

    def check(world: World) -> None:
        layout = the_topic(world).state.layout
        assert layout is not None
        for segment in layout.segments.values():
            topic = world.topic_of(segment)
            left = len(topic.entries) - (2 if segment.segment_id == 0 else 0)
            assert topic.backlog(subscription) == left, f"{topic.name} has {topic.backlog(subscription)}, not {left}"

    return check


def _stands_behind(subscription: str) -> Act:
    """What was written before the time is acknowledged, on every segment."""

    def check(world: World) -> None:
        for topic in world.segment_topics():
            later = sum(at_ms >= world.sought[subscription] for at_ms in topic.times_ms)
            assert topic.backlog(subscription) <= later, f"{topic.name} has {topic.backlog(subscription)} over {later}"

    return check


WHOLE = ("0000-ffff",)
HALVES = ("0000-7fff", "8000-ffff")
QUARTERS = ("0000-3fff", "4000-7fff", "8000-bfff", "c000-ffff")
LEFT_SPLIT = ("0000-3fff", "4000-7fff", "8000-ffff")

# A segment and its halves, each with messages from before and after some time.
_WRITTEN = (*_created(1), _wait(100), _write_more, _stop_reading, _split(0), _wait(100), _write_more, _wait(100))

SCRIPTS = (
    Script("create", (), (lambda world: _declared(world, 3),), ("0000-5554", "5555-aaa9", "aaaa-ffff")),
    Script("split", _created(2), (_split(0),), LEFT_SPLIT),
    Script("split into four", _created(1), (_split(0, into=4),), QUARTERS),
    Script("merge", _created(2), (lambda world: _ask(world, MergeRequest((1, 0))),), WHOLE),
    Script(
        "merge of three",
        _created(4),
        (lambda world: _ask(world, MergeRequest((1, 2, 3))),),
        ("0000-3fff", "4000-ffff"),
    ),
    Script("rebucket", _created(2), (lambda world: _ask(world, RebucketRequest(1, 7)),), HALVES),
    Script("rollover", _created(2), (_terminate_first, _wait(301)), HALVES),
    Script(
        "recreate",
        _created(2),
        (_drop_first, _wait(301)),
        HALVES,
        _cursors("found", there=True, sealed_too=True),
        needs_status=True,
    ),
    Script("reopened", (*_created(1), _split(0)), (_reopen_sealed, _wait(301)), HALVES),
    Script("claim lost", _created(1), (_drop_claim, _wait(301)), WHOLE),
    Script("layout topic lost", _created(1), (_drop_layout_topic, _wait(301)), WHOLE),
    Script("scale", _created(1), (_scale(3), _scale(1)), WHOLE, stride=4),
    Script("prune", (*_created(1), _split(0)), (_read_all, _wait(700), _wait(61)), HALVES, _sealed(0)),
    Script(
        "prune of what is unread",
        (*_created(1), _stop_reading, _split(0)),
        (_wait(700), _wait(61)),
        HALVES,
        _sealed(1),
    ),
    Script(
        "prune with readers attached",
        (*_created(1), _split(0), _attach_reader),
        (_read_all, _wait(700), _wait(61), _wait(301)),
        HALVES,
        _sealed(0),
    ),
    Script(
        "prune on request",
        (*_created(1), _split(0)),
        (_read_all, _wait(700), lambda world: _ask(world, PruneRequest((0,)))),
        HALVES,
        _sealed(0),
    ),
    Script(
        "prune of what is empty",
        (*_created(1), _stop_reading, _stop_writing, _split(0), lambda world: _ask(world, MergeRequest((1, 2)))),
        (_wait(700), _wait(61)),
        WHOLE,
        _sealed(3),
    ),
    Script(
        "prune of what was open again",
        (*_created(1), _split(0)),
        (_reopen_and_end_again,),
        HALVES,
        _sealed(1),
        needs_status=True,
    ),
    Script(
        "split while a subscription is deleted",
        (*_created(1), _change(subscriptions={"declared": EARLY, "going": DELETED_WITH_ENTRY}), _attach_to("going")),
        (lambda world: (_change(subscriptions={"declared": EARLY})(world), _split(0)(world), None)[-1],),
        HALVES,
    ),
    Script("rival deleted", _created(2), (_delete_rival, _wait(301)), HALVES, _everything_was_kept),
    Script(
        "subscribe",
        (*_created(1), _stop_reading, _split(0)),
        (_change(subscriptions={"declared": EARLY, "early": EARLY, "late": LATE}),),
        HALVES,
        lambda world: (
            _cursors("early", there=True, sealed_too=True)(world),
            _cursors("late", there=True, sealed_too=False)(world),
            None,
        )[-1],
    ),
    Script(
        "unsubscribe",
        (
            *_created(1),
            _change(subscriptions={"declared": EARLY, "going": DELETED_WITH_ENTRY}),
            _stop_reading,
            _split(0),
        ),
        (_change(subscriptions={"declared": EARLY}),),
        HALVES,
        _cursors("going", there=False, sealed_too=True),
        needs_status=True,
    ),
    Script(
        "subscribe by request",
        (*_created(1), _stop_reading, _split(0)),
        (_wish(SubscriptionWish("asked")), _split(1)),
        ("0000-3fff", "4000-7fff", "8000-ffff"),
        _cursors("asked", there=True, sealed_too=True),
        needs_status=True,
    ),
    Script(
        "unsubscribe by request",
        (*_created(1), _wish(SubscriptionWish("asked")), _stop_reading, _split(0), _attach_to("asked")),
        (_wish(SubscriptionWish("asked", deletes=True, forced=True)),),
        HALVES,
        _cursors("asked", there=False, sealed_too=True),
        needs_status=True,
    ),
    Script(
        "unsubscribe by request what an object declares",
        (*_created(1), _change(subscriptions={"declared": EARLY, "ordered": BY_OBJECT}), _stop_reading, _split(0)),
        (_wish(SubscriptionWish("ordered", deletes=True)),),
        HALVES,
        _cursors("ordered", there=False, sealed_too=True),
        needs_status=True,
    ),
    Script(
        "seek back", (*_WRITTEN, _acknowledge("declared")), (_seek("declared", 250.0),), HALVES, _stands_at("declared")
    ),
    Script(
        "seek on, with consumers",
        _WRITTEN,
        (_hold("declared", 3), _seek("declared", 50.0)),
        HALVES,
        _stands_at("declared"),
    ),
    Script(
        "restore a checkpoint",
        (*_WRITTEN, _acknowledge("declared")),
        (_hold("declared", 2), _restore("declared")),
        HALVES,
        _stands_at_the_checkpoint("declared"),
    ),
    Script("skip all", _WRITTEN, (_skip_all("declared"),), HALVES, _stands_behind("declared")),
    Script("delete", (*_created(2), _split(0)), (_delete(retain=False),), (), _nothing_is_left),
    Script(
        "delete and declare again",
        (*_created(2), _split(0)),
        (_delete(retain=False), _declare_again),
        WHOLE,
    ),
    Script(
        "retain and declare again",
        _created(2),
        (_delete(retain=True), _declare_again),
        HALVES,
        _everything_was_kept,
    ),
    Script(
        "retain in the middle of a split",
        _created(2),
        (lambda world: (_split(0)(world), _delete(retain=True)(world), None)[-1], _declare_again),
        HALVES,
        _everything_was_kept,
    ),
    Script("migrate", _ordinary(2), (_migrate,), HALVES, _everything_was_kept),
    Script("migrate what is not partitioned", _ordinary(0), (_migrate,), WHOLE),
    Script(
        "migrate and split",
        (*_ordinary(2), _migrate),
        (_split(2), _read_all, _wait(700), _wait(61)),
        LEFT_SPLIT,
        _sealed(0),
        stride=2,
    ),
    Script(
        "retain in the middle of a migration",
        _ordinary(2),
        (_migrate_and_let_go, _migrate),
        HALVES,
    ),
    Script("adopt", _created(2), (_adopt,), HALVES, _everything_was_kept),
)


def _declared(world: World, segments: int) -> None:
    world.declare(replace(INTENT, initial_segments=segments))
