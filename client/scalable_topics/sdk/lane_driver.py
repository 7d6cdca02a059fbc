"""Carries out what a `SendPlan` decides with producers of pulsar-client, and brings the outcomes back."""

from __future__ import annotations

import asyncio
import functools
import random
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

import pulsar

from scalable_topics.layout import TopicName
from scalable_topics.sdk import pulsar_binding
from scalable_topics.sdk.arrivals import Arrivals, call_in_loop
from scalable_topics.sdk.batch_counts import count_batches
from scalable_topics.sdk.batch_flushing import BatchFlushing
from scalable_topics.sdk.blocking_calls import BlockingCalls
from scalable_topics.sdk.effects import (
    CloseProducer,
    Effect,
    FlushProducer,
    Forgotten,
    HandOver,
    OpenProducer,
    Outcome,
    ReadTail,
    RetryLater,
    Stored,
    Undecidable,
)
from scalable_topics.sdk.errors import ClientError, SendError, SendOutcomeUnknownError
from scalable_topics.sdk.layout_message import LayoutMessage
from scalable_topics.sdk.options import ConnectionOptions, ProducerOptions
from scalable_topics.sdk.outgoing_message import Completions, OutgoingMessage
from scalable_topics.sdk.segment_connections import SegmentConnections
from scalable_topics.sdk.segment_lane import SegmentLane, Send
from scalable_topics.sdk.send_plan import SendPlan
from scalable_topics.sdk.tail_reader import TailQuestion, TailUnreadableError, last_stored_sequence_id

_HAND_OVER_AT_ONCE = 200
_LEAST_RETRY_SECONDS = 0.1
_MOST_RETRY_SECONDS = 10.0
_TAIL_SECONDS = 20.0
_TAIL_ATTEMPTS = 5
_CLOSE_FIRST_SECONDS = 0.2
"""How long a producer that is to be opened waits at most for those that are being closed."""
_LOOK_SECONDS = 0.005
"""How long the outcome of a send may wait for those of sends that were handed over after it."""


