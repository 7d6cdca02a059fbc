"""What brokers' statistics say of topics, read from their two documents. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from scalable_topics.layout.json_fields import MALFORMED
from scalable_topics_operator.autoscale.load import Rates

_PERSISTENT = "persistent"
_LOOKS_MISSED = 3
_DEFAULT_SECONDS = 60.0
_MOST_SECONDS = 24 * 3600.0
_NO_RATES = Rates()


@dataclass(frozen=True, slots=True)
class StatisticsTimes:
    """When brokers look at their topics.

    Args:
        period_seconds: how often.
        first_after_seconds: how long after their start for the first time.
    """

    period_seconds: float = _DEFAULT_SECONDS
    first_after_seconds: float = _DEFAULT_SECONDS

    @classmethod
    def of(cls, configuration: Mapping[str, Any]) -> StatisticsTimes:
        """What brokers' runtime configuration says; their defaults where it says nothing that can be meant.

        Until its first look a broker shows nothing of what it serves.
        """
        often, first = "statsUpdateFrequencyInSecs", "statsUpdateInitialDelayInSecs"
        return cls(_seconds(configuration.get(often)), _seconds(configuration.get(first)))

    @property
    def unseen_seconds(self) -> float:
        """For how long a topic that a broker serves may be in no answer of it, with a period to spare."""
        return self.period_seconds + max(self.period_seconds, self.first_after_seconds)

    def most_gap_seconds(self, interval_seconds: float) -> float:
        """How far apart two looks may be for what lay between to be taken for more of the same.

        A period, or some missed looks where these are further apart than that.

        Args:
            interval_seconds: how far apart they are meant to be.
        """
        return max(self.period_seconds, _LOOKS_MISSED * interval_seconds)


@dataclass(frozen=True, slots=True)
class Reading:
    """One topic in one broker's statistics.

    Args:
        rates: as of the broker's last round of statistics.
        messages_in: published since the broker loaded the topic; a lower number than before tells of a reload.
        backlog: messages not yet acknowledged, by subscription; shared by many, so neither changed nor pickled.
    """

    rates: Rates
    messages_in: int
    backlog: Mapping[str, int] = field(default_factory=dict)


def read_bulk(document: Any) -> Iterator[tuple[str, Reading]]:
    """Topics and readings in the answer of `/broker-stats/topics`: namespace, bundle, domain, topic.

    What is not as every broker writes it is left out: a topic without a reading is not known, which stops decisions.
    """
    for bundles in _values(document):
        for domains in _values(bundles):
            topics = domains.get(_PERSISTENT) if isinstance(domains, Mapping) else None
            if isinstance(topics, Mapping):
                for name, statistics in topics.items():
                    reading = read_bulk_topic(statistics)
                    if reading is not None:
                        yield str(name), reading


def read_bulk_topic(statistics: Any) -> Reading | None:
    """A topic's reading from its part of such an answer; None if that cannot be read or holds no usable numbers."""
    return read_topic(statistics, counter="msgInCount", backlog="msgBacklog")


def read_topic(statistics: Any, *, counter: str = "msgInCounter", backlog: str = "msgBacklog") -> Reading | None:
    """A topic's reading from its own statistics; None if they cannot be read or hold no usable numbers.

    Args:
        statistics: of one topic.
        counter: the field that counts published messages; the bulk answer names it otherwise.
        backlog: the field of a subscription that counts its backlog.
    """
    try:
        rates = Rates(
            float(statistics["msgRateIn"]),
            float(statistics["msgThroughputIn"]),
            float(statistics["msgRateOut"]),
            float(statistics["msgThroughputOut"]),
        )
        subscriptions = statistics.get("subscriptions") or {}
        found = {str(name): int(one.get(backlog) or 0) for name, one in subscriptions.items()}
        reading = Reading(
            rates if any(rates.values) else _NO_RATES,
            int(statistics.get(counter) or 0),
            found if any(found.values()) else _nothing_to_read(tuple(found)),
        )
    except MALFORMED:
        return None
    return reading if rates.is_usable else None


@functools.lru_cache(maxsize=256)
def _nothing_to_read(subscriptions: tuple[str, ...]) -> Mapping[str, int]:
    """One mapping for very many segments with subscriptions of the same names."""
    return MappingProxyType(dict.fromkeys(subscriptions, 0))


def read_segment(stats: Any, segment_id: int) -> Reading | None:
    """A segment's reading from the statistics of a topic whose layout the brokers own; None if these have none of it.

    Brokers report the load of a segment when it has changed by a quarter or so.
    """
    try:
        load = stats["layout"]["segments"][str(segment_id)]["load"]
        rates = Rates(
            float(load["msgRateIn"]),
            float(load["byteRateIn"]),
            float(load["msgRateOut"]),
            float(load["byteRateOut"]),
        )
        subscriptions = stats.get("subscriptions") or {}
        backlog = {
            str(name): int(one["segments"][str(segment_id)].get("msgBacklog") or 0)
            for name, one in subscriptions.items()
            if str(segment_id) in (one.get("segments") or {})
        }
    except MALFORMED:
        return None
    return Reading(rates, 0, backlog) if rates.is_usable else None


def _values(document: Any) -> Iterator[Any]:
    return iter(document.values()) if isinstance(document, Mapping) else iter(())


def _seconds(setting: Any) -> float:
    try:
        seconds = float(setting)
    except MALFORMED:
        return _DEFAULT_SECONDS
    return seconds if 0 <= seconds <= _MOST_SECONDS else _DEFAULT_SECONDS
