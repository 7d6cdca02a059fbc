"""Growth on paper: what a fleet of any size needs. Pure.

`tests/simulation/growth` compares this with the operator's own control plane in virtual time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.growth import DAY_SECONDS, HOUR_SECONDS, TURNS_BETWEEN_PRESENCES, Costs, Fleet

# A replica waits before it lists again, as watches of several kinds end together.
_SETTLE_SECONDS = 1.0
SPARK_BUSY = 0.7

Value = Callable[[Costs, Fleet], float]


@dataclass(frozen=True, slots=True)
class Formula:
    """One quantity.

    Args:
        part: heading in the tables.
        name: of the quantity, with what it is counted in.
        text: the formula, in the names of `Costs` and `Fleet`.
        value: the same as code.
    """

    part: str
    name: str
    text: str
    value: Value


def lease_writes_an_hour(_: Costs, fleet: Fleet) -> float:
    """Renewals of shards, and replicas that tell that they live."""
    presence_seconds = TURNS_BETWEEN_PRESENCES * fleet.renew_seconds
    each = fleet.shards / fleet.renew_seconds + fleet.replicas / presence_seconds
    return fleet.installations * each * HOUR_SECONDS


def object_writes_a_second(costs: Costs, fleet: Fleet) -> float:
    """Writes of topics, SegmentOperations and Events."""
    split = costs.split_writes + costs.operation_writes
    return fleet.topics * (fleet.splits_a_day * split + fleet.changes_a_day * 2) / DAY_SECONDS


def listed_a_second(_: Costs, fleet: Fleet) -> float:
    """Objects that API servers send in lists."""
    return fleet.replicas * fleet.topics / fleet.relist_seconds


def api_cores(costs: Costs, fleet: Fleet) -> float:
    """Cores of one API server at rest and with the changes of the fleet."""
    writes = object_writes_a_second(costs, fleet) + lease_writes_an_hour(costs, fleet) / HOUR_SECONDS
    busy = writes * costs.api_write_seconds + listed_a_second(costs, fleet) * costs.api_list_seconds
    return busy / fleet.kubernetes


def etcd_bytes(costs: Costs, fleet: Fleet) -> float:
    """Of one etcd: objects, and what is overwritten until it is compacted."""
    overwritten = object_writes_a_second(costs, fleet) * costs.compaction_seconds * 2
    return (fleet.topics + overwritten) * costs.stored_bytes / fleet.kubernetes


def drift_calls_a_second(costs: Costs, fleet: Fleet) -> float:
    """Admin calls of all comparisons at rest."""
    most = fleet.drift_per_second * fleet.replicas * fleet.installations
    return min(fleet.topics / fleet.drift_seconds, most) * costs.drift_calls


def list_cores(costs: Costs, fleet: Fleet) -> float:
    """Of one replica for its own lists of all topics that it knows."""
    return fleet.known * costs.list_seconds / fleet.relist_seconds


def look_cores(costs: Costs, fleet: Fleet) -> float:
    """Of one replica for comparisons with the brokers."""
    return fleet.compared_a_second * costs.drift_calls * costs.call_seconds


def decide_cores(costs: Costs, fleet: Fleet) -> float:
    """Of one replica for decisions."""
    return fleet.led * costs.decision_seconds / fleet.decide_seconds


def event_cores(costs: Costs, fleet: Fleet) -> float:
    """Of one replica for watch events: those of all topics of its installation."""
    return object_writes_a_second(costs, fleet) / fleet.installations * costs.event_seconds


def sample_cores(costs: Costs, fleet: Fleet) -> float:
    """Of the busiest replica for load samples: the one that has them sends them to all others."""
    others = fleet.replicas - 1
    each = max(costs.decode_seconds if others else 0.0, others * costs.encode_seconds)
    return fleet.cluster_segments * each / fleet.load_seconds


def rest_cores(costs: Costs, fleet: Fleet) -> float:
    """Of one replica for its own topics, events and lists."""
    return sum(part(costs, fleet) for part in (list_cores, look_cores, decide_cores, event_cores))


def replica_cores(costs: Costs, fleet: Fleet) -> float:
    """Of the busiest replica at rest; more than one it cannot have."""
    return rest_cores(costs, fleet) + sample_cores(costs, fleet)


def replica_bytes(costs: Costs, fleet: Fleet) -> float:
    """Resident memory of a replica."""
    objects = fleet.known * (costs.known_bytes + costs.cached_bytes)
    sessions = fleet.sessions / fleet.installations / fleet.replicas * costs.session_bytes
    # One is in use while the next one is read.
    return costs.base_bytes + objects + 2 * fleet.cluster_segments * costs.sample_bytes + sessions


def list_seconds(costs: Costs, fleet: Fleet) -> float:
    """One complete list of a replica that nothing else keeps busy."""
    return fleet.known * (costs.list_seconds + costs.api_list_seconds)


def take_over_seconds(costs: Costs, topics: float) -> float:
    """Until one replica has looked at so many topics that are new to it.

    It is its processor that they wait for, unless calls take so long that the limit of the connection counts.
    """
    processor = costs.decision_seconds + costs.take_over_calls * costs.call_seconds
    connection = costs.take_over_calls * costs.broker_latency_seconds / costs.connection_calls
    brokers = costs.take_over_calls * costs.broker_call_seconds / costs.brokers
    return topics * max(processor, connection, brokers)


def start_seconds(costs: Costs, fleet: Fleet) -> float:
    """From the start of all replicas of an installation until every topic has been looked after.

    A replica lists once before it stands for election; kopf then lists, and it lists again itself: all of that and its
    own topics share its processor.
    """
    first = fleet.known * max(costs.list_seconds + costs.api_list_seconds, fleet.replicas * _listing(costs))
    again = fleet.known * (costs.event_seconds + costs.list_seconds)
    elected = fleet.renew_seconds
    return first + elected + again + take_over_seconds(costs, fleet.led)


def _listing(costs: Costs) -> float:
    return costs.api_list_seconds / costs.api_cores


def failover_seconds(costs: Costs, fleet: Fleet) -> float:
    """From the death of one replica until all of its topics have been looked after by others."""
    if fleet.replicas == 1:
        return start_seconds(costs, fleet)
    taken = math.ceil(fleet.most_shards / (fleet.replicas - 1)) * fleet.known / fleet.shards
    # It was seen alive for the last time up to a turn before it died, and is seen dead up to a turn too late.
    seen = fleet.lease_seconds + fleet.renew_seconds
    # What the others do at rest goes on beside it.
    return seen + take_over_seconds(costs, taken) / max(0.05, 1.0 - rest_cores(costs, fleet))


def relist_seconds(costs: Costs, fleet: Fleet) -> float:
    """After watches have expired everywhere: until the last replica has listed everything again."""
    processor = fleet.known * (costs.event_seconds + 2 * costs.list_seconds)
    server = fleet.known * 3 * fleet.replicas * _listing(costs)
    return _SETTLE_SECONDS + max(processor, server)


def splits_seconds(costs: Costs, fleet: Fleet, splits: float) -> float:
    """Until so many topics that are to be split at once have been, evenly over all replicas."""
    led = splits * fleet.most_shards / fleet.shards
    calls = costs.split_calls * costs.call_seconds + costs.split_writes * costs.write_seconds
    # Each of its writes and of those of all others comes back as an event, to every replica.
    events = splits * (costs.split_writes + 1) * costs.event_seconds
    # And each of them takes its time, however few there are.
    return costs.split_calls * costs.broker_latency_seconds + led * (calls + costs.decision_seconds) + events


def create_seconds(costs: Costs, fleet: Fleet) -> float:
    """Until as many topics as the fleet has are made from nothing, by processor and brokers, whichever takes longer."""
    processor = fleet.led * (costs.create_calls * costs.call_seconds + costs.create_writes * costs.write_seconds)
    events = fleet.known * costs.create_writes * costs.event_seconds
    brokers = fleet.topics * costs.create_calls * costs.broker_call_seconds / fleet.brokers
    server = fleet.topics / fleet.kubernetes * costs.create_writes * costs.api_write_seconds / costs.api_cores
    return max(processor + events, brokers, server)


def spark_cores(costs: Costs, fleet: Fleet) -> float:
    """Cores of the pipeline, a part of which is free for batches that last longer than most."""
    return fleet.all_segments * costs.spark_seconds / fleet.load_seconds / SPARK_BUSY


def broker_calls_a_second(costs: Costs, fleet: Fleet) -> float:
    """Admin calls of comparisons at rest, to each broker."""
    return drift_calls_a_second(costs, fleet) / fleet.brokers


FORMULAS: Sequence[Formula] = (
    Formula("Operator", "topics that each replica knows", "topics / installations", lambda _, f: f.known),
    Formula(
        "Operator", "topics that the busiest leads", "known * ceil(shards / replicas) / shards", lambda _, f: f.led
    ),
    Formula(
        "Operator", "replicas in all", "installations * replicas", lambda _, f: float(f.installations * f.replicas)
    ),
    Formula(
        "Operator",
        "memory of a replica, GB",
        "base + known * (known_bytes + cached_bytes) + 2 * segments of the cluster * sample_bytes + sessions",
        lambda c, f: replica_bytes(c, f) / 1e9,
    ),
    Formula("Operator", "cores of the busiest replica at rest", "the five that follow", replica_cores),
    Formula("Operator", "of it: its own lists", "known * list_seconds / relist", list_cores),
    Formula(
        "Operator",
        "of it: comparisons with brokers",
        "min(led / drift, drift_per_second) * drift_calls * call_seconds",
        look_cores,
    ),
    Formula("Operator", "of it: decisions", "led * decision_seconds / interval", decide_cores),
    Formula("Operator", "of it: watch events", "writes a second / installations * event_seconds", event_cores),
    Formula(
        "Operator",
        "of it: load samples between replicas",
        "segments of the cluster * max(decode, (replicas - 1) * encode) / load interval",
        sample_cores,
    ),
    Formula(
        "Operator",
        "start until all are looked after, s",
        "known * (3 lists, kopf's events) + a renewal + led * take_over",
        start_seconds,
    ),
    Formula(
        "Operator",
        "loss of a replica until all are looked after, s",
        "lease + renewal + known * ceil(most shards / others) / shards * take_over / (1 - cores at rest)",
        failover_seconds,
    ),
    Formula(
        "Operator", "watches expired everywhere, s", "1 + known * (event_seconds + 2 * list_seconds)", relist_seconds
    ),
    Formula(
        "Operator",
        "all made from nothing, h",
        "the slowest of processor, brokers, API server",
        lambda c, f: create_seconds(c, f) / HOUR_SECONDS,
    ),
    Formula(
        "API server",
        "Lease writes an hour",
        "installations * (shards / renewal + replicas / 3 renewals)",
        lease_writes_an_hour,
    ),
    Formula("API server", "other writes a second", "topics * changes a day * writes each", object_writes_a_second),
    Formula(
        "API server",
        "watch events sent a second",
        "writes * replicas",
        lambda c, f: object_writes_a_second(c, f) * f.replicas,
    ),
    Formula("API server", "objects listed a second", "replicas * topics / relist", listed_a_second),
    Formula(
        "API server", "cores of each API server", "(writes * api_write + listed * api_list) / kubernetes", api_cores
    ),
    Formula(
        "API server",
        "each etcd, GB",
        "(topics + overwritten in 2 compactions) * stored_bytes / kubernetes",
        lambda c, f: etcd_bytes(c, f) / 1e9,
    ),
    Formula(
        "Brokers",
        "admin calls a second at rest, all",
        "min(topics / drift, replicas * drift_per_second) * drift_calls",
        drift_calls_a_second,
    ),
    Formula("Brokers", "admin calls a second, each", "that / brokers", broker_calls_a_second),
    Formula(
        "Brokers",
        "core of each for these",
        "* broker_call_seconds",
        lambda c, f: broker_calls_a_second(c, f) * c.broker_call_seconds,
    ),
    Formula(
        "Brokers",
        "statistics sent by each, MB a second",
        "segments / brokers * statistics_bytes / load interval",
        lambda c, f: f.all_segments / f.brokers * c.statistics_bytes / f.load_seconds / 1e6,
    ),
    Formula(
        "Pipeline",
        "Spark cores, 70 % busy",
        "segments * spark_seconds / load interval / 0.7",
        spark_cores,
    ),
    Formula(
        "Pipeline", "Spark memory, GB", "segments * spark_bytes", lambda c, f: f.all_segments * c.spark_bytes / 1e9
    ),
    Formula(
        "Pipeline",
        "executors of 4 cores",
        "cores / 4",
        lambda c, f: float(math.ceil(spark_cores(c, f) / 4)),
    ),
    Formula(
        "Pipeline",
        "state written in a batch, MB",
        "segments * spark_state_bytes",
        lambda c, f: f.all_segments * c.spark_state_bytes / 1e6,
    ),
    Formula(
        "Pipeline",
        "records a second",
        "segments * records_share / load interval",
        lambda _, f: f.all_segments * f.records_share / f.load_seconds,
    ),
    Formula(
        "Pipeline",
        "topics of records after compaction, GB",
        "segments * record_bytes",
        lambda c, f: f.all_segments * c.record_bytes / 1e9,
    ),
    Formula(
        "History",
        "a topic and day, MB",
        "segments a topic * samples a day * sample_history_bytes",
        lambda c, f: f.segments * DAY_SECONDS / f.load_seconds * c.sample_history_bytes / 1e6,
    ),
    Formula(
        "History",
        "all and 30 days, TB",
        "* topics * 30",
        lambda c, f: f.all_segments * 30 * DAY_SECONDS / f.load_seconds * c.sample_history_bytes / 1e12,
    ),
    Formula(
        "Gateway",
        "replicas that the sessions need",
        "sessions / sessions_a_replica",
        lambda c, f: float(math.ceil(f.sessions / c.sessions_a_replica)),
    ),
    Formula(
        "Gateway",
        "cores of all sessions, idle",
        "sessions * session_cores",
        lambda c, f: f.sessions * c.session_cores,
    ),
    Formula(
        "Gateway",
        "memory of all sessions, GB",
        "sessions * session_bytes",
        lambda c, f: f.sessions * c.session_bytes / 1e9,
    ),
)
