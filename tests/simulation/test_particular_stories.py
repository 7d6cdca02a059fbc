"""Stories of more than one fault, or of more than one object, that must end in one particular way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scalable_topics.layout import Part
from scalable_topics_operator.operations.journal import OperationKind, Step
from scalable_topics_operator.operations.protocols import MessagePosition
from scalable_topics_operator.operations.requests import RestoreRequest, SeekRequest, SkipAllRequest, SplitRequest
from scalable_topics_operator.operations.segment_policies import SegmentPolicies
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase
from scalable_topics_operator.operations.subscriptions import SubscriptionWish
from tests.simulation.faults import Call, Fault, FaultKind, Nature, NoFaults
from tests.simulation.model_broker import ModelTopic
from tests.simulation.model_store import TopicObject
from tests.simulation.run import Run, check_end
from tests.simulation.scripts import DELETED_WITH_ENTRY, EARLY, INTENT
from tests.simulation.world import TOPIC, World


class DyingAt(NoFaults):
    """The process dies before the first call of a verb; the next one goes on."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._died = False

    def at(self, call: Call) -> Fault | None:
        if self._died or call.verb != self._verb:
            return None
        self._died = True
        return Fault(FaultKind.CRASH_BEFORE)


def _phase(body: TopicObject, subscription: str) -> str:
    return body.state.subscriptions[subscription].phase.value


async def _split_topic() -> Run:
    run = Run(World())
    body = run.world.declare(replace(INTENT, initial_segments=1))
    await run.settle()
    run.world.ask(body, SplitRequest(0))
    await run.settle()
    return run


async def test_r5_a_new_leader_of_a_topic_at_rest_writes_nothing() -> None:
    """Neither to the object nor on the layout topic, though its term is a higher one."""
    run = await _split_topic()
    run.restart()
    before = len(run.world.calls)
    await run.settle()
    verbs = {call.verb for call in run.world.calls[before:]}
    assert verbs >= {"published", "look"}, "it has looked"
    assert not verbs & {"commit", "publish"}


async def test_r14_a_seal_that_a_rebuild_finds_undone_is_closed_at_once() -> None:
    """Not only at the next drift check: until then the parent would take writes beside its children."""
    run = await _split_topic()
    world = run.world
    body = world.objects[0]
    assert body.state.layout is not None
    parent = body.state.layout.segment(0)
    assert world.broker.produce(world.name_of(body.state.layout.segment(1)))
    world.broker.reopen(world.name_of(parent))
    world.wipe(body)
    run.restart()
    await run.settle()
    assert body.state.layout.segment(0).sealed_position == str(world.topic_of(parent).last_confirmed)
    assert world.topic_of(parent).terminated


async def test_r14_a_log_that_its_broker_uses_no_more_is_loaded_anew() -> None:
    """Seen when a broker was killed while it sealed: every further call was refused, for as long as one tried."""
    run = Run(World())
    world = run.world
    body = world.declare(replace(INTENT, initial_segments=1))
    await run.settle()
    (parent,) = world.active_topics()
    world.broker.fenced.add(parent.name)
    world.ask(body, SplitRequest(0))
    await run.settle()
    assert body.state.layout is not None
    assert len(body.state.layout.active) == 2
    assert parent.terminated
    assert any(event.startswith("SegmentUnloaded") for event in world.events)
    await run.calm()
    check_end(world)


async def test_r1_a_creation_that_lost_the_name_does_not_go_on_over_the_winners_data() -> None:
    world = World()
    run = Run(world)
    loser = world.declare(INTENT)
    world.plan = DyingAt("create_claim")
    await run.settle_once(loser)
    assert loser.state.operation is not None, "it died with its journal open and no claim"
    winner = world.declare(INTENT)
    await run.settle_once(winner)
    for topic in world.segment_topics():
        world.broker.produce(topic.name)
    written = {topic.name: len(topic.entries) for topic in world.segment_topics()}
    winner.deleting = True
    await run.settle()
    assert winner.gone
    assert loser.state.layout is not None
    assert loser.state.actions == (), "the layout was rebuilt, nothing was created"
    assert {world.name_of(one) for one in loser.state.layout.active} == written.keys()
    await run.calm()
    check_end(world)


