"""Whether an ordinary topic may be migrated, and what that would come to (pip-475 §2.4, R24, R29). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scalable_topics.layout import MAX_MIGRATED_PARTITIONS, PlannedSegment, TopicName, planned_initial
from scalable_topics_operator.operations.legacy_survey import UNKNOWN, LegacyClient, LegacySurvey

CLIENTS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a topic cannot be migrated as things are.

    Args:
        reason: in one CamelCase word.
        message: why and what to do, for people.
    """

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a migration would meet.

    Args:
        survey: what there is.
        children: the segments that would take writes.
        obstacles: why it is refused; empty if it is not.
    """

    survey: LegacySurvey
    children: tuple[PlannedSegment, ...]
    obstacles: tuple[Obstacle, ...] = ()

    @property
    def entries(self) -> int:
        """Entries that stay where they are."""
        return sum(topic.entries for topic in self.survey.topics)

    @property
    def storage_bytes(self) -> int:
        """Their size."""
        return sum(topic.storage_bytes for topic in self.survey.topics)


def preflight(
    topic: TopicName, survey: LegacySurvey, *, bucket_budget: int, force: bool, unfit: str = "", enabled: bool = True
) -> Preflight:
    """Judge a survey.

    Args:
        topic: its name.
        survey: what there is.
        bucket_budget: entry buckets of the topic.
        force: whether clients that do not know scalable topics would be cut off.
        unfit: why its Pulsar namespace cannot hold a scalable topic; empty if it can.
        enabled: whether this operator migrates at all.
    """
    obstacles = [] if enabled else [Obstacle("MigrationDisabled", "migrations are switched off (--migration-enabled)")]
    if survey.partitions > MAX_MIGRATED_PARTITIONS:
        obstacles.append(
            Obstacle(
                "TooManyPartitions",
                f"{topic.persistent} has {survey.partitions} partitions; topics of at most {MAX_MIGRATED_PARTITIONS} "
                "can be migrated",
            )
        )
    sealed = [one.topic for one in survey.topics if one.is_terminated]
    if sealed:
        obstacles.append(
            Obstacle("Terminated", f"{sealed[0]} is sealed already: a topic that takes no messages is not migrated")
        )
    if unfit:
        obstacles.append(Obstacle("Unsupported", unfit))
    obstacles += [Obstacle("Unsupported", why) for why in _unsupported(topic, survey)]
    if survey.clients and not force:
        obstacles.append(Obstacle("LegacyClients", legacy_clients_text(survey.clients)))
    count = max(1, survey.partitions)
    children = planned_initial(count, bucket_budget=bucket_budget, first_id=count)
    return Preflight(survey, children, tuple(obstacles))


def notes_of(found: Preflight, *, force: bool) -> list[str]:
    """What to know beforehand, a line each, as a dry run shows it."""
    survey = found.survey
    shape = f"{survey.partitions} partitions" if survey.partitions else "not partitioned"
    lines = [f"cannot be migrated now: {obstacle.message}" for obstacle in found.obstacles]
    lines.append(f"{shape}; {found.entries} entries of {found.storage_bytes} bytes stay where they are")
    for name, backlog in survey.backlogs.items():
        kind = survey.kinds[name]
        taken = "nobody is attached to tell its kind" if kind == UNKNOWN else f"taken for a {kind} subscription"
        lines.append(f"subscription {name}: {backlog} entries left, carried over; {taken}")
    lines += [describe_client(client) + (" is cut off" if force else "") for client in survey.clients[:CLIENTS_SHOWN]]
    if len(survey.clients) > CLIENTS_SHOWN:
        lines.append(f"and {len(survey.clients) - CLIENTS_SHOWN} clients more that do not know scalable topics")
    if survey.schemas:
        lines.append(f"{survey.schemas} versions of its schema are carried over")
    if survey.properties:
        lines.append(f"its properties are carried over: {', '.join(sorted(survey.properties))}")
    if survey.other_policies:
        lines.append(f"topic policies that are not carried over: {', '.join(survey.other_policies)}")
    return lines


def legacy_clients_text(clients: Sequence[LegacyClient]) -> str:
    """Why a migration is refused while these are attached."""
    shown = "; ".join(describe_client(client) for client in clients[:3])
    more = f"; and {len(clients) - 3} more" if len(clients) > 3 else ""
    return (
        f"{len(clients)} connections of clients that do not know scalable topics are attached: {shown}{more}. Stop "
        "them or move them to a library that does, or set force to cut them off"
    )


def describe_client(client: LegacyClient) -> str:
    """A client in a few words."""
    of = f" of subscription {client.subscription}" if client.subscription else ""
    version = f" ({client.version})" if client.version else ""
    return f"{client.role.lower()} {client.name!r}{of} from {client.address or 'nowhere'}{version} on {client.topic}"


def _unsupported(topic: TopicName, survey: LegacySurvey) -> list[str]:
    """What the topic uses that scalable topics do not work with (R24)."""
    name, found = topic.persistent, []
    if len(survey.clusters) > 1:
        found.append(
            f"{name} is replicated to {', '.join(sorted(survey.clusters))}: segments are not kept in step between "
            "clusters; end the replication first"
        )
    compacted = [one.topic for one in survey.topics if one.is_compacted]
    if survey.compaction_threshold_bytes > 0 or compacted:
        found.append(f"{name} is compacted, which its segments would not be; end the compaction first")
    transactions = sum(one.open_transactions for one in survey.topics)
    if transactions:
        found.append(f"{name} has {transactions} open transactions; scalable topics have none: end them first")
    return found
