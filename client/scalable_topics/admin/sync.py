"""The admin client without asyncio: the same one, whose event loop runs in a thread of its own."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from scalable_topics.admin.client import DEFAULT_TIMEOUT_SECONDS, DEFAULT_WAIT_SECONDS
from scalable_topics.admin.client import AdminClient as AsyncAdminClient
from scalable_topics.admin.loop_thread import LoopThread
from scalable_topics.admin.outcome import OperationName, Outcome, SegmentOperation
from scalable_topics.admin.policy import AutoScalePolicy, EffectivePolicy
from scalable_topics.admin.values import (
    Explanation,
    InitialPosition,
    SegmentCursor,
    Subscription,
    SubscriptionType,
    TopicRecord,
    TopicStats,
)
from scalable_topics.layout import Segment, TopicName
from scalable_topics.sdk.checkpoint import Checkpoint
from scalable_topics.sdk.gateway_options import GatewayOptions


class AdminClient:
    """Manages scalable topics through the gateway; may be used from any thread. Close it, or use it as a context
    manager.

    Arguments, answers and errors of it and of its methods are those of `scalable_topics.admin.AdminClient`.
    """

    def __init__(self, gateway: GatewayOptions, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        self._client = AsyncAdminClient(gateway, timeout_seconds=timeout_seconds)
        self._loop = LoopThread()

    def list_topics(self, namespace: str, *, properties: Mapping[str, str] | None = None) -> tuple[TopicName, ...]:
        """The scalable topics of a Pulsar namespace, sorted; with `properties` those that have all of these."""
        return self._loop.run(self._client.list_topics(namespace, properties=properties))

    def create_topic(self, topic: str, *, segments: int = 1, properties: Mapping[str, str] | None = None) -> Outcome:
        """Create a scalable topic with 1 to 256 initial segments and at most 64 properties."""
        return self._loop.run(self._client.create_topic(topic, segments=segments, properties=properties))

    def get_topic(self, topic: str) -> TopicRecord:
        """The record of a topic: its layout, properties and policy override."""
        return self._loop.run(self._client.get_topic(topic))

    def delete_topic(self, topic: str, *, force: bool = False) -> Outcome:
        """Delete a topic with all its segments; with `force` although clients are attached."""
        return self._loop.run(self._client.delete_topic(topic, force=force))

    def get_stats(self, topic: str) -> TopicStats:
        """Rates, storage and backlogs of a topic and its segments."""
        return self._loop.run(self._client.get_stats(topic))

    def explain(self, topic: str) -> Explanation:
        """The last automatic decision, and what each rule found."""
        return self._loop.run(self._client.explain(topic))

    def split_segment(
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
        return self._loop.run(
            self._client.split_segment(
                topic,
                segment_id,
                at=at,
                into=into,
                dry_run=dry_run,
                ttl_seconds_after_finished=ttl_seconds_after_finished,
            )
        )

    def merge_segments(
        self,
        topic: str,
        segment_id_1: int,
        segment_id_2: int,
        *further_ids: int,
        dry_run: bool = False,
        ttl_seconds_after_finished: int | None = None,
    ) -> Outcome:
        """Merge two or more neighbouring segments."""
        return self._loop.run(
            self._client.merge_segments(
                topic,
                segment_id_1,
                segment_id_2,
                *further_ids,
                dry_run=dry_run,
                ttl_seconds_after_finished=ttl_seconds_after_finished,
            )
        )

    def rebucket_segment(
        self,
        topic: str,
        segment_id: int,
        buckets: int,
        *,
        dry_run: bool = False,
        ttl_seconds_after_finished: int | None = None,
    ) -> Outcome:
        """Roll a segment over to one of the same range with 1 to 1,024 entry buckets (pip-486)."""
        return self._loop.run(
            self._client.rebucket_segment(
                topic, segment_id, buckets, dry_run=dry_run, ttl_seconds_after_finished=ttl_seconds_after_finished
            )
        )

    def migrate(
        self,
        topic: str,
        *,
        force: bool = False,
        dry_run: bool = False,
        ttl_seconds_after_finished: int | None = None,
    ) -> Outcome:
        """Make an ordinary topic, partitioned or not, a scalable one (pip-475). This cannot be taken back."""
        return self._loop.run(
            self._client.migrate(
                topic, force=force, dry_run=dry_run, ttl_seconds_after_finished=ttl_seconds_after_finished
            )
        )

    def get_operation(self, topic: str, operation: OperationName) -> SegmentOperation:
        """A SegmentOperation of a topic, as it stands."""
        return self._loop.run(self._client.get_operation(topic, operation))

    def create_subscription(
        self,
        topic: str,
        subscription: str,
        *,
        type: SubscriptionType = SubscriptionType.STREAM,
        initial_position: InitialPosition = InitialPosition.EARLIEST,
    ) -> Outcome:
        """Create a subscription with a cursor on every segment; one that is there already is kept."""
        return self._loop.run(
            self._client.create_subscription(topic, subscription, type=type, initial_position=initial_position)
        )

    def delete_subscription(self, topic: str, subscription: str, *, force: bool = False) -> Outcome:
        """Delete a subscription with its cursors; with `force` although consumers are attached."""
        return self._loop.run(self._client.delete_subscription(topic, subscription, force=force))

    def get_subscriptions(self, topic: str) -> tuple[Subscription, ...]:
        """The subscriptions that are declared or were asked for; others are in the topic's stats."""
        return self._loop.run(self._client.get_subscriptions(topic))

    def get_subscription(self, topic: str, subscription: str) -> Subscription:
        """One subscription; of an ordered one with who reads what."""
        return self._loop.run(self._client.get_subscription(topic, subscription))

    def seek(
        self,
        topic: str,
        subscription: str,
        timestamp_ms: int,
        *,
        dry_run: bool = False,
        ttl_seconds_after_finished: int | None = None,
    ) -> Outcome:
        """Move a subscription to a time, in milliseconds since 1970, on every segment."""
        return self._loop.run(
            self._client.seek(
                topic,
                subscription,
                timestamp_ms,
                dry_run=dry_run,
                ttl_seconds_after_finished=ttl_seconds_after_finished,
            )
        )

    def skip_all(
        self, topic: str, subscription: str, *, dry_run: bool = False, ttl_seconds_after_finished: int | None = None
    ) -> Outcome:
        """Skip everything that a subscription has not acknowledged, on every segment."""
        return self._loop.run(
            self._client.skip_all(
                topic, subscription, dry_run=dry_run, ttl_seconds_after_finished=ttl_seconds_after_finished
            )
        )

    def restore(
        self,
        checkpoint: Checkpoint,
        *,
        allow_gaps: bool = False,
        dry_run: bool = False,
        ttl_seconds_after_finished: int | None = None,
    ) -> Outcome:
        """Move a checkpoint group to where a checkpoint was taken, on every segment."""
        return self._loop.run(
            self._client.restore(
                checkpoint,
                allow_gaps=allow_gaps,
                dry_run=dry_run,
                ttl_seconds_after_finished=ttl_seconds_after_finished,
            )
        )

    def get_auto_scale_policy(self, topic: str) -> AutoScalePolicy | None:
        """The override of a topic; None if it has none."""
        return self._loop.run(self._client.get_auto_scale_policy(topic))

    def set_auto_scale_policy(self, topic: str, policy: AutoScalePolicy) -> None:
        """Set the override of a topic, in place of the one before."""
        self._loop.run(self._client.set_auto_scale_policy(topic, policy))

    def remove_auto_scale_policy(self, topic: str) -> None:
        """Remove the override of a topic."""
        self._loop.run(self._client.remove_auto_scale_policy(topic))

    def get_namespace_auto_scale_policy(self, namespace: str) -> AutoScalePolicy | None:
        """The override of a Pulsar namespace; None if it has none."""
        return self._loop.run(self._client.get_namespace_auto_scale_policy(namespace))

    def set_namespace_auto_scale_policy(self, namespace: str, policy: AutoScalePolicy) -> None:
        """Set the override of a Pulsar namespace, in place of the one before."""
        self._loop.run(self._client.set_namespace_auto_scale_policy(namespace, policy))

    def remove_namespace_auto_scale_policy(self, namespace: str) -> None:
        """Remove the override of a Pulsar namespace."""
        self._loop.run(self._client.remove_namespace_auto_scale_policy(namespace))

    def get_effective_policy(self, topic: str) -> EffectivePolicy:
        """Every knob that applies to a topic, and the level that gave it."""
        return self._loop.run(self._client.get_effective_policy(topic))

    def get_segments(self, topic: str) -> tuple[Segment, ...]:
        """The segments of a topic, active and sealed, by id."""
        return self._loop.run(self._client.get_segments(topic))

    def get_segment(self, topic: str, segment: Segment | str) -> Segment:
        """One segment, given as `hhhh-hhhh-id` or as a layout has it."""
        return self._loop.run(self._client.get_segment(topic, segment))

    def get_segment_subscriptions(self, topic: str, segment: Segment | str) -> Mapping[str, SegmentCursor]:
        """The cursors of a segment by subscription, as its broker shows them now."""
        return self._loop.run(self._client.get_segment_subscriptions(topic, segment))

    def get_segment_backlog(self, topic: str, segment: Segment | str, subscription: str) -> int:
        """Entries of a segment that a subscription has not acknowledged."""
        return self._loop.run(self._client.get_segment_backlog(topic, segment, subscription))

    def create_segment(self, topic: str, segment: Segment | str) -> None:
        """Of pip-468, and the operator's alone: raises NotAllowedError, which says what to do instead."""
        self._loop.run(self._client.create_segment(topic, segment))

    def terminate_segment(self, topic: str, segment: Segment | str) -> None:
        """Of pip-468, and the operator's alone: raises NotAllowedError, which says what to do instead."""
        self._loop.run(self._client.terminate_segment(topic, segment))

    def delete_segment(self, topic: str, segment: Segment | str) -> None:
        """Of pip-468, and the operator's alone: raises NotAllowedError, which says what to do instead."""
        self._loop.run(self._client.delete_segment(topic, segment))

    def wait(self, outcome: Outcome, timeout_seconds: float = DEFAULT_WAIT_SECONDS) -> Outcome:
        """Wait until what was still running is done; answers its outcome. Others are answered as they are."""
        return self._loop.run(self._client.wait(outcome, timeout_seconds))

    def close(self) -> None:
        """Close the connections. Nothing can be asked any more."""
        self._loop.end(self._client.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
