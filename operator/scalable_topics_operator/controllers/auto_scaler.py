"""When a topic's segments are decided on, from what, and what came of it (pip-483, DESIGN §8, R30, R34, R35)."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from scalable_topics.layout import SegmentLayout, TopicName
from scalable_topics_operator.api.scalable_topic import ScalableTopicSpec
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.decide import Situation, decide
from scalable_topics_operator.autoscale.decision import Decision, Finding, Rule
from scalable_topics_operator.autoscale.demand import Demand
from scalable_topics_operator.autoscale.policy import EffectivePolicy
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_of
from scalable_topics_operator.controllers.conditions import Aspect, clean, find_condition, holds
from scalable_topics_operator.controllers.connections import CLASSIC, NATIVE, ConnectionHandle
from scalable_topics_operator.controllers.consumer_counts import ConsumerCounts
from scalable_topics_operator.controllers.engine import Engine, engine_of
from scalable_topics_operator.controllers.segment_names import segment_topic
from scalable_topics_operator.load.direct import sample_native_topic, sample_topic
from scalable_topics_operator.load.sample import LoadSample
from scalable_topics_operator.load.sampling import Sampling
from scalable_topics_operator.load.topic_load import SampledSegment, TopicLoad
from scalable_topics_operator.operations.errors import BackendError
from scalable_topics_operator.operations.topic_state import TopicState
from scalable_topics_operator.telemetry.scaling_metrics import ScalingMetrics

logger = logging.getLogger(__name__)

AUTO_SCALE = "AutoScale"
_BROKERS = "brokers"
_OFF_CODES = frozenset({"paused", "desired-set", "invalid-policy", "disabled", "layout-full", "not-in-force"})
_UNKNOWN_CODES = frozenset({"load-stale", "load-unknown"})
_ON_MESSAGE = "segments are split and merged by the operator itself; `stopics explain` tells why, or why not"
_STALE_SHOWN_SECONDS = 120.0
_SHOWN_SECONDS = 300.0
_SHARE_OF_RECORDS = 0.8
_ROUNDS_MISSED = 3.0
_MOST_PAUSE_SECONDS = 1800.0


class Policies(Protocol):
    """Where effective policies come from."""

    def effective(self, key: ObjectKey, body: Body) -> EffectivePolicy:
        """What applies to a ScalableTopic."""


class Loads(Protocol):
    """Where samples come from."""

    def sample(self, connection: ObjectKey) -> LoadSample | None:
        """The last sample of a connection's cluster."""

    def is_silent(self, connection: ObjectKey) -> bool:
        """Whether no samples come, so that topics have to be asked for one by one."""


@dataclass(slots=True)
class ScaleMemory:
    """What the process remembers of decisions on a topic; losing it costs the time that segments must be cold, and
    that consumers must have been few.

    Args:
        load: of its segments.
        demand: of its consumers.
        due: monotonic time of the next decision.
        policy: what applied at the last one.
        decision: the last one.
        decided_at_ms: when, milliseconds since 1970.
        pending: whether it is to do something that is not begun yet.
        failures: how often in a row that has failed.
        stale_since_ms: since when its load may not be acted on.
        sampling: of its segments, while they are asked for one by one.
        shown: reason of the condition AutoScale, and since when in monotonic time.
        hindrance: why brokers that own the layout do not go by the policy; empty if they do.
        subject: what was read of the topic last.
    """

    load: TopicLoad = field(default_factory=TopicLoad)
    demand: Demand = field(default_factory=Demand)
    due: float = 0.0
    policy: EffectivePolicy | None = None
    decision: Decision | None = None
    decided_at_ms: int = 0
    pending: bool = False
    failures: int = 0
    stale_since_ms: int | None = None
    sampling: Sampling = field(default_factory=Sampling)
    shown: tuple[str, float] | None = None
    hindrance: str = ""
    subject: Subject | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """The topic to be decided on.

    Args:
        key: of the object.
        body: the object.
        paused: `spec.paused`.
        is_sized: whether `spec.segments.desired` is set.
        engine: who decides on it.
        topic: canonical name.
        layout: as recorded.
        clocks: of earlier changes.
        connection: key of its connection.
        handle: that connection.
        backend: who owns the layout (R2).
    """

    key: ObjectKey
    body: Body
    paused: bool
    is_sized: bool
    engine: Engine
    topic: TopicName
    layout: SegmentLayout
    clocks: Clocks
    connection: ObjectKey
    handle: ConnectionHandle
    backend: str = CLASSIC

    @classmethod
    def of(
        cls,
        key: ObjectKey,
        body: Body,
        spec: ScalableTopicSpec,
        topic: TopicName,
        state: TopicState,
        handle: ConnectionHandle,
        backend: str = CLASSIC,
    ) -> Subject | None:
        """A topic of this spec and record; None while it has no layout.

        Of the spec no more is kept than is decided on: of all topics it would be much memory.
        """
        if state.layout is None:
            return None
        return cls(
            key=key,
            body=body,
            paused=spec.paused,
            is_sized=spec.segments.desired is not None,
            engine=engine_of(spec, backend),
            topic=topic,
            layout=state.layout,
            clocks=state.clocks,
            connection=connection_of(body),
            handle=handle,
            backend=backend,
        )


