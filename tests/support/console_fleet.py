"""A gateway over objects in memory with a large fleet and a topic of a long history, for the console to show."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.autoscale.policy import knob_list, resolve
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.operations.topic_state import TopicState
from tests.unit.gateway.model_reconcile import ordered, recorded
from tests.unit.gateway.rest_world import READY, RestWorld, look, rest_world
from tests.unit.gateway.topics import ORDERS, topic_body

MADE_AT_MS = 1_796_000_000_000
_STEP_MS = 600_000
_THRESHOLD = 1000.0
_STALLED = [
    {"type": "Ready", "status": "False", "reason": "ForeignClaim", "message": "another installation has it"},
    {"type": "Stalled", "status": "True", "reason": "ForeignClaim", "message": "another installation has it"},
]


def long_history(records: int, *, seed: int = 7) -> SegmentLayout:
    """A layout of so many segments at least that were split and merged in turn."""
    chance = random.Random(seed)
    layout, now_ms = SegmentLayout.initial(4, created_at_ms=MADE_AT_MS), MADE_AT_MS
    while len(layout.segments) < records:
        now_ms += _STEP_MS
        active = sorted(layout.active, key=lambda one: one.hash_range.start)
        wide = [one for one in active if one.hash_range.end - one.hash_range.start > 64]
        if len(active) < 6 or (chance.random() < 0.5 and len(active) < 24):
            change = layout.plan_split(chance.choice(wide).segment_id)
        else:
            first = chance.randrange(len(active) - 1)
            change = layout.plan_merge([one.segment_id for one in active[first : first + 2]])
        layout = layout.apply(change, now_ms=now_ms)
    return layout


def views_of(layout: SegmentLayout, *, seed: int = 7) -> dict[str, Any]:
    """What a leader tells of a topic: stats, the last decision and the policy in one."""
    chance = random.Random(seed)
    policy = resolve([])
    segments: dict[str, Any] = {}
    for segment in layout.active:
        rate = round(chance.random() ** 2 * 1300, 1)
        segments[str(segment.segment_id)] = {
            "name": "",
            "state": "Active",
            "hashRange": segment.hash_range.descriptor,
            "load": {
                "msgRateIn": rate,
                "byteRateIn": rate * 900,
                "msgRateOut": rate * 2,
                "byteRateOut": rate * 1800,
                "ageSeconds": 2.0,
            },
            "backlog": {"billing": int(rate * 3), "audit": int(rate / 7)},
            "entryBuckets": segment.buckets,
        }
    total = sum(one["load"]["msgRateIn"] for one in segments.values())
    backlog = {
        name: {"msgBacklog": sum(one["backlog"][name] for one in segments.values())} for name in ("billing", "audit")
    }
    knobs = {**policy.knobs, "split.msgRateIn": _THRESHOLD}
    return {
        "topic": str(ORDERS),
        "engine": "Operator",
        "layout": {"epoch": layout.epoch, "segments": segments},
        "msgRateIn": total,
        "byteRateIn": total * 900,
        "msgRateOut": total * 2,
        "byteRateOut": total * 1800,
        "subscriptions": backlog,
        "autoScale": {"policy": knobs, "engine": "Operator"},
        "scaling": {"maxBacklog": backlog["billing"]["msgBacklog"], "loadAgeSeconds": 2.0},
        **_decision(layout),
        "problem": "",
        "knobs": [
            {**one, "value": _THRESHOLD, "origin": "SegmentAutoScalePolicy shop/busy"}
            if one["knob"] == "split.msgRateIn"
            else one
            for one in knob_list(policy)
        ],
    }


def _decision(layout: SegmentLayout) -> dict[str, Any]:
    hot = layout.active[0].segment_id
    return {
        "observedAt": "2026-11-30T12:00:00Z",
        "decision": {
            "action": {"kind": "Split", "segments": [hot], "into": 2, "buckets": None, "reason": "load"},
            "code": "split",
        },
        "findings": [
            {"rule": "enabled", "fired": False, "code": "enabled", "why": "automatic changes are on"},
            {"rule": "load-split", "fired": True, "code": "hot", "why": f"segment {hot}: msgRateIn 1201 ≥ 1000"},
            {"rule": "merge", "fired": False, "code": "not-cold", "why": "no two neighbours are cold"},
        ],
        "load": {"fresh": True, "ageSeconds": 2.0, "why": "", "segments": []},
        "consumers": {"billing": 3},
        "clocks": {"split": "2026-11-30T11:58:00Z", "merge": None, "rebucket": None},
        "nextLookSeconds": 41.0,
    }


def _actions(layout: SegmentLayout) -> list[Mapping[str, Any]]:
    made = sorted(layout.segments.values(), key=lambda one: one.created_at_epoch)[-20:]
    return [
        {
            "id": f"operation-{one.segment_id}",
            "kind": one.created_by.value,
            "at": "2026-11-30T11:58:00Z",
            "epoch": one.created_at_epoch,
            "parents": list(one.parent_ids),
            "children": [one.segment_id],
            "result": "Succeeded",
            "reason": "msgRateIn 1201 ≥ 1000",
            "request": {"kind": "SegmentAutoScalePolicy", "name": "busy", "uid": "uid-9"},
        }
        for one in made
    ]


@asynccontextmanager
async def console_fleet(*, topics: int = 1, records: int = 40, writes: bool = True) -> AsyncIterator[RestWorld]:
    """Start a gateway with topic `orders` of so many segments, and as many topics in all.

    Args:
        topics: of the fleet, 1 or more.
        records: segments of topic `orders` at least, most of them sealed.
        writes: whether callers may write.
    """
    layout = long_history(records)
    async with rest_world(writes=writes) as world:
        body = world.topic
        state = topic_body(TopicState(layout=layout, incarnation="uid-1.0"))["status"]
        sealed = len(layout.segments) - len(layout.active)
        world.kubernetes.set_status(
            body,
            {
                **state,
                "conditions": READY,
                "backend": "Classic",
                "segments": {"active": len(layout.active), "sealed": sealed},
                "actions": _actions(layout),
                "lastAction": "Split of 0",
            },
        )
        for name in ("billing", "audit"):
            recorded(world, name)
        world.replica.known.view = views_of(layout)
        for segment in layout.segments.values():
            name = world.brokers.segment_topic(ORDERS, segment)
            world.brokers.looks[name] = look(consumers=1, producers=1, cursors=("audit", "billing"))
        _subscribe(world, layout)
        for number in range(1, topics):
            _put_topic(world, number)
        yield world


def _subscribe(world: RestWorld, layout: SegmentLayout) -> None:
    consumers = [
        {
            "name": f"billing-{number}",
            "incarnation": f"i-{number}",
            "registeredAt": "2026-11-30T09:00:00Z",
            "assignments": [{"segment": one.segment_id} for one in layout.active[number::3]],
        }
        for number in range(3)
    ]
    status = {
        "phase": "Active",
        "version": {"term": 3, "epoch": layout.epoch, "counter": 2},
        "consumers": consumers,
        "drained": [one.segment_id for one in layout.sealed][:40],
    }
    ordered(world, "billing", status)


def _put_topic(world: RestWorld, number: int) -> None:
    state = TopicState(layout=SegmentLayout.initial(1 + number % 5, created_at_ms=MADE_AT_MS), incarnation="u.0")
    name = f"topic-{number:04}"
    world.kubernetes.put(
        {
            "apiVersion": TOPICS.api_version,
            "kind": TOPICS.kind,
            "metadata": {"namespace": f"team-{number % 7}", "name": name},
            "spec": {
                "topic": f"acme/team-{number % 7}/{name}",
                "connectionRef": {"name": "pulsar", "namespace": "shop"},
                "paused": number % 97 == 0,
            },
            "status": {
                **topic_body(state)["status"],
                "conditions": _STALLED if number % 50 == 0 else READY,
                "backend": "Native" if number % 4 == 0 else "Classic",
                "segments": {"active": 1 + number % 5, "sealed": number % 9},
            },
        }
    )
