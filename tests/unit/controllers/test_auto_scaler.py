"""When topics are decided on, and what their conditions say of it (R29, R30, R34)."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from scalable_topics.layout import SegmentLayout, TopicName, classic_segment_name
from scalable_topics_operator.api.scalable_topic import ScalableTopicSpec
from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.decision import Decision, Reason, Rebucket, Split
from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.autoscale.policy import EffectivePolicy
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers import auto_scaler
from scalable_topics_operator.controllers.auto_scaler import AutoScaler, ScaleMemory, Subject
from scalable_topics_operator.controllers.conditions import with_aspects
from scalable_topics_operator.controllers.consumer_counts import ConsumerCounts
from scalable_topics_operator.load.sample import LoadSample, SegmentSample
from scalable_topics_operator.operations.topic_state import TopicState
from scalable_topics_operator.telemetry.scaling_metrics import ScalingMetrics

TOPIC = TopicName.parse("topic://t/n/a")
KEY = ObjectKey("scalabletopics", "ns", "a")
CONNECTION = ObjectKey("scalabletopicconnections", "ns", "pulsar")
HOT, COLD = Rates(100_000.0), Rates()


@dataclass
class World:
    """Policies, loads and a clock for one topic."""

    layout: SegmentLayout = field(default_factory=lambda: SegmentLayout.initial(2))
    policy: EffectivePolicy = field(default_factory=lambda: EffectivePolicy({}, {}, AutoScaleConfig()))
    spec: dict[str, Any] = field(default_factory=dict)
    last: LoadSample | None = None
    silent: bool = False
    statistics: dict[str, Any] = field(default_factory=dict)
    asked_for: list[str] = field(default_factory=list)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    status: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.metrics = ScalingMetrics(self.registry, per_segment=True)
        self.counts = ConsumerCounts(lambda _: None)
        self.scaler = AutoScaler(self, self, self.counts, self.metrics, 60.0, 512)
        self.memory = ScaleMemory()

    def effective(self, key: ObjectKey, body: dict[str, Any]) -> EffectivePolicy:
        return self.policy

    def sample(self, connection: ObjectKey) -> LoadSample | None:
        return self.last

    def is_silent(self, connection: ObjectKey) -> bool:
        return self.silent

    async def stats(self, topic: str, *, precise_backlog: bool) -> dict[str, Any]:
        self.asked_for.append(topic)
        return self.statistics

    def loaded(self, *rates: Rates, at_ms: int | None = None) -> None:
        """All segments have these rates, now."""
        names = [classic_segment_name(TOPIC, one.hash_range, one.segment_id) for one in self.layout.active]
        found = {name: SegmentSample(one) for name, one in zip(names, rates, strict=False)}
        self.last = LoadSample(at_ms or int(time.time() * 1000), 60.0, found)

    async def look(self) -> Decision:
        spec = ScalableTopicSpec.model_validate({"topic": str(TOPIC), "connectionRef": {"name": "pulsar"}, **self.spec})
        load = SimpleNamespace(interval_seconds=10)
        handle: Any = SimpleNamespace(problem="", spec=SimpleNamespace(load=load), admin=SimpleNamespace(topics=self))
        body = {"metadata": {"namespace": KEY.namespace}, "spec": {"connectionRef": {"name": CONNECTION.name}}}
        subject = Subject.of(KEY, body, spec, TOPIC, TopicState(layout=self.layout), handle)
        assert subject is not None
        return await self.scaler.look(subject, self.memory)

    def written(self) -> dict[str, Any]:
        """The status as it would be written now."""
        self.status = with_aspects(self.status, self.scaler.aspects(self.status, self.memory), generation=1, now="")
        return self.status

    def shown(self, kind: str) -> tuple[str, str] | None:
        """Status and reason of a condition as it would be written now."""
        for one in self.written().get("conditions", ()):
            if one["type"] == kind:
                return one["status"], one["reason"]
        return None


def stopped_clock(monkeypatch: pytest.MonkeyPatch, now_ms: int = 1_700_000_000_000) -> SimpleNamespace:
    """Have scalers read a clock that stands still but where its `now_ms` is moved."""
    clock = SimpleNamespace(now_ms=now_ms)
    clock.time_ns = lambda: clock.now_ms * 1_000_000
    clock.monotonic = lambda: clock.now_ms / 1000
    monkeypatch.setattr(auto_scaler, "time", clock)
    return clock


async def test_load_above_a_threshold_is_acted_on() -> None:
    world = World()
    world.loaded(COLD, HOT)
    decision = await world.look()
    assert decision.action == Split(1, 2, decision.action.reason) if decision.action else False
    assert world.memory.pending
    assert world.registry.get_sample_value("scalable_topics_decisions_total", {"code": "msgRateIn"}) == 1
    labels = {"topic": str(TOPIC), "segment": "1"}
    assert world.registry.get_sample_value("scalable_topics_segment_msg_rate_in", labels) == 100_000


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"spec": {"segments": {"desired": 3}}}, "DesiredSet"),
        ({"spec": {"paused": True}}, "Paused"),
        (
            {"policy": EffectivePolicy({}, {}, None, "minSegments must not be greater than maxSegments")},
            "InvalidPolicy",
        ),
        ({"policy": EffectivePolicy({}, {}, AutoScaleConfig(enabled=False))}, "Disabled"),
        ({"layout": SegmentLayout.initial(410)}, "LayoutFull"),
    ],
)
async def test_R30_nothing_is_decided_where_that_is_not_wanted(changes: dict[str, Any], reason: str) -> None:
    """Hazards A2-26008 and C72."""
    world = World(**changes)
    world.loaded(HOT, HOT)
    assert (await world.look()).action is None
    assert world.shown("AutoScale") == ("False", reason)


async def test_load_is_known_where_nothing_is_done_automatically_and_gone_when_it_is_stale() -> None:
    """It is for autoscalers of consumers, too; one that goes by a number that stands still does harm."""
    world = World(spec={"segments": {"desired": 3}})
    world.loaded(HOT, COLD)

    def shown() -> list[float | None]:
        labels = {"topic": str(TOPIC)}
        return [
            world.registry.get_sample_value("scalable_topics_msg_rate_in", labels),
            world.registry.get_sample_value("scalable_topics_backlog", labels | {"subscription": "s"}),
        ]

    assert world.last is not None
    name = next(iter(world.last.segments))
    world.last = replace(world.last, segments={**world.last.segments, name: SegmentSample(HOT, {"s": 7})})
    await world.look()
    assert shown() == [100_000, 7]
    other = next(one for one in world.last.segments if one != name)
    world.last = LoadSample(
        world.last.at_ms + 1000, 60.0, {name: SegmentSample(HOT, {"s": 7})}, unsettled=frozenset({other})
    )
    await world.look()
    assert shown() == [None, None], "a part is not taken for the whole"
    world.last = None
    world.memory.load.sampled_at_ms = int(time.time() * 1000) - 60_000
    await world.look()
    assert shown() == [None, None]
    assert world.registry.get_sample_value("scalable_topics_useful_parallelism", {"topic": str(TOPIC)}) == 4


async def test_R34_a_stale_load_is_shown_only_when_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    now_ms = int(time.time() * 1000)
    world.loaded(HOT, HOT, at_ms=now_ms - 60_000)
    assert (await world.look()).code == "load-stale"
    assert not world.memory.pending
    assert world.shown("LoadFresh") is None
    assert world.memory.stale_since_ms is not None
    world.memory.stale_since_ms -= 121_000
    await world.look()
    assert world.shown("LoadFresh") == ("False", "LoadStale")
    world.loaded(COLD, COLD)
    await world.look()
    assert world.shown("LoadFresh") is None


async def test_R34_while_no_samples_come_segments_are_asked_for_one_by_one() -> None:
    world = World(silent=True)
    world.statistics = {"msgRateIn": 1e6, "msgThroughputIn": 1, "msgRateOut": 1, "msgThroughputOut": 1}
    await world.look()
    assert len(world.asked_for) == 2
    assert not world.memory.pending, "they count only after a whole period"
    world.spec = {"paused": True}
    await world.look()
    assert len(world.asked_for) == 2


async def test_R29_a_reason_that_changes_with_the_load_is_written_every_few_minutes_at_most() -> None:
    world = World()
    world.loaded(COLD, COLD)
    await world.look()
    first = world.shown("AutoScale")
    assert not world.scaler.has_news(world.status, world.memory)
    world.layout = SegmentLayout.initial(1)
    await world.look()
    assert world.memory.decision is not None
    assert world.memory.decision.code == "at-min-segments"
    assert world.shown("AutoScale") == first
    assert world.memory.shown is not None
    world.memory.shown = world.memory.shown[0], world.memory.shown[1] - 301.0
    assert world.scaler.has_news(world.status, world.memory)
    assert world.shown("AutoScale") == ("True", "AtMinSegments")


async def test_R7_a_new_leader_that_knows_no_load_yet_writes_nothing() -> None:
    world = World()
    await world.look()
    assert world.shown("AutoScale") is None, "nothing is known of a new topic yet"
    world.loaded(COLD, COLD)
    await world.look()
    before = world.shown("AutoScale")
    assert before is not None
    world.memory, world.last = ScaleMemory(), None
    await world.look()
    assert world.memory.decision is not None
    assert world.memory.decision.code == "load-stale"
    assert not world.scaler.has_news(world.status, world.memory)
    assert world.shown("AutoScale") == before


async def test_cold_neighbours_are_merged_after_the_window_at_the_ordinary_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Samples come every ten seconds and decisions once a minute, with the last sample there is (hazard C47)."""
    clock = stopped_clock(monkeypatch)
    world = World()
    codes = []
    for _ in range(7):
        world.loaded(COLD, COLD, at_ms=clock.now_ms - 9_000)
        codes.append((await world.look()).code)
        clock.now_ms += 60_000
    assert codes == ["warm"] * 5 + ["cold"] * 2


