"""What a send plan does in particular situations; `test_send_plan_machine.py` has all others."""

from __future__ import annotations

from scalable_topics.sdk.effects import FlushProducer, OpenProducer
from scalable_topics.sdk.segment_lane import Connection, Fate
from scalable_topics.sdk.send_plan import MOST_LANES_AHEAD
from tests.unit.sdk.simulated_segments import SimulatedSegments


def opened(world: SimulatedSegments) -> SimulatedSegments:
    """Answer all requests for producers."""
    while world.opening:
        world.open_next()
    return world


def stored(world: SimulatedSegments, hash_value: int | None) -> SimulatedSegments:
    """A message is sent and acknowledged."""
    world.send(hash_value)
    opened(world)
    world.store(world.producers[0])
    world.acknowledge(world.producers[0])
    return world


def test_A5_26615_a_lane_that_cannot_be_opened_is_not_asked_for_with_every_send() -> None:
    world = SimulatedSegments()
    world.send(0)
    world.open_next(fails=True)
    for _ in range(100):
        world.send(0)
    assert world.opening == []
    assert len(world.resting) == 1
    world.rest_is_over()
    assert len(world.opening) == 1


def test_A5_26615_a_refused_lane_is_not_asked_again_before_a_later_epoch() -> None:
    world = opened(SimulatedSegments())
    world.send(0)
    opened(world)
    world.terminate(0)
    world.refuse(world.producers[0])
    for _ in range(100):
        world.send(0)
    world.publish()
    world.pass_time(3600)
    assert not world.opening
    assert not world.tails


def test_a_refused_segment_that_a_later_epoch_still_has_is_asked_once_more() -> None:
    """Another segment was split; this one may have come unstuck meanwhile (hazard A1-26680)."""
    world = SimulatedSegments(segments=2)
    sent = [world.send(0) for _ in range(3)]
    opened(world)
    world.store(world.producers[0])
    world.terminate(0)
    world.refuse(world.producers[0])
    world.stored[world.producers[0].topic].is_terminated = False
    world.plan_change(world.layout.plan_split(1))
    world.commit(settle=True)
    assert len(world.tails) == 1
    world.read_tail()
    opened(world)
    world.settle_down()
    assert [send for _, _, send in world.stored[world.producers[0].topic].log] == sent


def test_an_outcome_of_an_earlier_attempt_is_nothing() -> None:
    """A send that is sent anew is not acknowledged or failed by what became of it before (hazard A5-26130)."""
    world = SimulatedSegments()
    send = world.send(0)
    opened(world)
    world.terminate(0)
    world.plan_change(world.layout.plan_split(0))
    world.commit(settle=True)
    opened(world)
    assert send.attempt == 1
    assert send.lane is not None
    assert send.lane.key.segment_id == 1
    assert world.plan.acknowledged([(send, 0, "late")]) == []
    assert list(send.lane.inflight.values()) == [send]


def test_an_answer_to_an_earlier_question_about_a_tail_is_nothing() -> None:
    """It was read before the segment was sealed: more may have been stored since (hazard A5-26130)."""
    world = SimulatedSegments()
    sent = [world.send(0) for _ in range(2)]
    opened(world)
    producer = world.producers[0]
    world.store(producer)
    world.break_producer(producer)
    early = world.tails[0]
    world.terminate(0)
    world.plan_change(world.layout.plan_split(0))
    world.commit(settle=False)
    assert len(world.tails) == 2
    world.plan.tail_read(early.lane, early.inquiry, -1)
    assert list(early.lane.inflight.values()) == sent
    world.tails.pop(0)
    world.read_tail()
    world.settle_down()
    assert [send.is_told for send in sent] == [True, True]


def test_sends_on_a_segment_that_was_pruned_cannot_be_decided() -> None:
    """Asking for its tail would make brokers create it anew (hazard A1-25719a)."""
    world = SimulatedSegments()
    send = world.send(0)
    opened(world)
    world.store(world.producers[0])
    world.terminate(0)
    world.layout = world.layout.split(0, now_ms=0).prune([0])
    world.publish()
    assert world.undecidable == [send]
    assert world.tails == []