async def test_r1_segments_of_another_installation_without_a_claim_are_not_taken() -> None:
    world = World()
    run = Run(world)
    theirs = world.declare(INTENT, installation="installation-2")
    await run.settle()
    theirs.gone = True
    for topic in world.segment_topics():
        world.broker.produce(topic.name)
    world.drop(TOPIC.persistent)
    ours = world.declare(replace(INTENT, adopt=True))
    await run.settle()
    assert ours.standing.startswith(
        "NameRefused: segments of ScalableTopic team/uid-1 of another operator installation"
    )
    assert ours.state.layout is None
    assert TOPIC.persistent not in world.broker.topics, "their claim may still be put back"


@pytest.mark.parametrize("dies_at", ["", "create", "terminate", "publish"])
async def test_r1_an_installation_that_comes_back_leaves_alone_what_another_has_adopted(dies_at: str) -> None:
    """Its record is older than the segments by then, or its journal is open: it neither rebuilds nor goes on."""
    world = World()
    run = Run(world)
    old = world.declare(replace(INTENT, initial_segments=1))
    await run.settle()
    if dies_at:
        world.plan = DyingAt(dies_at)
    world.ask(old, SplitRequest(0))
    await run.settle_once(old)
    # Its whole Kubernetes cluster is away meanwhile.
    old.gone = True
    new = world.declare(replace(INTENT, adopt=True), installation="installation-2")
    await run.settle()
    assert new.state.layout is not None
    world.ask(new, SplitRequest(new.state.layout.active[0].segment_id))
    await run.settle()
    assert list(new.outcomes.values()) == ["Succeeded"]

    old.gone = False
    run.restart()
    before = len(world.calls)
    await run.settle_once(old)
    assert old.standing.startswith("NameRefused: ")
    assert {call.nature for call in world.calls[before:]} == {Nature.READ}
    await run.settle()
    claim = world.broker.topics[TOPIC.persistent].claim
    assert claim is not None
    assert claim.resource_uid == new.uid


async def test_r31_nobody_takes_the_name_of_a_half_deleted_topic() -> None:
    """Even when its claim was lost: it is put back before the first segment goes."""
    run = await _split_topic()
    world = run.world
    going = world.objects[0]
    world.stop_writing()
    world.drop(TOPIC.persistent)
    going.retain, going.deleting = False, True
    world.plan = DyingAt("delete")
    await run.settle_once(going)
    assert going.state.operation is not None
    assert going.state.operation.kind is OperationKind.DELETE
    coming = world.declare(INTENT)
    await run.settle_once(coming)
    assert "already declared by ScalableTopic team/uid-1" in coming.standing
    await run.settle()
    assert going.gone
    assert coming.state.layout is not None
    assert len(world.segment_topics()) == 2, "only the new ones"


async def test_r16_a_subscription_declared_again_while_it_is_deleted_begins_anew() -> None:
    run = await _split_topic()
    world = run.world
    body = world.objects[0]
    body.intent = replace(body.intent, subscriptions={"declared": EARLY, "again": DELETED_WITH_ENTRY})
    await run.settle()
    world.read_all()
    body.intent = replace(body.intent, subscriptions={"declared": EARLY})
    world.plan = DyingAt("unsubscribe")
    await run.settle_once(body)
    assert _phase(body, "again") == SubscriptionPhase.DELETING
    body.intent = replace(body.intent, subscriptions={"declared": EARLY, "again": EARLY})
    await run.settle_once(body)
    assert _phase(body, "again") == SubscriptionPhase.ACTIVE
    parent = world.topic_of(body.state.layout.segment(0)) if body.state.layout else None
    assert parent is not None
    assert parent.backlog("again") == len(parent.entries) > 0, "at earliest: nothing of the old position is left"


@pytest.mark.parametrize("times", [1, 7])
async def test_r14_a_seal_that_does_not_hold_is_tried_until_it_does(times: int) -> None:
    """Hazard A1-26680, again and again: nothing is committed before, and nothing is undone."""
    run = await _split_topic()
    world = run.world
    body = world.objects[0]
    assert body.state.layout is not None
    name = world.name_of(body.state.layout.segment(1))
    world.ask(body, SplitRequest(1))
    for _ in range(times):
        world.broker.arm_reopening(name, 0)
    await run.settle()
    assert body.state.layout.epoch == 2
    assert world.broker.topics[name].terminated
    await run.calm()
    check_end(world)


