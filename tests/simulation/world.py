"""The whole world of a simulation: brokers, objects, clients, time, and operator processes that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

from scalable_topics.layout import Segment, SegmentLayout, TopicName, classic_segment_name, parse_classic_segment_name
from scalable_topics_operator.cluster.kube_errors import KubeError
from scalable_topics_operator.cluster.status_store import StaleStatus
from scalable_topics_operator.operations.context import TopicIntent
from scalable_topics_operator.operations.errors import BackendError
from scalable_topics_operator.operations.protocols import MessagePosition, Position
from scalable_topics_operator.operations.requests import CursorRequest, PruneRequest, ReshapeRequest
from tests.simulation.auditor import FOREIGN_FIELDS, Auditor
from tests.simulation.clients import DEAF, LISTENER, ListeningProducer
from tests.simulation.faults import AT_THE_END, Call, Fault, FaultKind, FaultPlan, Nature, NoFaults
from tests.simulation.line import Effect, Line
from tests.simulation.model_broker import ModelBroker, ModelTopic
from tests.simulation.model_clock import ModelClock
from tests.simulation.model_store import SegmentOperation, TopicObject

T = TypeVar("T")
TOPIC = TopicName("tenant", "space", "orders")
HOME = "installation-1"
SUBSCRIBED = "appears"
_READING_TURNS = 4


@dataclass(slots=True)
class _Late:
    call: Call
    effect: Effect
    due: int


class AuditedBroker(ModelBroker):
    """Brokers that tell the auditor of topics made and deleted."""

    auditor: Auditor | None = None
    last_deleted: str | None = None
    holding: Mapping[str, int] = MappingProxyType({})

    def when_life_ends(self) -> None:
        """Called when a deletion comes to its last call; replaced by the world."""

    def create(self, name: str, **what: object) -> bool:
        created = super().create(name, **what)  # type: ignore[arg-type]
        if created and self.auditor is not None:
            self.auditor.created(self.topics[name])
        return created

    def terminate(self, name: str) -> Position:
        if self.auditor is not None:
            self.auditor.terminated(name)
        claimed = super().terminate(name)
        if self.auditor is not None and self.auditor.late:
            # Producers had gone on alone meanwhile, and nobody can know who they were.
            self.topics[name].attached_at_seal.clear()
        return claimed

    def skip_all(self, name: str, subscription: str) -> bool:
        self._require_let_go(subscription)
        return super().skip_all(name, subscription)

    def seek(self, name: str, subscription: str, to_ms: int | None) -> bool:
        self._require_let_go(subscription)
        return super().seek(name, subscription, to_ms)

    def move_behind(self, name: str, subscription: str, position: MessagePosition) -> bool:
        self._require_let_go(subscription)
        return super().move_behind(name, subscription, position)

    def _require_let_go(self, subscription: str) -> None:
        if self.auditor is not None and subscription in self.holding:
            self.auditor.moved_under_readers(subscription)

    def publish(self, name: str, message: str) -> None:
        super().publish(name, message)
        if self.auditor is not None:
            self.auditor.published(message)

    def delete(self, name: str, *, force: bool) -> None:
        topic = self.topics.get(name)
        if name == TOPIC.persistent:
            self.when_life_ends()
        super().delete(name, force=force)
        if topic is not None and self.auditor is not None:
            self.last_deleted = name if topic.record else self.last_deleted
            self.auditor.deleted(topic)


class World:
    """Everything outside an operator process."""

    def __init__(self, clock: ModelClock | None = None, foreign: Mapping[str, Any] = FOREIGN_FIELDS) -> None:
        self.clock = clock or ModelClock()
        self.broker = AuditedBroker(clock=self.clock)
        self.objects: list[TopicObject] = []
        self.plan: FaultPlan = NoFaults()
        self.trace: list[str] = []
        self.calls: list[Call] = []
        self.calls_under_plan = 0
        self.events: list[str] = []
        self.reading: set[str] = set()
        self.holding: dict[str, int] = {}
        self.broker.holding = self.holding
        self.sought: dict[str, int] = {}
        self.writing = True
        self.ordinary: list[str] = []
        self.listener = ListeningProducer(self.broker, TOPIC, self.clock)
        self.auditor = Auditor(self.broker, self.objects, self.calls, _segment_topic, self.clock, foreign)
        self.broker.auditor = self.auditor
        self.broker.when_life_ends = self._end_life  # type: ignore[method-assign]
        self.deposed: asyncio.Event | None = None
        self._late: list[_Late] = []
        self._deposed_lines: list[Line] = []
        self._made = 0

    # What users do

    def declare(
        self,
        intent: TopicIntent | None = None,
        *,
        desired: int | None = None,
        retain: bool = True,
        installation: str = HOME,
    ) -> TopicObject:
        """Create a ScalableTopic object for the topic."""
        self._made += 1
        body = TopicObject(
            uid=f"uid-{self._made}",
            topic=TOPIC,
            installation=installation,
            intent=intent or TopicIntent(),
            desired=desired,
            retain=retain,
            status=dict(FOREIGN_FIELDS),
        )
        self.objects.append(body)
        return body

    def make_ordinary(self, partitions: int) -> None:
        """Somebody has an ordinary topic of that name."""
        self.ordinary = self.broker.make_ordinary(TOPIC.persistent, partitions)

    def ask(self, body: TopicObject, wants: ReshapeRequest | PruneRequest | CursorRequest) -> str:
        """Create a SegmentOperation; answers its name."""
        self._made += 1
        name = f"operation-{self._made}"
        body.operations.append(SegmentOperation(name, wants))
        return name

    def wipe(self, body: TopicObject) -> None:
        """Lose everything of a status that is the operations'."""
        body.status = dict(FOREIGN_FIELDS)
        body.version += 1
        self.auditor.status_lost()

    def restore(self, body: TopicObject, commits: int) -> None:
        """Bring a status back from a backup made that many commits ago."""
        if body.history:
            body.status = body.history[max(0, len(body.history) - commits)]
            body.version += 1
            self.auditor.status_lost(restored=True)

    def remove(self, body: TopicObject) -> None:
        """The API server lets go of an object whose finalizers are gone."""
        if body.gone:
            raise StaleStatus(f"{body.uid} is gone")
        body.gone = True
        if body.retain:
            self.auditor.status_lost()

    def _end_life(self) -> None:
        """Whoever takes the name now begins anew; no request is taken to outlive a whole deletion (R9)."""
        self.auditor.forget_ids()
        self._late.clear()
        for line in self._deposed_lines:
            line.end()

    # What clients do

    def step(self, turn: int) -> None:
        """Producers write to one segment they may write to; readers read on.

        Args:
            turn: how many steps were made before.
        """
        if self.writing and not any(body.deleting and not body.retain and not body.gone for body in self.objects):
            self.listener.step(turn)
            self._use_ordinary(turn)
        for body in self.objects:
            layout = None if body.gone else body.state.layout
            if layout is None:
                continue
            if self.writing and not (body.deleting and not body.retain):
                for segment in layout.active:
                    self.broker.attach(_segment_topic(body.topic, segment), DEAF)
                self.broker.produce(_segment_topic(body.topic, layout.active[turn % len(layout.active)]), DEAF)
            for subscription in self.reading if turn % _READING_TURNS == 0 else ():
                for segment in layout.segments.values():
                    self.broker.acknowledge(_segment_topic(body.topic, segment), subscription, _READING_TURNS)

    def _use_ordinary(self, turn: int) -> None:
        """Write to the ordinary topic, as long as it takes messages; who follows layouts does so until there is one."""
        if not self.ordinary:
            return
        who = [DEAF] if self.listener.kept is not None else [DEAF, LISTENER]
        for producer in who:
            for name in self.ordinary:
                self.broker.attach(name, producer)
            self.broker.produce(self.ordinary[turn % len(self.ordinary)], producer)
        for subscription in self.reading if turn % _READING_TURNS == 0 else ():
            for name in self.ordinary:
                self.broker.acknowledge(name, subscription, _READING_TURNS)

    def stop_writing(self) -> None:
        """Every producer leaves."""
        self.writing = False
        self.disconnect()

    def disconnect(self) -> None:
        """Every producer leaves; those that go on writing come back."""
        for topic in self.broker.topics.values():
            topic.producers.clear()

    def press_readers(self) -> None:
        """Consumers who are waited for come closer to letting go of their segments."""
        for subscription in list(self.holding):
            self.holding[subscription] -= 1
            if self.holding[subscription] <= 0:
                del self.holding[subscription]

    def read_all(self) -> None:
        """Every application reads everything."""
        for name, topic in self.broker.topics.items():
            for subscription in topic.cursors:
                self.broker.acknowledge(name, subscription)

    def subscribe_everywhere(self, subscription: str) -> None:
        """An application makes a subscription on every segment that takes writes."""
        for topic in self.active_topics():
            if not topic.terminated:
                self.broker.create_subscription(topic.name, subscription, latest=False)

    def drop(self, name: str) -> None:
        """Somebody deletes a topic behind the operator's back."""
        self.broker.topics.pop(name, None)
        self.auditor.dropped[name] = max(0, len(self.calls) - 1)

    def terminate(self, name: str) -> None:
        """Somebody seals a topic behind the operator's back."""
        ModelBroker.terminate(self.broker, name)
        self.broker.topics[name].attached_at_seal.clear()

    # What is there

    def segment_topics(self) -> list[ModelTopic]:
        """Topics named like segments of the topic, by name."""
        parsed = ((name, _parsed_name(name)) for name in sorted(self.broker.topics))
        return [self.broker.topics[name] for name, found in parsed if found is not None and found[0] == TOPIC]

    def active_topics(self) -> list[ModelTopic]:
        """Topics of the segments that take writes, in ring order; before a migration, those that are migrated."""
        names = (
            [*self.ordinary]
            if self.layout is None
            else [
                _segment_topic(body.topic, segment)
                for body in self.objects
                if not body.gone and body.state.layout
                for segment in body.state.layout.active
            ]
        )
        return [self.broker.topics[name] for name in names if name in self.broker.topics]

    @property
    def present(self) -> TopicObject | None:
        """The newest object that is there."""
        return next((body for body in reversed(self.objects) if not body.gone), None)

    @property
    def layout(self) -> SegmentLayout | None:
        """Its layout."""
        return self.present.state.layout if self.present is not None else None

    def sealed_topics(self) -> list[str]:
        """Names of its sealed segments' topics that are there, by id."""
        names = [self.name_of(segment) for segment in self.layout.sealed] if self.layout is not None else []
        return [name for name in names if name in self.broker.topics]

    def name_of(self, segment: Segment) -> str:
        """Full name of a segment's topic."""
        return _segment_topic(TOPIC, segment)

    def topic_of(self, segment: Segment) -> ModelTopic:
        """The topic of a segment."""
        return self.broker.topics[self.name_of(segment)]

    def pulse(self) -> tuple[object, ...]:
        """Changes whenever anything happens but looks and clients' work."""
        return (
            tuple((body.version, body.gone, len(body.operations)) for body in self.objects),
            tuple(sorted(self.broker.topics)),
            tuple(
                (frozenset(topic.cursors), len(topic.messages), topic.terminated)
                for topic in self.broker.topics.values()
            ),
        )

    # What a line needs

    def begin(self, verb: str, target: str, nature: Nature) -> Call:
        """Number a call; everybody else makes a step first."""
        self.step(len(self.calls))
        call = Call(len(self.calls), verb, target, nature)
        self.calls.append(call)
        for late in [late for late in self._late if 0 < late.due <= call.index]:
            self._land(late)
        return call

    def note(self, line: str) -> None:
        """Write a line of the trace."""
        self.trace.append(line)

    def postpone(self, call: Call, effect: Effect, after: int) -> None:
        """Let a call take effect that many calls later, when all is quiet, or at the end."""
        self._late.append(_Late(call, effect, call.index + after if after > 0 else after))

    def land(self, *, at_the_end: bool) -> bool:
        """Let what is still under way take effect; False if there was nothing."""
        landing = [late for late in self._late if at_the_end or late.due != AT_THE_END]
        for late in landing:
            self._land(late)
        return bool(landing)

    def belated(self, call: Call, effect: Callable[[], T]) -> T:
        """Let a call take effect now that was under way for long."""
        self.auditor.sent_at = call.index
        try:
            return effect()
        finally:
            self.auditor.sent_at = None

    def depose(self, line: Line) -> None:
        """Let another process take over from the one of a line."""
        self._deposed_lines.append(line)
        self.auditor.deposed = True
        if self.deposed is not None:
            self.deposed.set()

    def disturb(self, fault: Fault, call: Call | None) -> None:
        """Do what happens just before a call, or between calls."""
        target = call.target if call else ""
        happenings: dict[FaultKind, Callable[[], None]] = {
            FaultKind.WIPED: self._wipe_all,
            FaultKind.RESTORED: lambda: self._restore_all(fault.amount),
            FaultKind.REOPENED: lambda: self.broker.arm_reopening(target, fault.amount),
            FaultKind.HANGING: lambda: self.broker.arm_hanging_adds(target, fault.amount),
            FaultKind.SUBSCRIBED: lambda: self.subscribe_everywhere(SUBSCRIBED),
            FaultKind.ROLLED_OVER: self._roll_over_all,
            FaultKind.DROPPED: lambda: self._drop_nth(fault.amount, made_again=False),
            FaultKind.REPLACED: lambda: self._drop_nth(fault.amount, made_again=True),
            FaultKind.RESURRECTED: self._resurrect,
        }
        happenings[fault.kind]()

    def _wipe_all(self) -> None:
        for body in self.objects:
            if not body.gone:
                self.wipe(body)

    def _restore_all(self, commits: int) -> None:
        for body in self.objects:
            if not body.gone:
                self.restore(body, commits)

    def _roll_over_all(self) -> None:
        for topic in self.active_topics():
            if not topic.terminated:
                self.broker.roll_over(topic.name)

    def _drop_nth(self, which: int, *, made_again: bool) -> None:
        topics = self.segment_topics()
        if topics:
            name = topics[which % len(topics)].name
            self.drop(name)
            if made_again:
                self.broker.connect(name)

    def _resurrect(self) -> None:
        if self.broker.last_deleted is not None:
            self.broker.connect(self.broker.last_deleted)

    def _land(self, late: _Late) -> None:
        self._late.remove(late)
        self.note(f"   … {late.call} takes effect now")
        self.auditor.late = True
        try:
            self.belated(late.call, late.effect)
        except (BackendError, KubeError, StaleStatus) as error:
            self.note(f"   … and is refused: {error}")
        finally:
            self.auditor.late = False


def _segment_topic(topic: TopicName, segment: Segment) -> str:
    return segment.topic or _derived_name(topic, segment.hash_range, segment.segment_id)


_derived_name = cache(classic_segment_name)
_parsed_name = cache(parse_classic_segment_name)