def test_a_tail_nobody_can_read_leaves_its_sends_undecided_and_nothing_else() -> None:
    world = SimulatedSegments()
    send = world.send(0)
    opened(world)
    world.terminate(0)
    world.plan_change(world.layout.plan_split(0))
    world.commit(settle=False)
    later = world.send(0)
    opened(world)
    world.read_tail(fails=True)
    assert world.undecidable == [send]
    world.settle_down()
    assert later.is_told


def test_what_travels_alone_waits_for_the_batch_before_it_and_has_it_flushed() -> None:
    """pulsar-client would send it past the batch, which with deduplication loses the batch."""
    world = SimulatedSegments()
    world.send(0)
    opened(world)
    lane = world.plan.lanes[0]
    world.plan.take_effects()
    world.send(0, travels_alone=True)
    world.send(0)
    assert (len(lane.inflight), len(lane.queue)) == (1, 2)
    world.store(world.producers[0])
    world.acknowledge(world.producers[0])
    assert (len(lane.inflight), len(lane.queue)) == (2, 0)


def test_what_travels_alone_has_the_batch_before_it_flushed() -> None:
    world = SimulatedSegments()
    world.send(0)
    opened(world)
    plan = world.plan
    lane = plan.lanes[0]
    world.flushed.clear()
    world.send(0, travels_alone=True)
    assert world.flushed == [FlushProducer(lane)]


def test_R13_a_lane_made_while_its_segment_is_held_is_held() -> None:
    world = SimulatedSegments()
    world.plan_change(world.layout.plan_split(0))
    world.announce()
    world.send(0)
    assert world.opening == []
    world.call_off()
    assert [request.lane.key.segment_id for request in world.opening] == [0]


def test_R13_children_are_opened_for_the_kinds_of_messages_that_are_sent() -> None:
    for hash_value, buckets in ((0, {0}), (None, {-1})):
        world = SimulatedSegments()
        stored(world, hash_value)
        world.plan_change(world.layout.plan_split(0))
        world.announce()
        assert {request.lane.key for request in world.opening} == {(1, *buckets), (2, *buckets)}


def test_R13_an_announcement_of_segments_nobody_uses_opens_nothing() -> None:
    world = SimulatedSegments(segments=2)
    world.send(0)
    opened(world)
    world.plan_change(world.layout.plan_split(1))
    world.announce()
    assert world.opening == []
    assert not world.plan.lanes[0].held


def test_R13_children_are_opened_when_the_parents_have_been_left() -> None:
    """Whom the leader waits for first; opening has time until the layout arrives."""
    world = SimulatedSegments()
    world.send(0)
    opened(world)
    world.plan_change(world.layout.plan_split(0))
    world.announce()
    assert world.opening == []
    world.store(world.producers[0])
    world.acknowledge(world.producers[0])
    assert not world.producers[0].is_attached
    assert {request.lane.key for request in world.opening} == {(1, 0), (2, 0)}


def test_R13_announced_again_the_children_stay_open() -> None:
    """The parents have been left since the first time, so they do not look used any more."""
    world = SimulatedSegments()
    sent = world.send(0)
    opened(world)
    world.store(world.producers[0])
    world.acknowledge(world.producers[0])
    assert sent.is_told
    world.plan_change(world.layout.plan_split(0))
    world.announce()
    opened(world)
    children = [producer for producer in world.producers if producer.is_attached]
    assert len(children) == 2
    world.announce()
    assert [producer for producer in world.producers if producer.is_attached] == children
    world.commit(settle=True)
    world.send(0)
    assert not world.opening


def test_R13_children_of_a_change_called_off_are_closed() -> None:
    world = stored(SimulatedSegments(), 0)
    world.plan_change(world.layout.plan_split(0))
    world.announce()
    opened(world)
    children = [producer for producer in world.producers if "-0000-ffff-" not in producer.topic]
    assert len(children) == 2
    world.call_off()
    assert not any(producer.is_attached for producer in children)


