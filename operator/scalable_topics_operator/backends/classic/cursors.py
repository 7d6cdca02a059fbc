"""Cursors of segments: which ones count, making and deleting them (R16)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.claim_properties import RESERVED_PREFIX
from scalable_topics_operator.operations.errors import BackendUnavailable, TopicMissing

_INTERNAL_PREFIXES = ("__", "pulsar.")
_CREATE_ATTEMPTS = 3


def is_internal(subscription: str) -> bool:
    """Whether a cursor of that name is the broker's or the operator's, no application's (R16). Pure."""
    return subscription.startswith(_INTERNAL_PREFIXES)


def counts(name: str, subscription: Mapping[str, Any]) -> bool:
    """Whether an application depends on a cursor, given its statistics: durable, and no internal one (R16). Pure."""
    durable = subscription.get("durable", subscription.get("isDurable"))
    return durable is True and not is_internal(name)


async def ensure_cursors(admin: PulsarAdmin, topic: str, subscriptions: Iterable[str], *, latest: bool = False) -> None:
    """Make the cursors that are missing and check that all are there.

    Never brings a deleted segment back: the call that makes a cursor auto-creates its topic (measured), so
    the topic is looked at first, and one that comes without a record was made by us just now and is removed.

    Raises TopicMissing, BackendUnavailable.
    """
    wanted = frozenset(subscriptions)
    missing = wanted - await admin.topics.subscriptions(topic)
    if not missing:
        return
    before = await admin.topics.properties(topic)
    for name in sorted(missing):
        await _create(admin, topic, name, latest=latest)
    await _refuse_resurrection(admin, topic, before)
    absent = wanted - await admin.topics.subscriptions(topic)
    if absent:
        raise BackendUnavailable(f"cursors {', '.join(sorted(absent))} of {topic} do not show")


async def _create(admin: PulsarAdmin, topic: str, subscription: str, *, latest: bool) -> None:
    for attempt in range(1, _CREATE_ATTEMPTS + 1):
        try:
            await admin.topics.create_subscription(topic, subscription, latest=latest)
            return
        except BackendUnavailable:
            # The cursor may have been left at the latest entry; the next caller would find it and trust it.
            if not latest and await admin.topics.move_to_earliest(topic, subscription):
                return
            if attempt == _CREATE_ATTEMPTS:
                raise


async def _refuse_resurrection(admin: PulsarAdmin, topic: str, before: dict[str, str]) -> None:
    if not _is_ours(before) or _is_ours(await admin.topics.properties(topic)):
        return
    # Not forced: if a client got in meanwhile or wrote, the topic stays and is reported as resurrected (R19).
    if not (await admin.topics.internal_stats(topic)).get("numberOfEntries"):
        await admin.topics.delete(topic)
    raise TopicMissing(f"{topic} was deleted while its cursors were made")


def _is_ours(properties: dict[str, str]) -> bool:
    return any(key.startswith(RESERVED_PREFIX) for key in properties)