async def test_a_cooldown_brings_the_next_look_forward() -> None:
    world = World(policy=EffectivePolicy({}, {}, replace(AutoScaleConfig(), merge_window_seconds=0.0)))
    world.loaded(HOT, COLD)
    await world.look()
    assert 0 <= world.memory.due - time.monotonic() <= 60.0
    assert not world.scaler.is_due(world.memory)
    world.memory.due = 0.0
    assert world.scaler.is_due(world.memory)
    world.scaler.put_off(world.memory)
    assert not world.scaler.is_due(world.memory)


async def test_what_fails_is_tried_again_later_and_later() -> None:
    """Hazard A2-25980d."""
    world = World()
    pauses = []
    for _ in range(7):
        world.scaler.acted(world.memory, succeeded=False)
        pauses.append(round(world.memory.due - time.monotonic()))
    assert pauses == [120, 240, 480, 960, 1800, 1800, 1800]
    world.scaler.acted(world.memory, succeeded=True)
    world.scaler.acted(world.memory, succeeded=False)
    assert round(world.memory.due - time.monotonic()) == 120


async def test_what_fails_and_can_wait_holds_nothing_else_back() -> None:
    world = World()
    await world.look()
    world.memory.decision = Decision(Rebucket((0,), 4, Reason.IDLE_BUCKETS), ())
    due, watched = world.memory.due, world.memory.demand
    assert watched.peaks
    world.scaler.acted(world.memory, succeeded=False)
    assert (world.memory.due, world.memory.failures) == (due, 0)
    assert not world.memory.demand.peaks, "it is tried again after another window, not at once"


