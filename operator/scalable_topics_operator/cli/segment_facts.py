"""Load and backlog of a topic's segments, which only the gateway knows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import Any

from scalable_topics.layout import Segment, SegmentLayout, segment_descriptor
from scalable_topics_operator.cli.faults import Absent, CliError, Unreachable, Unrecognised
from scalable_topics_operator.cli.gateway_access import GatewayOptions, gateway, why
from scalable_topics_operator.cli.gateway_client import Gateway
from scalable_topics_operator.cli.kubernetes import TopicRef, forget_logins

RATES = ("msgRateIn", "byteRateIn", "msgRateOut", "byteRateOut")
"""As Pulsar's statistics name them."""
MOST_LOOKED_AT = 64
"""Segments of which the backlog is asked, since a broker is asked for each."""
ALL_SEGMENTS, ACTIVE_SEGMENTS = "all segments", "active segments"
"""What the backlog of a subscription may be the sum of."""

_THRESHOLDS = dict(zip(RATES, ("msgRateIn", "bytesRateIn", "msgRateOut", "bytesRateOut"), strict=True))
_LOOKS_AT_A_TIME = 8


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """What is known of a segment.

    Args:
        rates: messages and bytes a second, by name; None if not known.
        ratio: the highest of them in parts of its split threshold; None if not known.
        highest: which one that is.
        backlog: messages by subscription; None if not known.
    """

    rates: Mapping[str, float] | None = None
    ratio: float | None = None
    highest: str = ""
    backlog: Mapping[str, int] | None = None

    @property
    def backlog_sum(self) -> int | None:
        """Of all subscriptions together."""
        return None if self.backlog is None else sum(self.backlog.values())


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What is known of a topic's segments.

    Args:
        segments: by id.
        load_age_seconds: how old the load is; None if there is none.
        backlog: messages by subscription: of the whole topic, or of what `backlog_of` says.
        backlog_of: segments that the backlog is the sum of.
        why: why nothing is known; empty if something is.
    """

    segments: Mapping[int, SegmentFacts] = field(default_factory=dict)
    load_age_seconds: float | None = None
    backlog: Mapping[str, int] = field(default_factory=dict)
    backlog_of: str = ALL_SEGMENTS
    why: str = ""

    def of(self, segment_id: int) -> SegmentFacts:
        """What is known of one segment."""
        return self.segments.get(segment_id, SegmentFacts())


def facts_source(options: GatewayOptions | None) -> aclosing[FactsSource]:
    """Who can be asked for facts again and again; one that knows nothing where the gateway is not reached.

    Args:
        options: how it is reached; None if it is not to be asked.
    """
    return aclosing(FactsSource(options))


class FactsSource:
    """Answers what is known of topics, for as long as it is asked: tokens run out, and pods go.

    Args:
        options: how the gateway is reached; None if it is not to be asked.
    """

    def __init__(self, options: GatewayOptions | None) -> None:
        self._options = options
        self._gateway: Gateway | None = None
        self._way = AsyncExitStack()
        self._turn = asyncio.Lock()

    async def look(self, ref: TopicRef, layout: SegmentLayout) -> TopicFacts:
        """What is known of a topic's segments now. Raises nothing: `why` says what is in the way."""
        if self._options is None:
            return TopicFacts(why="not asked for")
        try:
            asked, stats = await self._stats(self._options, ref)
        except CliError as error:
            return TopicFacts(why=why(error))
        newest_first = [*layout.active, *sorted(layout.sealed, key=lambda one: -one.segment_id)]
        return facts_of(stats, await self._backlogs(asked, ref, newest_first[:MOST_LOOKED_AT]), layout.segments)

    async def aclose(self) -> None:
        """Let go of the gateway."""
        async with self._turn:
            self._gateway = None
            await self._way.aclose()

    async def _stats(self, options: GatewayOptions, ref: TopicRef) -> tuple[Gateway, Mapping[str, Any]]:
        kept = self._gateway
        asked = await self._reached(options, None)
        try:
            return asked, await asked.ask(ref, "stats")
        except (Unrecognised, Unreachable):
            if kept is None:
                raise
        # It answered once: another token, or another replica, may do.
        asked = await self._reached(options, asked)
        return asked, await asked.ask(ref, "stats")

    async def _reached(self, options: GatewayOptions, useless: Gateway | None) -> Gateway:
        """The gateway that all looks share; another one if it is the useless one. Raises CliError."""
        async with self._turn:
            if self._gateway is not None and self._gateway is useless:
                self._gateway = None
                await self._way.aclose()
                # The user may have logged in as somebody else, or elsewhere, meanwhile.
                forget_logins()
            if self._gateway is None:
                self._gateway = await self._way.enter_async_context(gateway(options))
            return self._gateway

    async def _backlogs(
        self, asked: Gateway, ref: TopicRef, segments: Iterable[Segment]
    ) -> dict[int, Mapping[str, int]]:
        room = asyncio.Semaphore(_LOOKS_AT_A_TIME)

        async def of(segment: Segment) -> tuple[int, Mapping[str, int] | None]:
            async with room:
                try:
                    found = await asked.cursors(ref, segment_descriptor(segment.hash_range, segment.segment_id))
                except Absent:
                    # Pruned since the layout was read, so all subscriptions have drained it.
                    return segment.segment_id, {}
                except CliError:
                    # The others are shown.
                    return segment.segment_id, None
            return segment.segment_id, {name: one["backlog"] for name, one in found.items() if one.get("counts")}

        looks = await asyncio.gather(*map(of, segments))
        return {one: backlog for one, backlog in looks if backlog is not None}


