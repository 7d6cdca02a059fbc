"""What the operator's own code asks of servers for each thing that happens to a topic, counted in virtual time."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.controllers.reconcile_times import ReconcileTimes
from scalable_topics_operator.operations.topic_state import read_state
from scalable_topics_operator.settings import OperatorSettings
from tests.simulation.fleet.api_server import Body
from tests.simulation.fleet.virtual_time import VirtualLoop, run_virtually
from tests.simulation.growth.meter import API_SERVER, BROKERS, Meter
from tests.simulation.growth.whole import TopicShape, WholeFleet

_WRITES = ("PATCH scalabletopics", "PATCH scalabletopics/status")
_READS = ("GET scalabletopics",)
_REST_LOOKS = 8
# Splits and merges in turn, so that the record of a topic has as many past actions as it keeps.
_HISTORY = 24


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls for one thing that happens to one topic.

    Args:
        broker: admin calls.
        reads: of its object at the API server, one by one.
        writes: of its object.
    """

    broker: float
    reads: float
    writes: float


@dataclass(frozen=True, slots=True)
class Counted:
    """What the operator's code was seen to ask, a topic.

    Args:
        create: from the object to Ready.
        take_over: when another replica has come to lead it, its first comparison with the brokers included.
        drift_look: one comparison with the brokers that finds nothing.
        split: one split of a segment asked for by a SegmentOperation, whose own writes are left out.
        object_bytes: JSON of a topic just made.
        object_bytes_with_history: JSON of one whose lists of past actions are full, sealed segments pruned.
        sealed_bytes: JSON of one sealed segment that waits in the layout.
    """

    create: Calls
    take_over: Calls
    drift_look: Calls
    split: Calls
    object_bytes: float
    object_bytes_with_history: float
    sealed_bytes: float


def count_calls(topics: int, shape: TopicShape) -> Counted:
    """Let the operator make topics, rest, fail over and split, and count.

    Args:
        topics: how many share what is asked for several of them at once, 1 or more.
        shape: what they look like.
    """
    return run_virtually(0, _counted(topics, shape))


async def _counted(topics: int, shape: TopicShape) -> Counted:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    times = ReconcileTimes()
    fleet = WholeFleet(loop, OperatorSettings(times=times), shape)
    first = fleet.start_replica()
    await asyncio.sleep(30.0)
    fleet.meter.reset()
    fleet.make_topics(topics)
    await fleet.until_ready()
    created = _calls(fleet.meter, topics)
    object_bytes = _longest_bytes(fleet)
    # A first look comes sooner, and is not counted.
    await asyncio.sleep(1.5 * times.drift_seconds)
    fleet.meter.reset()
    await asyncio.sleep(_REST_LOOKS * times.drift_seconds)
    # Each comparison reads once what clients are told.
    looked = _calls(fleet.meter, fleet.meter.calls(BROKERS, "published"))
    await first.leave()
    fleet.start_replica()
    fleet.meter.reset()
    await asyncio.sleep(30.0)
    taken = _calls(fleet.meter, topics)
    fleet.meter.reset()
    for number in range(topics):
        fleet.request(f"t{number}", "Split", f"split-{number}", segment=0)
    await fleet.until(lambda: _sealed(fleet) == topics, "all topics are split")
    await fleet.until_ready()
    split = _calls(fleet.meter, topics)
    sealed_bytes = _sealed_bytes(fleet)
    await _fill_history(fleet)
    with_history = _longest_bytes(fleet)
    await fleet.stop()
    return Counted(created, taken, looked, split, object_bytes, with_history, sealed_bytes)


async def _fill_history(fleet: WholeFleet) -> None:
    """Merge and split in topic 0 again and again."""
    for turn in range(_HISTORY):
        layout = _layout(fleet, "t0")
        active = sorted(layout.active, key=lambda segment: segment.hash_range.start)
        if len(active) > fleet.shape.segments:
            fleet.request("t0", "Merge", f"turn-{turn}", segments=[one.segment_id for one in active[:2]])
        else:
            fleet.request("t0", "Split", f"turn-{turn}", segment=active[0].segment_id)
        epoch = layout.epoch
        await fleet.until(lambda epoch=epoch: _layout(fleet, "t0").epoch > epoch, "changed")  # type: ignore[misc]
    # Readers have nothing to read, so that everything sealed goes once its time is over.
    await fleet.until(lambda: not _layout(fleet, "t0").sealed, "what was sealed is pruned")


def _layout(fleet: WholeFleet, name: str) -> SegmentLayout:
    body = next(body for body in fleet.topics() if body["metadata"]["name"] == name)
    layout = read_state(body["status"]).layout
    assert layout is not None
    return layout


def _sealed(fleet: WholeFleet) -> int:
    return sum(body["status"]["segments"]["sealed"] for body in fleet.topics())


def _calls(meter: Meter, per: int) -> Calls:
    brokers = meter.calls(BROKERS) - meter.calls(BROKERS, "probe")
    return Calls(brokers / per, meter.calls(API_SERVER, *_READS) / per, meter.calls(API_SERVER, *_WRITES) / per)


def _longest_bytes(fleet: WholeFleet) -> float:
    """Of the topic with the longest history, JSON as it is on the wire."""
    return float(max(map(_json_bytes, fleet.topics())))


def _sealed_bytes(fleet: WholeFleet) -> float:
    segments = next(fleet.topics())["status"]["layout"]["segments"]
    return float(max(_json_bytes(one) for one in segments if one["state"] == "Sealed"))


def _json_bytes(body: Body) -> int:
    return len(json.dumps(body, separators=(",", ":")))
