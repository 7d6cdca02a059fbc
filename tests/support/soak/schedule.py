"""Which faults happen when, for as long as is wanted; the same seed has the same ones. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random


class Lane(StrEnum):
    """Faults of one lane come one after the other, those of different lanes at the same time."""

    OPERATORS = "operators"
    SERVERS = "servers"
    TOPICS = "topics"
    LAYOUT = "layout"
    CONSUMERS = "consumers"


class Fault(StrEnum):
    """What happens."""

    OPERATOR_KILLED = "operator killed (SIGKILL), and started again"
    OPERATOR_STOPPED = "operator stopped (SIGSTOP) for longer than its leases, and woken (SIGCONT)"
    OPERATOR_RESTARTED = "operator restarted in good order (SIGTERM)"
    OPERATOR_CUT_OFF = "one operator cut off from the API server for longer than its leases"
    KUBE_REPLY = "a write to the API server lost, late, or its reply lost or late"
    ADMIN_REPLY = "a write to the brokers lost, late, or its reply lost or late"
    BROKER_KILLED = "broker killed (SIGKILL), and started again"
    NAMESPACE_UNLOADED = "all topics unloaded"
    API_SERVER_KILLED = "API server killed (SIGKILL), and started again"
    PIPELINE_KILLED = "driver of the load pipeline killed (SIGKILL)"
    SOURCE_CHANGED = "source of load changed between Pipeline and Direct"
    SECRET_ROTATED = "connection's token replaced by another valid one"
    SECRET_WRONG = "connection's token wrong for some seconds"
    TOPIC_VISITED = "topic created, used, scaled and deleted"
    TOPIC_SOUGHT = "topic created, used, read again by a seek, and deleted"
    TOPIC_MIGRATED = "ordinary topic used, migrated, used and deleted"
    LAYOUT_CHANGED = "layout changed: split, merge or rebucket"
    STREAM_CHANGED = "stream consumer joined, left or died"
    QUEUE_CHANGED = "queue consumer joined, left or died"
    CHECKPOINT_CHANGED = "checkpoint consumer joined, left or died"


@dataclass(frozen=True, slots=True)
class _Deck:
    """The faults of a lane: each so often a round, the order of every round shuffled.

    Args:
        every_seconds: from one fault to the next, in the mean.
        counts: how often a round has each.
    """

    every_seconds: float
    counts: Mapping[Fault, int]


_DECKS: Mapping[Lane, _Deck] = {
    Lane.OPERATORS: _Deck(
        25.0,
        {
            Fault.OPERATOR_KILLED: 2,
            Fault.OPERATOR_STOPPED: 2,
            Fault.OPERATOR_RESTARTED: 1,
            Fault.OPERATOR_CUT_OFF: 1,
            Fault.KUBE_REPLY: 2,
            Fault.ADMIN_REPLY: 2,
        },
    ),
    Lane.SERVERS: _Deck(
        40.0,
        {
            Fault.BROKER_KILLED: 1,
            Fault.NAMESPACE_UNLOADED: 1,
            Fault.API_SERVER_KILLED: 1,
            Fault.PIPELINE_KILLED: 1,
            Fault.SOURCE_CHANGED: 2,
            Fault.SECRET_ROTATED: 1,
            Fault.SECRET_WRONG: 1,
        },
    ),
    Lane.TOPICS: _Deck(25.0, {Fault.TOPIC_VISITED: 2, Fault.TOPIC_SOUGHT: 1, Fault.TOPIC_MIGRATED: 1}),
    Lane.LAYOUT: _Deck(8.0, {Fault.LAYOUT_CHANGED: 1}),
    Lane.CONSUMERS: _Deck(6.0, {Fault.STREAM_CHANGED: 2, Fault.QUEUE_CHANGED: 1, Fault.CHECKPOINT_CHANGED: 1}),
}


@dataclass(frozen=True, slots=True)
class Planned:
    """One fault.

    Args:
        at_seconds: when, from the beginning; it comes later if the one before in its lane takes until then.
        lane: it is in.
        fault: what happens.
        pick: 0 to below 1, seeds what is left open: who is struck, and for how long.
    """

    at_seconds: float
    lane: Lane
    fault: Fault
    pick: float


def plan(seed: int, seconds: float) -> list[Planned]:
    """All faults of a run in order of time. A longer run begins as a shorter one of the same seed does.

    Args:
        seed: decides everything.
        seconds: how long faults are begun, above 0.
    """
    planned = []
    for lane, deck in _DECKS.items():
        # Of its own for each lane, and from a text: the hash of a tuple would differ from process to process.
        random = Random(f"{seed}/{lane}")
        at_seconds = 0.0
        for fault in _dealt(deck, random):
            at_seconds += deck.every_seconds * random.uniform(0.5, 1.5)
            if at_seconds >= seconds:
                break
            planned.append(Planned(at_seconds, lane, fault, random.random()))
    return sorted(planned, key=lambda one: (one.at_seconds, one.lane))


def _dealt(deck: _Deck, random: Random) -> Iterator[Fault]:
    cards = [fault for fault, count in deck.counts.items() for _ in range(count)]
    while True:
        yield from random.sample(cards, len(cards))