def facts_of(
    stats: Mapping[str, Any], backlogs: Mapping[int, Mapping[str, int]], segments: Iterable[int]
) -> TopicFacts:
    """What the gateway's answers say.

    Args:
        stats: of the topic.
        backlogs: by segment and subscription, as far as they were asked.
        segments: all that the layout has.
    """
    loads = {int(one): found.get("load") for one, found in ((stats.get("layout") or {}).get("segments") or {}).items()}
    policy = (stats.get("autoScale") or {}).get("policy") or {}
    is_whole = all(one in backlogs for one in segments)
    return TopicFacts(
        {one: _facts(loads.get(one), policy, backlogs.get(one)) for one in {*loads, *backlogs}},
        (stats.get("scaling") or {}).get("loadAgeSeconds"),
        _sums(backlogs.values()) if is_whole else _told(stats),
        ALL_SEGMENTS if is_whole else ACTIVE_SEGMENTS,
    )


def _sums(backlogs: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    total: dict[str, int] = {}
    for of_segment in backlogs:
        for name, messages in of_segment.items():
            total[name] = total.get(name, 0) + messages
    return dict(sorted(total.items()))


def _told(stats: Mapping[str, Any]) -> Mapping[str, int]:
    """Backlog as the statistics have it: on Classic that is what was sampled, and only active segments are."""
    return {name: one.get("msgBacklog", 0) for name, one in (stats.get("subscriptions") or {}).items()}


def _facts(
    load: Mapping[str, Any] | None, policy: Mapping[str, Any], backlog: Mapping[str, int] | None
) -> SegmentFacts:
    rates = {rate: float(load[rate]) for rate in RATES if load.get(rate) is not None} if load else None
    if not rates:
        return SegmentFacts(backlog=backlog)
    ratios = {
        rate: value / threshold
        for rate, value in rates.items()
        if isinstance(threshold := policy.get(f"split.{_THRESHOLDS[rate]}"), int | float) and threshold > 0
    }
    highest = max(ratios, key=lambda rate: ratios[rate], default="")
    return SegmentFacts(rates, ratios.get(highest), highest, backlog)