class AutoScaler:
    """Decides every so often, and soon after consumers have come or gone.

    Args:
        policies: say what applies.
        loads: samples of the brokers.
        consumers: counts of them.
        metrics: tell of decisions.
        interval_seconds: between two decisions on a topic.
        max_records: of a layout; nothing is split or merged automatically at 80 % of it (R29).
    """

    def __init__(
        self,
        policies: Policies,
        loads: Loads,
        consumers: ConsumerCounts,
        metrics: ScalingMetrics,
        interval_seconds: float,
        max_records: int,
    ) -> None:
        self._policies = policies
        self._loads = loads
        self._consumers = consumers
        self._metrics = metrics
        self._interval_seconds = interval_seconds
        self._most_records = int(max_records * _SHARE_OF_RECORDS)

    def is_due(self, memory: ScaleMemory) -> bool:
        """Whether a decision is to be made."""
        return time.monotonic() >= memory.due

    def put_off(self, memory: ScaleMemory) -> None:
        """Nothing can be decided now: look again in a while."""
        memory.due = time.monotonic() + self._interval_seconds

    def acted(self, memory: ScaleMemory, *, succeeded: bool) -> None:
        """What was decided has been done, or has failed: then it is tried again later and later.

        What can wait holds nothing else back: it is tried again after another window.
        """
        if not succeeded and memory.decision is not None and memory.decision.can_wait:
            memory.demand = Demand()
            return
        memory.failures = 0 if succeeded else memory.failures + 1
        if memory.failures:
            pause_seconds = min(_MOST_PAUSE_SECONDS, self._interval_seconds * 2**memory.failures)
            memory.due = time.monotonic() + pause_seconds

    async def look(self, subject: Subject, memory: ScaleMemory) -> Decision:
        """Decide on a topic as it is now, and note when to do so again."""
        started = time.monotonic()
        policy = memory.policy = self._policies.effective(subject.key, subject.body)
        # Load is for autoscalers of consumers, too, so it is kept where nothing is done automatically.
        config = policy.config or AutoScaleConfig()
        if self._loads.is_silent(subject.connection):
            await self._ask_for(subject, memory, config)
        elif (sample := self._loads.sample(subject.connection)) is not None:
            self._take(sample, subject, memory, config)
        now_ms = time.time_ns() // 1_000_000
        memory.demand = memory.demand.seen(
            max(self._consumers.of(subject.key).values(), default=0),
            now_ms,
            window_seconds=config.rebucket_down_window_seconds,
            most_gap_seconds=self._most_gap_seconds(subject),
        )
        stale = memory.load.why_stale(now_ms, self._sample_seconds(subject))
        self._show(subject, memory.load, is_known=not stale)
        decision = self._why_off(subject, policy, memory.hindrance)
        if decision is not None or not stale:
            memory.stale_since_ms = None
        elif memory.stale_since_ms is None:
            memory.stale_since_ms = now_ms
        if decision is None:
            decision = self._decide(subject, memory, config, now_ms, stale)
        is_first = memory.decision is None
        memory.decision, memory.decided_at_ms, memory.pending = decision, now_ms, decision.action is not None
        memory.due = started + self._next_seconds(decision, now_ms, is_first)
        self._metrics.decided(str(subject.topic), decision, time.monotonic() - started)
        return decision

    def aspects(self, status: Mapping[str, Any], memory: ScaleMemory) -> tuple[Aspect, ...]:
        """The conditions AutoScale and LoadFresh, as of the last decision; `status` is what they were.

        Their reason is a word, never a number, and changes every few minutes at most (R29): a load that lingers at a
        threshold costs no writes, nor does one that is not known for a moment, as after a change of leader (R7).
        """
        decision = memory.decision
        if decision is None:
            return ()
        since_ms = memory.stale_since_ms
        is_stale = since_ms is not None and memory.decided_at_ms - since_ms >= _STALE_SHOWN_SECONDS * 1000
        message = "brokers' statistics are missing or too old to act on; nothing is split or merged meanwhile"
        load_fresh = Aspect("LoadFresh", False if is_stale else None, "LoadStale", message)
        reason = _camel_case(decision.code)
        if decision.code in _OFF_CODES:
            memory.shown = None
            return Aspect(AUTO_SCALE, False, reason, decision.findings[0].why), load_fresh
        if decision.code == _BROKERS:
            memory.shown = None
            return Aspect(AUTO_SCALE, True, reason, decision.findings[0].why), load_fresh
        now = time.monotonic()
        if memory.shown is None and holds(status, AUTO_SCALE):
            memory.shown = find_condition(status, AUTO_SCALE)["reason"], now
        is_known = decision.code not in _UNKNOWN_CODES or is_stale
        is_due = memory.shown is None or (memory.shown[0] != reason and now - memory.shown[1] > _SHOWN_SECONDS)
        if is_known and is_due:
            memory.shown = reason, now
        if memory.shown is None:
            return (load_fresh,)
        return Aspect(AUTO_SCALE, True, memory.shown[0], _ON_MESSAGE), load_fresh

    def has_news(self, status: Mapping[str, Any], memory: ScaleMemory) -> bool:
        """Whether the conditions of a status are to be written anew."""
        for aspect in self.aspects(status, memory):
            shown = find_condition(status, aspect.kind)
            wanted = None if aspect.holds is None else str(aspect.holds)
            if shown.get("status") != wanted:
                return True
            if wanted is not None and (shown["reason"], shown["message"]) != (aspect.reason, clean(aspect.message)):
                return True
        return False

    def _decide(
        self, subject: Subject, memory: ScaleMemory, config: AutoScaleConfig, now_ms: int, stale: str
    ) -> Decision:
        return decide(
            Situation(
                layout=subject.layout,
                loads=memory.load.records,
                consumers=self._consumers.of(subject.key),
                config=_possible(config, subject.backend),
                clocks=subject.clocks,
                now_ms=now_ms,
                demand=memory.demand,
                spare_records=self._most_records // 2 - len(subject.layout.segments),
                stale=stale,
            )
        )

    def _show(self, subject: Subject, load: TopicLoad, *, is_known: bool) -> None:
        """Show the load as metrics. What is not known any more is taken away, not left as it was; so are sums while a
        segment is not known, as for a moment after a split: what goes by them would take a part for the whole.
        """
        topic, layout = str(subject.topic), subject.layout
        is_whole = is_known and all(segment.segment_id in load.records for segment in layout.active)
        self._metrics.show_segments(topic, load.records if is_known else {})
        self._metrics.show_topic(
            topic,
            (subject.key.namespace, subject.key.name),
            parallelism=useful_parallelism(layout),
            rates=load.total if is_whole else None,
            backlog=load.backlog if is_whole else {},
        )

    async def _ask_for(self, subject: Subject, memory: ScaleMemory, config: AutoScaleConfig) -> None:
        """Ask for each segment by itself, which is left out of a topic that is paused: it is many calls."""
        if subject.handle.problem or subject.paused:
            return
        names = {segment_id: segment.topic for segment_id, segment in self._sampled(subject).items()}
        interval_seconds = self._sample_seconds(subject)
        try:
            if subject.backend == NATIVE:
                scalable = subject.handle.admin.scalable
                sample = await sample_native_topic(scalable, subject.topic, names, memory.sampling, interval_seconds)
            else:
                topics = subject.handle.admin.topics
                sample = await sample_topic(topics, names.values(), memory.sampling, interval_seconds)
        except BackendError as error:
            logger.info("%s: its load is not known: %s", subject.topic, error)
        else:
            self._take(sample, subject, memory, config)

    def _take(self, sample: LoadSample, subject: Subject, memory: ScaleMemory, config: AutoScaleConfig) -> None:
        segments = self._sampled(subject)
        memory.load.take(sample, segments, config, self._most_gap_seconds(subject))

    def _sampled(self, subject: Subject) -> Mapping[int, SampledSegment]:
        return sampled_segments(subject.topic, subject.layout, subject.backend)

    def _most_gap_seconds(self, subject: Subject) -> float:
        """How far apart the samples of two decisions may be, for what lay between to be taken for more of the same."""
        return _ROUNDS_MISSED * max(self._interval_seconds, self._sample_seconds(subject))

    def _sample_seconds(self, subject: Subject) -> float:
        """Time between two samples of the topic."""
        seconds = float(subject.handle.spec.load.interval_seconds)
        return max(seconds, self._interval_seconds) if self._loads.is_silent(subject.connection) else seconds

    def _why_off(self, subject: Subject, policy: EffectivePolicy, hindrance: str) -> Decision | None:
        """Why nothing is decided, as a decision; None if something is."""
        layout = subject.layout
        if subject.paused:
            return _off("paused", "spec.paused is true")
        if subject.is_sized:
            return _off("desired-set", "spec.segments.desired is set, so nothing is split or merged automatically")
        if policy.config is None:
            return _off("invalid-policy", policy.problem)
        if not policy.config.enabled:
            return _off("disabled", f"enabled is false: {policy.origins.get('enabled', 'default')}")
        if hindrance:
            return _off("not-in-force", hindrance)
        if subject.engine is Engine.BROKER:
            return _off(_BROKERS, "the brokers split and merge by themselves; autoScale.engine: Operator changes that")
        if len(layout.segments) >= self._most_records:
            return _off(
                "layout-full",
                f"the layout holds {len(layout.segments)} segments, {len(layout.sealed)} of them sealed; automatic "
                f"operations stop at {self._most_records} until sealed segments are drained and pruned",
            )
        return None

    def _next_seconds(self, decision: Decision, now_ms: int, is_first: bool) -> float:
        # Spread, so that a fleet that started together is not decided on together for ever.
        seconds = self._interval_seconds * random.uniform(0.9, 1.0)
        if is_first:
            seconds *= random.random()
        if decision.look_again_at_ms is not None:
            seconds = min(seconds, max(0.0, (decision.look_again_at_ms - now_ms) / 1000))
        return seconds


def useful_parallelism(layout: SegmentLayout) -> int:
    """How many ordered consumers of one subscription a topic can employ (pip-486)."""
    return sum(segment.buckets for segment in layout.active)


def sampled_segments(topic: TopicName, layout: SegmentLayout, backend: str) -> Mapping[int, SampledSegment]:
    """The active segments as samples name them."""
    return {
        one.segment_id: SampledSegment(segment_topic(backend, topic, one), one.created_at_ms) for one in layout.active
    }


def _possible(config: AutoScaleConfig, backend: str) -> AutoScaleConfig:
    """What can be done: brokers split in two only."""
    return replace(config, max_fanout=2) if backend == NATIVE else config


def _camel_case(code: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in code.split("-"))


def _off(code: str, why: str) -> Decision:
    return Decision(None, (Finding(Rule.ENABLED, False, code, why),))