async def test_r14_a_seal_that_never_holds_leaves_the_operation_open() -> None:
    """R8: past its point of no return it waits, and goes on when the brokers let it."""
    run = await _split_topic()
    world = run.world
    body = world.objects[0]
    assert body.state.layout is not None
    name = world.name_of(body.state.layout.segment(1))
    world.ask(body, SplitRequest(1))
    for _ in range(20):
        world.broker.arm_reopening(name, 1)
    await run.settle_once(body)
    assert body.state.operation is not None
    assert body.state.operation.step.value == "Sealing"
    assert body.state.layout.epoch == 1, "nothing was committed"
    await run.settle()
    assert body.state.layout.epoch == 2


@pytest.mark.parametrize("dies", [False, True])
async def test_r18_consumers_who_never_let_go_keep_their_positions(dies: bool) -> None:
    """They have their time once, whoever leads meanwhile; then the seek ends as failed and no cursor has moved."""
    run = await _split_topic()
    world = run.world
    body = world.objects[0]
    for topic in world.segment_topics():
        world.broker.produce(topic.name)
    backlogs = {topic.name: topic.backlog("declared") for topic in world.segment_topics()}
    world.stop_writing()
    world.holding["declared"] = 1_000
    world.ask(body, SeekRequest("declared", world.clock.now_ms() + 1))
    asked_at = world.clock.seconds
    await run.settle_once(body)
    assert body.state.operation is not None
    assert body.state.operation.step is Step.RELEASING
    if dies:
        run.restart()
    await run.settle()
    assert world.clock.seconds - asked_at < 120
    (outcome,) = (text for name, text in body.outcomes.items() if name not in ("operation-2",))
    assert outcome == "Failed"
    assert "did not let go" in body.state.actions[-1].message
    assert {topic.name: topic.backlog("declared") for topic in world.segment_topics()} == backlogs


async def test_r18_a_subscription_without_cursors_is_not_moved() -> None:
    run = await _split_topic()
    world = run.world
    body = world.objects[0]
    for subscription, why in (("nobody", "there is no subscription nobody"), ("declared", "lost its cursor")):
        if subscription == "declared":
            for topic in world.active_topics():
                del topic.cursors[subscription]
            world.clock.advance(301)
            await run.settle()
        name = world.ask(body, SkipAllRequest(subscription))
        await run.settle()
        assert why in body.outcomes[name]


@pytest.mark.parametrize(
    ("retention_minutes", "read", "outcome"),
    [(None, True, "may be gone"), (1, True, "may be gone"), (60, True, "Succeeded"), (None, False, "Succeeded")],
)
async def test_r22_a_checkpoint_is_restored_if_what_came_after_it_must_be_there(
    retention_minutes: int | None, read: bool, outcome: str
) -> None:
    """What nobody has acknowledged is there anyway."""
    world = World()
    run = Run(world)
    policies = SegmentPolicies(retention_minutes=retention_minutes)
    body = world.declare(replace(INTENT, initial_segments=1, per_segment=policies))
    await run.settle()
    (parent,) = world.active_topics()
    for _ in range(3):
        world.broker.produce(parent.name)
    world.ask(body, SplitRequest(0))
    await run.settle()
    world.stop_writing()
    world.clock.advance(120)
    world.broker.acknowledge(parent.name, "declared", None if read else 2)
    positions = {Part(0): MessagePosition(*_first(parent))}
    name = world.ask(body, RestoreRequest("declared", positions))
    await run.settle()
    assert outcome in body.outcomes[name]
    left = len(parent.entries) - 1 if outcome == "Succeeded" else 0
    assert parent.backlog("declared") == left


@pytest.mark.parametrize("dies_at", ["move_behind", "look", "none"])
async def test_r22_buckets_of_a_checkpoint_have_positions_of_their_own_until_cursors_are_moved_again(
    dies_at: str,
) -> None:
    """The cursor goes behind the least; consumers are told what they need not deliver of the others."""
    world = World()
    run = Run(world)
    body = world.declare(replace(INTENT, initial_segments=1))
    await run.settle()
    (topic,) = world.active_topics()
    for _ in range(4):
        world.broker.produce(topic.name)
    world.stop_writing()
    world.broker.acknowledge(topic.name, "declared", 1)
    places = [MessagePosition(entry.ledger_id, entry.entry_id) for entry in topic.entries]
    layout = body.state.layout
    assert layout is not None
    assert layout.segment(0).buckets > 1
    some = {Part(0, 1): places[2]}
    all_of_them = {Part(0, bucket): places[3 if bucket == 1 else 1] for bucket in range(layout.segment(0).buckets)}
    for positions, behind in ((some, places[0]), (all_of_them, places[1])):
        world.plan = DyingAt(dies_at)
        name = world.ask(body, RestoreRequest("declared", positions))
        await run.settle()
        assert "Succeeded" in body.outcomes[name]
        assert body.state.subscriptions["declared"].floors == {Part(0, 1): positions[Part(0, 1)]}
        mark_delete = topic.cursors["declared"].mark_delete
        assert (mark_delete.ledger_id, mark_delete.entry_id) == behind[:2]
    world.ask(body, SkipAllRequest("declared"))
    await run.settle()
    assert body.state.subscriptions["declared"].floors == {}