async def test_whatever_becomes_of_a_decision_there_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hazard A2-25980a: nothing is in the way of the next but time, whoever raised what."""
    clock = stopped_clock(monkeypatch, now_ms=1_000_000)
    world = World()

    def look_again() -> Awaitable[Decision]:
        assert world.scaler.is_due(world.memory)
        world.loaded(HOT, COLD, at_ms=clock.now_ms)
        return world.look()

    policy, world.policy = world.policy, SimpleNamespace()  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        await look_again()
    world.policy = policy
    assert (await look_again()).action is not None, "the one that failed is not waited for"
    # What was to be done then raises an error that nobody foresaw, so that nothing is said of it.
    clock.now_ms += 60_000
    assert (await look_again()).action is not None
    world.scaler.acted(world.memory, succeeded=False)
    clock.now_ms += 120_000
    assert (await look_again()).action is not None


async def test_segments_that_no_broker_has_loaded_are_merged_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hazard C47: they fell silent long ago, and nothing will ever be heard of them."""
    clock = stopped_clock(monkeypatch)
    world = World()
    codes: list[str] = []
    for _ in range(8):
        # Brokers have been watched for two minutes before silence is believed.
        now_ms = clock.now_ms
        world.last = LoadSample(now_ms, 120.0, {}, settled=len(codes) >= 2)
        codes.append((await world.look()).code)
        clock.now_ms += 60_000
    assert codes == ["warm"] * 7 + ["cold"]


async def test_buckets_go_down_after_the_window_and_another_leader_begins_it_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hazard A2-26434a: who has just taken over knows of no consumers, and takes nothing from those that come back."""
    clock = stopped_clock(monkeypatch)
    world = World(layout=SegmentLayout.initial(1, bucket_budget=32))

    async def minutes(count: int, consumers: int) -> list[str]:
        codes = []
        for _ in range(count):
            world.counts.set(KEY, "s", consumers)
            world.loaded(COLD, at_ms=clock.now_ms - 9_000)
            codes.append((await world.look()).findings[-1].code)
            clock.now_ms += 60_000
        return codes

    assert await minutes(5, 3) == ["idle-window"] * 5
    # They come and go within the window, and at its end there is another leader.
    assert await minutes(1, 20) == ["quiet"]
    assert await minutes(4, 3) == ["idle-window"] * 4
    assert await minutes(1, 3) == ["quiet"], "20 consumers need them, and it was not ten minutes ago"
    world.memory = ScaleMemory()
    assert await minutes(10, 0) == ["idle-window"] * 10
    assert await minutes(1, 0) == ["idle-buckets"]


async def test_a_topic_that_is_switched_off_says_nothing_of_its_load() -> None:
    world = World()
    await world.look()
    assert world.memory.stale_since_ms is not None
    world.memory.stale_since_ms -= 200_000
    world.spec = {"paused": True}
    await world.look()
    assert world.shown("LoadFresh") is None


async def test_the_series_of_a_topic_that_is_gone_are_taken_away() -> None:
    """Hazard A2-25980g."""
    world = World()
    world.loaded(COLD, HOT)
    await world.look()
    assert str(TOPIC) in generate_latest(world.registry).decode()
    world.metrics.forget(str(TOPIC))
    world.metrics.forget(str(TOPIC))
    assert str(TOPIC) not in generate_latest(world.registry).decode()


def test_consumer_counts_tell_of_changes_only() -> None:
    told: list[ObjectKey] = []
    counts = ConsumerCounts(told.append)
    counts.set(KEY, "s", 2)
    counts.set(KEY, "s", 2)
    counts.set(KEY, "other", 0)
    assert counts.of(KEY) == {"s": 2}
    counts.set(KEY, "s", 0)
    assert counts.of(KEY) == {}
    assert told == [KEY, KEY]
