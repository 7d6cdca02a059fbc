"""The admin client, for asyncio."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

from scalable_topics.admin import answers
from scalable_topics.admin import rest_operations as rest
from scalable_topics.admin.errors import AdminError, ConflictError, NotFoundError, UnavailableError
from scalable_topics.admin.outcome import Awaited, OperationName, Outcome, OutcomeState, SegmentOperation
from scalable_topics.admin.policy import AutoScalePolicy, EffectivePolicy
from scalable_topics.admin.requests import (
    QueryValue,
    Request,
    descriptor_of,
    make_request,
    namespace_path,
    positions_json,
    topic_path,
)
from scalable_topics.admin.transport import Answer, Transport
from scalable_topics.admin.values import (
    Explanation,
    InitialPosition,
    SegmentCursor,
    Subscription,
    SubscriptionType,
    TopicRecord,
    TopicStats,
)
from scalable_topics.layout import Segment, TopicName, segment_from_pip468
from scalable_topics.layout.json_fields import MALFORMED
from scalable_topics.sdk.checkpoint import Checkpoint
from scalable_topics.sdk.gateway_options import GatewayOptions

T = TypeVar("T")

DEFAULT_TIMEOUT_SECONDS = 120.0
"""Longer than the gateway itself waits for what it was asked to do."""

DEFAULT_WAIT_SECONDS = 300.0

_MOST_QUOTED = 500
_OPERATION_HEADER = "X-Scalable-Topics-Operation"
_LOOK_SECONDS = 1.0
# Of a topic that is declared and has no layout.
_NOT_MADE_YET = 503


class AdminClient:
    """Manages scalable topics through the gateway of the operator (pip-468, 475 and 483; docs/reference/rest.md).

    Topics are named as everywhere in this library (`topic://t/ns/x`, `t/ns/x`, or `x` for `public/default/x`), Pulsar
    namespaces as `tenant/namespace`. Close it, or use it as an asynchronous context manager.

    Every method raises `AdminError`: `NotFoundError`, `NotAllowedError`, `ConflictError`, `UnavailableError`, or the
    class itself for what is wrong with the request; and `LayoutArgumentError`, a `ValueError`, for impossible names.
    What only reads is repeated where nobody answers; what writes, only where nothing was begun.

    Writes answer an `Outcome`: done, or still running after the 30 s that the gateway waits; `wait` waits on. With
    `dry_run` nothing is changed, and the outcome carries a plan. `ttl_seconds_after_finished` (0 to 31,536,000) has
    the SegmentOperation deleted so long after its end; it is kept otherwise.

    Args:
        gateway: how the gateway is reached; `connection` says which cluster is meant where several have a topic.
        timeout_seconds: of one call, its repetitions included; above 0.

    Raises:
        ValueError: the timeout is out of range.
    """

    def __init__(self, gateway: GatewayOptions, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        if not timeout_seconds > 0:
            raise ValueError(f"timeout_seconds is {timeout_seconds}; it must be above 0")
        self._connection = gateway.connection
        self._transport = Transport(gateway, timeout_seconds)

    async def list_topics(
        self, namespace: str, *, properties: Mapping[str, str] | None = None
    ) -> tuple[TopicName, ...]:
        """The scalable topics of a Pulsar namespace, sorted; with `properties` those that have all of these."""
        query = {"property": [f"{name}={value}" for name, value in (properties or {}).items()]}
        return await self._read(answers.topic_names, self._request(rest.LIST_TOPICS, namespace_path(namespace), query))

    async def create_topic(
        self, topic: str, *, segments: int = 1, properties: Mapping[str, str] | None = None
    ) -> Outcome:
        """Create a scalable topic with 1 to 256 initial segments and at most 64 properties."""
        name = TopicName.parse(topic)
        body = dict(properties) if properties else None
        request = self._request(rest.CREATE_TOPIC, topic_path(name), {"numInitialSegments": segments}, body)
        return await self._write(request, name, Awaited.TOPIC_READY)

    async def get_topic(self, topic: str) -> TopicRecord:
        """The record of a topic: its layout, properties and policy override."""
        name = TopicName.parse(topic)
        return await self._read(
            lambda body: answers.topic_record(name, body), self._request(rest.GET_TOPIC, topic_path(name))
        )

    async def delete_topic(self, topic: str, *, force: bool = False) -> Outcome:
        """Delete a topic with all its segments; with `force` although clients are attached."""
        name = TopicName.parse(topic)
        request = self._request(rest.DELETE_TOPIC, topic_path(name), {"force": force})
        return await self._write(request, name, Awaited.TOPIC_GONE)

    async def get_stats(self, topic: str) -> TopicStats:
        """Rates, storage and backlogs of a topic and its segments."""
        return await self._read(answers.topic_stats, self._of_topic(rest.GET_STATS, topic))

    async def explain(self, topic: str) -> Explanation:
        """The last automatic decision, and what each rule found."""
        return await self._read(answers.explanation, self._of_topic(rest.EXPLAIN, topic))

    async def split_segment(
        self,
        topic: str,
        segment_id: int,
        *,
        at: int | None = None,
        into: int | None = None,
        dry_run: bool = False,
        ttl_seconds_after_finished: int | None = None,
    ) -> Outcome:
        """Split a segment in two halves, at the hash `at` (1 to 65,535), or `into` 2 to 64 equal parts."""
        query = {"at": at, "into": into}
        more = {"segmentId": segment_id}
        return await self._operate(rest.SPLIT, topic, more, query, dry_run, ttl_seconds_after_finished)

    async def merge_segments(
        self,
        topic: str,
        segment_id_1: int,
        segment_id_2: int,
        *further_ids: int,
        dry_run: bool = False,
        ttl_seconds_after_finished: int | None = None,
    ) -> Outcome:
        """Merge two or more neighbouring segments."""
        more = {"segmentId1": segment_id_1, "segmentId2": segment_id_2}
        query = {"segmentId": further_ids}
        return await self._operate(rest.MERGE, topic, more, query, dry_run, ttl_seconds_after_finished)

    async def rebucket_segment(
        self,
        topic: str,
        segment_id: int,
        buckets: int,
        *,
        dry_run: bool = False,
        ttl_seconds_after_finished: int | None = None,
    ) -> Outcome:
        """Roll a segment over to one of the same range with 1 to 1,024 entry buckets (pip-486)."""
        more, query = {"segmentId": segment_id}, {"buckets": buckets}
        return await self._operate(rest.REBUCKET, topic, more, query, dry_run, ttl_seconds_after_finished)

    async def migrate(
        self,
        topic: str,
        *,
        force: bool = False,
        dry_run: bool = False,
        ttl_seconds_after_finished: int | None = None,
    ) -> Outcome:
        """Make an ordinary topic, partitioned or not, a scalable one (pip-475). This cannot be taken back.

        It takes a SegmentOperation where a ScalableTopic declares the topic; else a ScalableTopic is made.

        Args:
            topic: its name.
            force: whether clients that do not know scalable topics are cut off; it is refused while they are attached
                otherwise.
            dry_run: change nothing; the plan tells what would be carried over, and what is in the way.
            ttl_seconds_after_finished: see above.
        """
        outcome = await self._operate(rest.MIGRATE, topic, {}, {"force": force}, dry_run, ttl_seconds_after_finished)
        return outcome if outcome.operation is not None else replace(outcome, awaited=Awaited.TOPIC_READY)

    async def get_operation(self, topic: str, operation: OperationName) -> SegmentOperation:
        """A SegmentOperation of a topic, as it stands."""
        request = self._of_topic(rest.GET_OPERATION, topic, operation=operation.name)
        return await self._read(answers.segment_operation, request)

    async def create_subscription(
        self,
        topic: str,
        subscription: str,
        *,
        type: SubscriptionType = SubscriptionType.STREAM,
        initial_position: InitialPosition = InitialPosition.EARLIEST,
    ) -> Outcome:
        """Create a subscription with a cursor on every segment; one that is there already is kept."""
        query = {"type": type.value, "initialPosition": initial_position.value}
        request = self._of_topic(rest.CREATE_SUBSCRIPTION, topic, query, subscription=subscription)
        return await self._write(request, TopicName.parse(topic), Awaited.SUBSCRIPTION_ACTIVE, subscription)

    async def delete_subscription(self, topic: str, subscription: str, *, force: bool = False) -> Outcome:
        """Delete a subscription with its cursors; with `force` although consumers are attached."""
        request = self._of_topic(rest.DELETE_SUBSCRIPTION, topic, {"force": force}, subscription=subscription)
        return await self._write(request, TopicName.parse(topic), Awaited.SUBSCRIPTION_GONE, subscription)

    async def get_subscriptions(self, topic: str) -> tuple[Subscription, ...]:
        """The subscriptions that are declared or were asked for; others are in the topic's stats."""
        return await self._read(answers.subscriptions, self._of_topic(rest.LIST_SUBSCRIPTIONS, topic))

    async def get_subscription(self, topic: str, subscription: str) -> Subscription:
        """One subscription; of an ordered one with who reads what."""
        request = self._of_topic(rest.GET_SUBSCRIPTION, topic, subscription=subscription)
        return await self._read(answers.subscription, request)

    async def seek(
        self,
        topic: str,
        subscription: str,
        timestamp_ms: int,
        *,
        dry_run: bool = False,
        ttl_seconds_after_finished: int | None = None,
    ) -> Outcome:
        """Move a subscription to a time, in milliseconds since 1970, on every segment."""
        more, query = {"subscription": subscription}, {"timestamp": timestamp_ms}
        return await self._operate(rest.SEEK, topic, more, query, dry_run, ttl_seconds_after_finished)

    async def skip_all(
        self,
        topic: str,
        subscription: str,
        *,
        dry_run: bool = False,
        ttl_seconds_after_finished: int | None = None,
    ) -> Outcome:
        """Skip everything that a subscription has not acknowledged, on every segment."""
        more = {"subscription": subscription}
        return await self._operate(rest.SKIP_ALL, topic, more, {}, dry_run, ttl_seconds_after_finished)

    async def restore(
        self,
        checkpoint: Checkpoint,
        *,
        allow_gaps: bool = False,
        dry_run: bool = False,
        ttl_seconds_after_finished: int | None = None,
    ) -> Outcome:
        """Move a checkpoint group to where a checkpoint was taken, on every segment (pip-460, R22).

        What had been received before the checkpoint is not delivered again, and everything behind it is, through
        whatever splits and merges have come since. Consumers of the group let go of their segments first.

        Args:
            checkpoint: of all consumers of the group together (`Checkpoint.merged`); cursors of segments that it tells
                nothing of stay where they are.
            allow_gaps: whether to go on where messages behind a position may be gone, which is an error otherwise.
            dry_run: change nothing.
            ttl_seconds_after_finished: see above.

        Raises:
            ValueError: the checkpoint is empty.
        """
        if not checkpoint.positions:
            raise ValueError(f"the checkpoint of group {checkpoint.group} has no positions")
        more, query, body = {"subscription": checkpoint.group}, {"allowGaps": allow_gaps}, positions_json(checkpoint)
        return await self._operate(
            rest.RESTORE, checkpoint.topic, more, query, dry_run, ttl_seconds_after_finished, body
        )

    async def get_auto_scale_policy(self, topic: str) -> AutoScalePolicy | None:
        """The override of a topic; None if it has none."""
        return await self._read(_policy, self._of_topic(rest.GET_TOPIC_POLICY, topic))

    async def set_auto_scale_policy(self, topic: str, policy: AutoScalePolicy) -> None:
        """Set the override of a topic, in place of the one before."""
        await self._send(self._request(rest.SET_TOPIC_POLICY, topic_path(TopicName.parse(topic)), {}, policy.to_json()))

    async def remove_auto_scale_policy(self, topic: str) -> None:
        """Remove the override of a topic."""
        await self._send(self._of_topic(rest.REMOVE_TOPIC_POLICY, topic))

    async def get_namespace_auto_scale_policy(self, namespace: str) -> AutoScalePolicy | None:
        """The override of a Pulsar namespace; None if it has none."""
        return await self._read(_policy, self._request(rest.GET_NAMESPACE_POLICY, namespace_path(namespace)))

    async def set_namespace_auto_scale_policy(self, namespace: str, policy: AutoScalePolicy) -> None:
        """Set the override of a Pulsar namespace, in place of the one before."""
        path = namespace_path(namespace)
        await self._send(self._request(rest.SET_NAMESPACE_POLICY, path, {}, policy.to_json()))

    async def remove_namespace_auto_scale_policy(self, namespace: str) -> None:
        """Remove the override of a Pulsar namespace."""
        await self._send(self._request(rest.REMOVE_NAMESPACE_POLICY, namespace_path(namespace)))

    async def get_effective_policy(self, topic: str) -> EffectivePolicy:
        """Every knob that applies to a topic, and the level that gave it."""
        return await self._read(answers.effective_policy, self._of_topic(rest.GET_EFFECTIVE_POLICY, topic))

    async def get_segments(self, topic: str) -> tuple[Segment, ...]:
        """The segments of a topic, active and sealed, by id."""
        return tuple((await self.get_topic(topic)).layout.segments.values())

    async def get_segment(self, topic: str, segment: Segment | str) -> Segment:
        """One segment, given as `hhhh-hhhh-id` or as a layout has it."""
        return await self._read(segment_from_pip468, self._of_segment(rest.GET_SEGMENT, topic, segment))

    async def get_segment_subscriptions(self, topic: str, segment: Segment | str) -> Mapping[str, SegmentCursor]:
        """The cursors of a segment by subscription, as its broker shows them now."""
        request = self._of_segment(rest.GET_SEGMENT_SUBSCRIPTIONS, topic, segment)
        return await self._read(answers.segment_cursors, request)

    async def get_segment_backlog(self, topic: str, segment: Segment | str, subscription: str) -> int:
        """Entries of a segment that a subscription has not acknowledged."""
        request = self._of_segment(rest.GET_SEGMENT_BACKLOG, topic, segment, subscription=subscription)
        return await self._read(answers.segment_backlog, request)

    async def create_segment(self, topic: str, segment: Segment | str) -> None:
        """Of pip-468, and the operator's alone: raises NotAllowedError, which says what to do instead."""
        await self._send(self._of_segment(rest.CREATE_SEGMENT, topic, segment))

    async def terminate_segment(self, topic: str, segment: Segment | str) -> None:
        """Of pip-468, and the operator's alone: raises NotAllowedError, which says what to do instead."""
        await self._send(self._of_segment(rest.TERMINATE_SEGMENT, topic, segment))

    async def delete_segment(self, topic: str, segment: Segment | str) -> None:
        """Of pip-468, and the operator's alone: raises NotAllowedError, which says what to do instead."""
        await self._send(self._of_segment(rest.DELETE_SEGMENT, topic, segment))

    async def wait(self, outcome: Outcome, timeout_seconds: float = DEFAULT_WAIT_SECONDS) -> Outcome:
        """Wait until what was still running is done; answers its outcome. Others are answered as they are.

        Raises:
            UnavailableError: it has not ended in time; it goes on.
            ConflictError: it has failed; the reason says why.
        """
        if outcome.state is not OutcomeState.RUNNING:
            return outcome
        deadline = time.monotonic() + timeout_seconds
        while not await self._has_ended(outcome):
            if time.monotonic() >= deadline:
                raise UnavailableError(f"not ended within {timeout_seconds:g} s, and goes on: {outcome.reason}")
            await asyncio.sleep(random.uniform(0.5, 1.0) * _LOOK_SECONDS)
        return Outcome(outcome.topic, outcome.awaited, OutcomeState.DONE, outcome.subscription, outcome.operation)

    async def close(self) -> None:
        """Close the connections. Nothing can be asked any more."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _request(
        self,
        operation: rest.RestOperation,
        path: Mapping[str, str | int],
        query: Mapping[str, QueryValue] | None = None,
        body: Any = None,
    ) -> Request:
        return make_request(operation, path, {**(query or {}), "connection": self._connection}, body)

    def _of_topic(
        self,
        operation: rest.RestOperation,
        topic: str,
        query: Mapping[str, QueryValue] | None = None,
        /,
        **more: str | int,
    ) -> Request:
        return self._request(operation, topic_path(TopicName.parse(topic), **more), query)

    def _of_segment(
        self, operation: rest.RestOperation, topic: str, segment: Segment | str, **more: str | int
    ) -> Request:
        return self._request(operation, topic_path(TopicName.parse(topic), descriptor=descriptor_of(segment), **more))

    async def _send(self, request: Request) -> Answer:
        return await self._transport.send(request)

    async def _read(self, read: Callable[[Any], T], request: Request) -> T:
        return _understood(read, (await self._send(request)).body)

    async def _operate(
        self,
        operation: rest.RestOperation,
        topic: str,
        more: Mapping[str, str | int],
        query: Mapping[str, QueryValue],
        dry_run: bool,
        ttl_seconds_after_finished: int | None,
        body: Any = None,
    ) -> Outcome:
        """Ask for a SegmentOperation."""
        name = TopicName.parse(topic)
        asked = {**query, "dryRun": dry_run, "ttlSecondsAfterFinished": ttl_seconds_after_finished}
        request = self._request(operation, topic_path(name, **more), asked, body)
        subscription = more.get("subscription")
        return await self._write(
            request, name, Awaited.OPERATION_ENDED, None if subscription is None else str(subscription)
        )

    async def _write(
        self, request: Request, topic: TopicName, awaited: Awaited, subscription: str | None = None
    ) -> Outcome:
        answer = await self._send(request)
        return _understood(lambda body: _outcome(answer, body, topic, awaited, subscription), answer.body)

    async def _has_ended(self, outcome: Outcome) -> bool:
        topic, subscription = str(outcome.topic), outcome.subscription or ""
        match outcome.awaited:
            case Awaited.TOPIC_READY:
                try:
                    return await _is_there(self.get_topic(topic))
                except UnavailableError as error:
                    if error.status != _NOT_MADE_YET:
                        raise
                    return False
            case Awaited.TOPIC_GONE:
                return not await _is_there(self.get_topic(topic))
            case Awaited.SUBSCRIPTION_GONE:
                return not await _is_there(self.get_subscription(topic, subscription))
            case Awaited.SUBSCRIPTION_ACTIVE:
                phase = (await self.get_subscription(topic, subscription)).phase
                if phase == "CursorLost":
                    raise ConflictError(f"subscription {subscription} lost its cursor; delete it to start anew")
                return phase == "Active"
            case Awaited.OPERATION_ENDED:
                if outcome.operation is None:
                    raise AdminError("the gateway did not say which SegmentOperation it has made")
                found = await self.get_operation(topic, outcome.operation)
                if found.phase == "Failed":
                    raise ConflictError(f"SegmentOperation {found.operation} failed: {found.message}")
                return found.ended


def _outcome(answer: Answer, body: Any, topic: TopicName, awaited: Awaited, subscription: str | None) -> Outcome:
    operation = answers.operation_of_header(answer.headers.get(_OPERATION_HEADER, ""))
    if answer.status == 202:
        reason = answers.reason(body)
        return Outcome(topic, awaited, OutcomeState.RUNNING, subscription, operation, reason)
    if answer.status == 200:
        return Outcome(topic, awaited, OutcomeState.PLANNED, subscription, operation, plan=answers.plan(body))
    return Outcome(topic, awaited, OutcomeState.DONE, subscription, operation)


def _policy(body: Any) -> AutoScalePolicy | None:
    return None if body is None else answers.auto_scale_policy(body)


def _understood(read: Callable[[Any], T], body: Any) -> T:
    """What an answer says. Raises AdminError for one that is not as this release knows it."""
    try:
        return read(body)
    except MALFORMED as error:
        why = str(error)[:_MOST_QUOTED]
        raise AdminError(f"the gateway's answer cannot be read, perhaps it is of another release: {why}") from None


async def _is_there(look: Awaitable[object]) -> bool:
    try:
        await look
    except NotFoundError:
        return False
    return True