def test_R13_the_parent_is_left_once_everything_on_it_is_known() -> None:
    world = SimulatedSegments()
    world.send(0)
    opened(world)
    parent = world.producers[0]
    world.plan_change(world.layout.plan_split(0))
    world.announce()
    assert parent.is_attached
    world.store(parent)
    assert parent.is_attached
    world.acknowledge(parent)
    assert not parent.is_attached


def test_producers_opened_ahead_are_bounded() -> None:
    world = SimulatedSegments(segments=1, bucket_budget=1024)
    world.plan.open_ahead()
    effects = world.plan.take_effects()
    assert len(effects) == MOST_LANES_AHEAD
    assert all(isinstance(effect, OpenProducer) for effect in effects)


def test_every_segment_is_opened_ahead_before_the_second_buckets() -> None:
    world = SimulatedSegments(segments=64, bucket_budget=128)
    world.plan.open_ahead()
    assert {effect.lane.key for effect in world.plan.take_effects() if isinstance(effect, OpenProducer)} == {
        (segment_id, 0) for segment_id in range(64)
    }


def test_a_producer_that_comes_too_late_is_closed_again() -> None:
    world = stored(SimulatedSegments(), 0)
    world.plan_change(world.layout.plan_split(0))
    world.announce()
    world.call_off()
    world.open_next()
    late = world.producers[-1]
    assert late.topic.endswith("-0000-7fff-1")
    assert not late.is_attached


def test_nothing_is_opened_while_closing() -> None:
    """Hazard A5-26615: no storm at close either."""
    world = SimulatedSegments()
    world.send(0)
    opened(world)
    world.send(0x8000_0000)
    producer = world.producers[0]
    world.plan.close()
    world.act()
    assert not producer.is_attached
    world.send(0)
    world.publish()
    assert not world.opening
    assert not world.tails
    assert all(lane.connection is Connection.NONE and lane.fate is Fate.LIVE for lane in world.plan.lanes)


def test_R13_a_hold_seen_twice_counts_from_the_second_time() -> None:
    world = SimulatedSegments()
    world.send(0)
    opened(world)
    world.plan_change(world.layout.plan_split(0))
    world.announce()
    assert world.plan.hold_until == 10.0
    world.pass_time(9.0)
    world.announce()
    assert world.plan.hold_until == 19.0
    world.pass_time(9.5)
    assert world.plan.hold_until == 19.0
    world.pass_time(0.5)
    assert world.plan.hold_until is None


def test_R25_an_announced_migration_holds_every_key_and_keyless_messages_too() -> None:
    world = SimulatedSegments(partitions=2)
    sent = [world.send(hash_value) for hash_value in (0, 1, None)]
    opened(world)
    for producer in world.producers:
        world.store(producer)
        world.acknowledge(producer)
    assert all(send.is_told for send in sent)
    world.plan_migration()
    world.announce()
    assert not any(producer.is_attached for producer in world.producers)
    opened(world)
    held = [world.send(hash_value) for hash_value in (0, 1, None)]
    assert [producer.holds for producer in world.producers if producer.is_attached] == [[], [], [], []]
    world.commit(settle=True)
    assert [send.lane and send.lane.key.segment_id for send in held] == [2, 2, 2]


def test_R25_a_migration_called_off_goes_on_with_the_ordinary_topics() -> None:
    world = SimulatedSegments(partitions=0)
    world.send(0)
    opened(world)
    world.plan_migration()
    world.announce()
    held = world.send(0)
    world.call_off()
    opened(world)
    assert held.lane is not None
    assert held.lane.segment.topic == "persistent://tests/sdk/orders"


def test_R25_the_layout_of_a_later_attempt_keeps_producers_on_what_has_not_changed() -> None:
    """Whose layout says so, the client's own or the operator's, makes no difference to a topic and its producer."""
    world = stored(SimulatedSegments(partitions=2), 0)
    before = [producer for producer in world.producers if producer.is_attached]
    world.called_off += 1
    world.publish()
    assert [producer for producer in world.producers if producer.is_attached] == before
    assert world.opening == []
