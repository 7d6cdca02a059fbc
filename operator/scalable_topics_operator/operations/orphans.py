"""Scalable topics on the brokers whose object is gone without having let go of them (R1, R9, hazard A1-26048).

An object that somebody took away past its finalizer, or that an older backup of the Kubernetes cluster does not have,
leaves its topics behind with a claim that nobody released. They are found and reported, never deleted: they hold data.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from scalable_topics.layout import TopicName
from scalable_topics_operator.operations.errors import BackendRefused, TopicMissing
from scalable_topics_operator.operations.protocols import Claim, TopicBackend

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Orphan:
    """A scalable topic without an object.

    Args:
        topic: its name.
        segments: how many topics named like segments of it there are.
        claim: whose it was.
    """

    topic: TopicName
    segments: int
    claim: Claim


async def find_orphans(
    backend: TopicBackend,
    pulsar_namespaces: Iterable[str],
    *,
    is_ours: Callable[[Claim], bool],
    is_declared: Callable[[TopicName], bool],
    owner_alive: Callable[[Claim], Awaitable[bool]],
) -> tuple[Orphan, ...]:
    """Look through Pulsar namespaces for topics that were this installation's and belong to no object, by name.

    Args:
        backend: the cluster.
        pulsar_namespaces: where to look, `tenant/namespace` each.
        is_ours: whether a claim is this installation's.
        is_declared: whether an object declares a topic.
        owner_alive: whether the object that a claim names exists.

    A namespace that is missing or may not be read, and a topic whose claim cannot be read, are passed over.

    Raises BackendUnavailable when the brokers cannot be asked.
    """
    orphans: list[Orphan] = []
    for namespace in sorted(set(pulsar_namespaces)):
        try:
            topics = await backend.list_topics(namespace)
        except BackendRefused as error:
            logger.info("not looked for orphans in %s: %s", namespace, error)
            continue
        for topic in topics:
            if is_declared(topic):
                continue
            try:
                found = await backend.list_segments(topic, max_age_seconds=60.0)
                claim = await _claim(backend, topic, [segment.topic for segment in found])
            except BackendRefused as error:
                logger.info("cannot tell whether %s is an orphan: %s", topic, error)
                continue
            if claim is None or claim.released or not is_ours(claim) or await owner_alive(claim):
                continue
            # Whoever has declared it meanwhile looks after it.
            if not is_declared(topic):
                orphans.append(Orphan(topic, len(found), claim))
    return tuple(sorted(orphans, key=lambda orphan: str(orphan.topic)))


async def _claim(backend: TopicBackend, topic: TopicName, segments: list[str]) -> Claim | None:
    """Whose a topic is; where its claim is gone, its newest segment tells."""
    name = await backend.read_name(topic)
    if name.claim is not None:
        return name.claim
    for segment in reversed(segments):
        try:
            record = await backend.read_record(segment)
        except TopicMissing:
            continue
        if record is not None:
            return record.claim
    return None