class LaneDriver:
    """The I/O of one producer object.

    Args:
        topic: what the errors are about.
        plan: decides.
        connections: for the producers.
        connection: how Pulsar is reached, for reading tails.
        options: of the producer.
        schema: of the producer.
        threads: for blocking calls.
        tell: tells the application the outcome of a send.
        release: gives the room of a send back.
        finish: does both for many sends that were stored.
        is_flushing: whether somebody waits for what is on its way, so that no batch waits for company.
        refused: called when a segment is found terminated.
    """

    def __init__(
        self,
        topic: TopicName,
        plan: SendPlan,
        *,
        connections: SegmentConnections,
        connection: ConnectionOptions,
        options: ProducerOptions,
        schema: Any,
        threads: BlockingCalls,
        tell: Callable[[Send, ClientError | None], None],
        release: Callable[[Send], None],
        finish: Callable[[Sequence[Send]], None],
        is_flushing: Callable[[], bool],
        refused: Callable[[], None],
    ) -> None:
        self._topic = topic
        self._plan = plan
        self._connections = connections
        self._connection = connection
        self._options = options
        self._schema = schema
        self._threads = threads
        self._tell = tell
        self._release = release
        self._finish = finish
        self._is_flushing = is_flushing
        self._tell_refused = refused
        self._flushing = BatchFlushing()
        self._loop = asyncio.get_running_loop()
        self.completions: Completions = Arrivals(self._loop, self._take_completions)
        """Where messages report their outcomes."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._openings: set[asyncio.Task[None]] = set()
        self._closings: dict[SegmentLane, set[asyncio.Task[None]]] = {}
        self._hold_timer: asyncio.TimerHandle | None = None
        self._look_timer: asyncio.TimerHandle | None = None
        self._trouble: dict[SegmentLane, Exception] = {}

    @property
    def lanes(self) -> tuple[SegmentLane, ...]:
        """The plan's lanes."""
        return self._plan.lanes

    @property
    def trouble(self) -> Exception | None:
        """Why a producer could not be opened or a tail not be read, of a lane that still waits for it."""
        if not self._trouble:
            return None
        lanes = set(self._plan.lanes)
        self._trouble = {lane: error for lane, error in self._trouble.items() if lane in lanes}
        return next(iter(self._trouble.values()), None)

    def submit(self, send: OutgoingMessage) -> None:
        """Send a message, or have it wait its turn."""
        lane = self._plan.submit(send)
        if lane is None:
            self._act()
        else:
            send.hand_over(lane.producer)
            if self._look_timer is None:
                self._look_later()

    def follow(self, message: LayoutMessage) -> None:
        """Follow a message of the layout topic."""
        self._plan.follow(message, self._loop.time())
        self._act()

    def flush(self) -> None:
        """Send all batches now. Does not wait."""
        for lane in self._plan.lanes:
            if lane.inflight:
                self._flush(lane)

    async def open_ahead(self) -> None:
        """Open the producers of all active segments. Raises what pulsar-client does, for the first that failed."""
        self._plan.open_ahead()
        self._act()
        while self._openings:
            await asyncio.gather(*self._openings)
        if self.trouble is not None:
            raise self.trouble

    async def close(self) -> None:
        """Close all producers."""
        self._plan.close()
        for timer in (self._hold_timer, self._look_timer):
            if timer is not None:
                timer.cancel()
        self._act()
        for task in self._tasks - self._openings - self._being_closed():
            task.cancel()
        # What is being opened is awaited, since it is closed only when it is there.
        while unfinished := self._openings | self._being_closed():
            await asyncio.gather(*unfinished, return_exceptions=True)

    def _being_closed(self) -> set[asyncio.Task[None]]:
        return {task for tasks in self._closings.values() for task in tasks}

    def _act(self) -> None:
        while effects := self._plan.take_effects():
            for effect in effects:
                self._carry_out(effect)
        self._watch_hold()

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case HandOver(lane):
                self._hand_over(lane)
            case Stored(send):
                self._tell(send, None)
                self._release(send)
            case Forgotten(send):
                self._release(send)
            case OpenProducer(lane, generation):
                task = self._start(self._open(lane, generation))
                self._openings.add(task)
                task.add_done_callback(self._openings.discard)
            case CloseProducer(lane, producer):
                task = self._start(self._close(lane.segment.topic, producer))
                self._closings.setdefault(lane, set()).add(task)
                task.add_done_callback(functools.partial(self._closed, lane))
            case FlushProducer(lane):
                self._flush(lane)
            case RetryLater(lane, failures):
                self._start(self._retry(lane, failures))
            case ReadTail(lane, inquiry):
                self._start(self._read_tail(lane, inquiry))
            case Undecidable(send):
                segment_id = "?" if send.lane is None else send.lane.key.segment_id
                why = f"segment {segment_id} was sealed or lost its producer, and its tail could not be read"
                text = f"it is not known whether a message to {self._topic} is stored: {why}"
                self._tell(send, SendOutcomeUnknownError(text))
                self._release(send)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _closed(self, lane: SegmentLane, task: asyncio.Task[None]) -> None:
        self._closings[lane].discard(task)
        if not self._closings[lane]:
            del self._closings[lane]

    def _hand_over(self, lane: SegmentLane) -> None:
        if not lane.may_take:
            return
        taken = lane.take(_HAND_OVER_AT_ONCE)
        for send in taken:
            cast("OutgoingMessage", send).hand_over(lane.producer)
        if taken and self._look_timer is None:
            self._look_later()
        if len(taken) == _HAND_OVER_AT_ONCE:
            # The rest in the loop's next round, so that a long queue does not keep it.
            self._loop.call_soon(self._hand_over, lane)
        else:
            # They have waited long enough to wait for company now.
            self._flush(lane)

    def _look_later(self) -> None:
        self._look_timer = self._loop.call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._look_timer = None
        if self.completions.items:
            self._take_completions()
        if self._look_timer is None and any(lane.inflight for lane in self._plan.lanes):
            self._look_later()

    def _take_completions(self) -> None:
        completions = self.completions.items
        acknowledged: list[tuple[Send, int, Any]] = []
        failed: list[tuple[Send, int, Any]] = []
        for _ in range(len(completions)):
            message, attempt, result, position = completions.popleft()
            if result.value:
                failed.append((message, attempt, result))
            else:
                acknowledged.append((message, attempt, position))
        stored = self._plan.acknowledged(acknowledged)
        self._finish(stored)
        count_batches(stored)
        for send, attempt, result in failed:
            self._failed(send, attempt, result)
        self._act()
        if self._is_flushing():
            self.flush()

    def _failed(self, send: Send, attempt: int, result: Any) -> None:
        outcome = pulsar_binding.outcome_of(result)
        is_news = self._plan.send_failed(send, attempt, outcome)
        if is_news and outcome is Outcome.REFUSED:
            self._tell_refused()
        elif is_news and outcome is Outcome.REJECTED:
            why = pulsar_binding.result_name(result)
            self._tell(send, SendError(f"a message to {self._topic} cannot be stored: {why}"))
            self._release(send)

    async def _open(self, lane: SegmentLane, generation: int) -> None:
        if self._closings:
            # A leader may wait for what is being closed.
            await asyncio.wait(self._being_closed(), timeout=_CLOSE_FIRST_SECONDS)
        lane.opened_at_ms = int(time.time() * 1000)
        topic, name = lane.segment.topic, lane.producer_name
        client = self._connections.acquire(topic)
        try:
            producer = await self._threads.run(self._options.create, client, topic, name, self._schema)
        except pulsar.PulsarException as error:
            self._connections.release(topic)
            terminated = isinstance(error, pulsar.TopicTerminated)
            if terminated:
                self._tell_refused()
            else:
                self._trouble[lane] = error
            self._plan.producer_failed(lane, generation, terminated=terminated)
        else:
            self._trouble.pop(lane, None)
            self._plan.producer_opened(lane, generation, pulsar_binding.AttachedProducer(producer))
        self._act()

    async def _close(self, topic: str, producer: pulsar_binding.AttachedProducer) -> None:
        closed = asyncio.Event()
        producer.close(lambda _: call_in_loop(self._loop, closed.set))
        await closed.wait()
        self._connections.release(topic)

    def _flush(self, lane: SegmentLane) -> None:
        if lane.producer is not None:
            self._flushing.flush(lane.producer)

    async def _retry(self, lane: SegmentLane, failures: int) -> None:
        longest = min(_LEAST_RETRY_SECONDS * 2 ** min(failures, 10), _MOST_RETRY_SECONDS)
        await asyncio.sleep(random.uniform(longest / 2, longest))
        self._plan.retry(lane)
        self._act()

    async def _read_tail(self, lane: SegmentLane, inquiry: int) -> None:
        await asyncio.gather(*self._closings.get(lane, ()), return_exceptions=True)
        last: int | None = None
        for attempt in range(1, _TAIL_ATTEMPTS + 1):
            question = TailQuestion(
                lane.segment.topic, lane.producer_name, lane.last_position, lane.last_acknowledged_id, lane.opened_at_ms
            )
            try:
                last = await self._threads.run(last_stored_sequence_id, self._connection, question, _TAIL_SECONDS)
                self._trouble.pop(lane, None)
                break
            except TailUnreadableError as error:
                self._trouble[lane] = error
                await asyncio.sleep(random.uniform(0.5, 1.0) * attempt)
        self._plan.tail_read(lane, inquiry, last)
        self._act()

    def _watch_hold(self) -> None:
        until = self._plan.hold_until
        if self._hold_timer is not None and self._hold_timer.when() != until:
            self._hold_timer.cancel()
            self._hold_timer = None
        if until is not None and self._hold_timer is None:
            self._hold_timer = self._loop.call_at(until, self._end_hold)

    def _end_hold(self) -> None:
        self._hold_timer = None
        self._plan.on_time(self._loop.time())
        self._act()
