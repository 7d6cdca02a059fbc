"""Any interleaving of sends, acknowledgements, refusals, lost outcomes, announcements, layouts and expired holds:
every key keeps its order, nothing is lost, and nothing is stored twice (R13, R15; hazards A5-25610, A5-26615). Also
where the topic begins as an ordinary one and is migrated (R25).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from scalable_topics.sdk.segment_lane import Connection
from tests.unit.sdk.simulated_segments import HOLD_SECONDS, SimulatedProducer, SimulatedSegments

HASHES = (0x0000_0000, 0x3FFF_8000, 0x7FFF_0001, 0x8000_0000, 0xFFFF_FFFF)


class Walk:
    """A random walk through what can happen, steered so that the rare things meet."""

    def __init__(self, data: st.DataObject) -> None:
        self._draw = data.draw
        self.world = SimulatedSegments(
            segments=self._number(1, 2),
            bucket_budget=self._number(1, 2),
            per_bucket=self._draw(st.booleans()),
            partitions=self._draw(st.sampled_from([None, None, 0, 1, 3])),
        )
        if self._draw(st.booleans()):
            self.world.plan.open_ahead()
            self.world.act()

    def step(self) -> None:
        actions: list[tuple[int, Callable[[], None]]] = [(8, self._send), (1, self._send_keyless), (1, self._pass_time)]
        world = self.world
        busy = [producer for producer in world.producers if producer.holds]
        if world.opening:
            actions.append((6, lambda: world.open_next(fails=self._one_in(6))))
        if busy:
            actions += [(5, lambda: self._store(busy)), (4, lambda: self._acknowledge(busy))]
            actions += [
                (1, lambda: self._pick(busy, world.break_producer)),
                (1, lambda: self._pick(busy, world.reject)),
            ]
            if any(world.stored[producer.topic].is_terminated for producer in busy):
                actions.append((4, lambda: self._pick(busy, lambda p: world.refuse(p, leave_last=self._one_in(4)))))
        if world.tails:
            actions.append((2, world.read_tail))
        if world.resting:
            actions.append((3, world.rest_is_over))
        if world.change is None:
            actions.append((4, self._begin_change))
        else:
            actions += [(3, self._terminate), (3, lambda: world.commit(settle=self._one_in(2)))]
            if not self._some_parent_is_terminated():
                actions += [(1, world.announce), (1, world.call_off)]
        actions += [(1, lambda: world.publish(announced=world.is_announced)), (1, self._give_up_on_one)]
        self._draw(st.sampled_from([action for weight, action in actions for _ in range(weight)]))()

    def _send(self) -> None:
        hash_value = self._draw(st.sampled_from(HASHES))
        for _ in range(self._number(1, 3)):
            self.world.send(hash_value, travels_alone=self._one_in(5))

    def _send_keyless(self) -> None:
        self.world.send(None)

    def _store(self, busy: list[SimulatedProducer]) -> None:
        producer = self._draw(st.sampled_from(busy))
        for _ in range(self._number(1, 3)):
            self.world.store(producer)

    def _acknowledge(self, busy: list[SimulatedProducer]) -> None:
        producer = self._draw(st.sampled_from(busy))
        for _ in range(self._number(1, 3)):
            self.world.acknowledge(producer)

    def _begin_change(self) -> None:
        layout = self.world.layout
        active = [segment.segment_id for segment in layout.active]
        if layout.is_synthetic:
            self.world.plan_migration()
        elif len(active) > 1 and self._one_in(2):
            at = self._number(0, len(active) - 2)
            self.world.plan_change(layout.plan_merge(active[at : at + 2]))
        else:
            self.world.plan_change(layout.plan_split(self._draw(st.sampled_from(active)), into=self._number(2, 3)))
        if self._one_in(2):
            self.world.announce()

    def _terminate(self) -> None:
        assert self.world.change is not None
        self.world.terminate(self._draw(st.sampled_from(self.world.change.parent_ids)))

    def _pass_time(self) -> None:
        self.world.pass_time(self._draw(st.sampled_from([1.0, HOLD_SECONDS])))

    def _give_up_on_one(self) -> None:
        """A send's time is over: it is not sent any more if no producer has it."""
        waiting = [send for send in self.world.sends if not send.is_told]
        if waiting:
            send = self._draw(st.sampled_from(waiting))
            send.is_told = True
            send.error = TimeoutError()

    def check(self) -> None:
        copies: Counter[int] = Counter()
        last: dict[int, int] = defaultdict(lambda: -1)
        for log in self.world.logs():
            for _, _, send in log:
                copies[send.order] += 1
                if send.hash_value is not None:
                    assert send.order > last[send.hash_value], f"{send} after {last[send.hash_value]}"
                    last[send.hash_value] = send.order
        assert not [order for order, count in copies.items() if count > 1], "stored twice"
        for producer in self.world.producers:
            numbers = [attempt.sequence_id for attempt in producer.pending]
            assert numbers == sorted(set(numbers))
        asked = Counter(
            id(request.lane) for request in self.world.opening if request.generation == request.lane.generation
        )
        assert all(count == 1 for count in asked.values()), "a storm of creations (hazard A5-26615)"
        open_lanes = [lane for lane in self.world.plan.lanes if lane.connection is Connection.OPEN]
        assert len({id(lane.producer) for lane in open_lanes}) == len(open_lanes)

    def finish(self) -> None:
        world = self.world
        world.pass_time(HOLD_SECONDS)
        world.settle_down()
        self.check()
        stored = {send.order for log in world.logs() for _, _, send in log}
        assert [send for send in world.sends if not send.is_told] == []
        assert [send for send in world.sends if send.error is None and send.order not in stored] == [], "lost"
        assert not world.undecidable
        assert not any(lane.inflight for lane in world.plan.lanes)

    def _pick(self, producers: list[SimulatedProducer], act: Callable[[SimulatedProducer], object]) -> None:
        act(self._draw(st.sampled_from(producers)))

    def _number(self, least: int, most: int) -> int:
        return self._draw(st.integers(least, most))

    def _one_in(self, most: int) -> bool:
        return self._draw(st.integers(1, most)) == most

    def _some_parent_is_terminated(self) -> bool:
        world = self.world
        return world.change is not None and any(
            world.is_terminated(segment_id) for segment_id in world.change.parent_ids
        )


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_no_interleaving_loses_duplicates_or_reorders(data: st.DataObject) -> None:
    """Hazards A5-25610 and A5-26615; R25."""
    walk = Walk(data)
    for _ in range(data.draw(st.integers(5, 70))):
        walk.step()
        walk.check()
    walk.finish()