def _first(topic: ModelTopic) -> tuple[int, int]:
    return topic.entries[0].ledger_id, topic.entries[0].entry_id


async def test_r16_a_subscription_that_an_application_has_made_can_be_moved() -> None:
    run = await _split_topic()
    world = run.world
    world.subscribe_everywhere("found")
    for topic in world.active_topics():
        world.broker.produce(topic.name)
    name = world.ask(world.objects[0], SkipAllRequest("found"))
    world.stop_writing()
    await run.settle()
    assert world.objects[0].outcomes[name] == "Succeeded"
    assert [topic.backlog("found") for topic in world.active_topics()] == [0, 0]


async def test_r32_what_the_spec_declares_is_not_deleted_by_request() -> None:
    run = await _split_topic()
    world = run.world
    world.objects[0].wishes.append(SubscriptionWish("declared", deletes=True))
    await run.settle()
    assert world.objects[0].outcomes["declared"] == "Declared"
    assert _phase(world.objects[0], "declared") == SubscriptionPhase.ACTIVE


async def test_r32_a_consumer_in_the_way_keeps_a_subscription_until_it_leaves() -> None:
    run = await _split_topic()
    world = run.world
    body = world.objects[0]
    body.wishes.append(SubscriptionWish("asked"))
    await run.settle()
    for topic in world.segment_topics():
        topic.cursors["asked"].consumers = 1
    body.wishes.append(SubscriptionWish("asked", deletes=True))
    await run.settle()
    assert _phase(body, "asked") == SubscriptionPhase.DELETING
    body.wishes.append(SubscriptionWish("asked"))
    await run.settle()
    assert body.outcomes["asked"] == "Deleting", "it is not made anew before it is gone"
    for topic in world.segment_topics():
        topic.cursors["asked"].consumers = 0
    world.clock.advance(301)
    await run.settle()
    assert "asked" not in body.state.subscriptions
    assert not any("asked" in topic.cursors for topic in world.segment_topics())


async def test_r13_what_an_older_status_counts_as_not_announced_yet_is_not_taken_for_announced() -> None:
    """Somebody restores the status from before an announcement: producers have seen it and hold no longer."""
    run = Run(World())
    world = run.world
    body = world.declare(replace(INTENT, initial_segments=1))
    await run.settle()
    world.ask(body, SplitRequest(0))
    for announcements in (1, 2):
        world.plan = DyingAt("terminate")
        while body.state.operation is None or body.state.operation.announcements < announcements:
            await run.settle_once(body)
    world.restore(body, 1)
    assert body.state.operation is not None
    assert (body.state.operation.step, body.state.operation.announcements) == (Step.SEALING, 1)
    await run.settle()
    await run.calm()
    check_end(world)
    assert body.state.layout is not None
    assert len(body.state.layout.active) == 2


@pytest.mark.parametrize("owner", ["somebody else", "nobody, as it was released"])
async def test_r31_an_object_that_goes_ends_nothing_of_a_topic_that_is_not_its_own_any_more(owner: str) -> None:
    """Somebody restores its status from the middle of a split; found by the simulation."""
    run = Run(World())
    world = run.world
    body = world.declare(replace(INTENT, initial_segments=1))
    await run.settle()
    world.ask(body, SplitRequest(0))
    world.plan = DyingAt("terminate")
    while body.state.operation is None or body.state.operation.step is not Step.SEALING:
        await run.settle_once(body)
    claimed = world.broker.topics[TOPIC.persistent]
    assert claimed.claim is not None
    is_released = owner.startswith("nobody")
    claimed.claim = replace(claimed.claim, released=is_released, resource_uid=body.uid if is_released else "another")
    body.deleting = True
    world.plan = NoFaults()
    before = len(world.calls)
    await run.settle()
    assert body.gone
    verbs = [call.verb for call in world.calls[before:]]
    assert verbs == ["name", "drop_finalizer"]
