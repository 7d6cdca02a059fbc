"""Direct sampling: one bulk call a broker, or one a segment where brokers may not be asked one by one (R34)."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable, Mapping, Sequence

from scalable_topics.layout import TopicName
from scalable_topics_operator.backends.admin.cluster_api import ClusterApi
from scalable_topics_operator.backends.admin.scalable_api import ScalableApi
from scalable_topics_operator.backends.admin.topic_api import TopicApi
from scalable_topics_operator.load.sample import LoadSample
from scalable_topics_operator.load.sampling import Sampling
from scalable_topics_operator.load.statistics import Reading, StatisticsTimes, read_bulk_topic, read_segment, read_topic
from scalable_topics_operator.operations.errors import AccessDenied, BackendError, TopicMissing

_PERIOD_SECONDS = 300.0


class DirectSampler:
    """Asks all brokers of a cluster what they have.

    Args:
        cluster: the cluster; its credentials must be a superuser's.
        interval_seconds: how far apart samples are meant to be.
        timeout_seconds: how long one broker may take; one that takes longer is missing from the sample.
    """

    def __init__(self, cluster: ClusterApi, interval_seconds: float, timeout_seconds: float) -> None:
        self._cluster = cluster
        self._interval_seconds = interval_seconds
        self._timeout_seconds = timeout_seconds
        self._sampling = Sampling()
        self._times = StatisticsTimes()
        self._period_read_at = float("-inf")

    async def sample(self, brokers: tuple[str, ...]) -> LoadSample:
        """Ask these brokers, `host:port` each. Raises BackendError when the cluster answers nothing at all."""
        if time.monotonic() - self._period_read_at > _PERIOD_SECONDS:
            self._times = StatisticsTimes.of(await self._configuration())
            self._period_read_at = time.monotonic()
        at_ms = time.time_ns() // 1_000_000
        answers = await asyncio.gather(*(self._ask(broker) for broker in brokers))
        by_broker = dict(zip(brokers, answers, strict=True))
        return self._sampling.take(
            {broker: answer for broker, answer in by_broker.items() if not isinstance(answer, str)},
            {broker: answer for broker, answer in by_broker.items() if isinstance(answer, str)},
            at_ms=at_ms,
            times=self._times,
            interval_seconds=self._interval_seconds,
        )

    async def _configuration(self) -> Mapping[str, str]:
        """Of the brokers; nothing where it may not be read."""
        try:
            return await self._cluster.runtime_configuration()
        except AccessDenied:
            return {}

    async def _ask(self, broker: str) -> list[tuple[str, Reading]] | str:
        """What a broker has, or why that is not known."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                # Names are the same as in the sample before, which is still there.
                return [
                    (sys.intern(name), reading)
                    async for name, statistics in self._cluster.topic_loads(broker)
                    if (reading := read_bulk_topic(statistics)) is not None
                ]
        except TimeoutError:
            return f"no answer within {self._timeout_seconds:.0f} s"
        except BackendError as error:
            return str(error)


async def sample_topic(
    topics: TopicApi, segment_topics: Iterable[str], sampling: Sampling, interval_seconds: float
) -> LoadSample:
    """Ask for the segments of one topic, each by itself: behind a proxy, and while nobody samples the cluster.

    Args:
        topics: the cluster.
        segment_topics: full names of its active segments.
        sampling: remembers this topic's earlier rounds.
        interval_seconds: how far apart these are meant to be.

    Raises BackendError when one of them cannot be asked: partial totals never decide.
    """
    at_ms = time.time_ns() // 1_000_000
    names = list(segment_topics)
    readings = await asyncio.gather(*(_read(topics, name) for name in names))
    found = [(name, reading) for name, reading in zip(names, readings, strict=True) if reading is not None]
    return _sample(sampling, found, at_ms, interval_seconds)


async def sample_native_topic(
    scalable: ScalableApi,
    topic: TopicName,
    segment_topics: Mapping[int, str],
    sampling: Sampling,
    interval_seconds: float,
) -> LoadSample:
    """Ask for the load of one topic whose layout the brokers own, which they tell of all its segments at once.

    Args:
        scalable: the cluster.
        topic: its name.
        segment_topics: full names of its active segments, by id.
        sampling: remembers this topic's earlier rounds.
        interval_seconds: how far apart these are meant to be.

    Raises BackendError.
    """
    at_ms = time.time_ns() // 1_000_000
    stats = await scalable.stats(topic)
    readings = {segment_id: read_segment(stats, segment_id) for segment_id in segment_topics}
    found = [(segment_topics[one], reading) for one, reading in readings.items() if reading is not None]
    return _sample(sampling, found, at_ms, interval_seconds)


def _sample(
    sampling: Sampling, found: Sequence[tuple[str, Reading]], at_ms: int, interval_seconds: float
) -> LoadSample:
    return sampling.take({"": found}, {}, at_ms=at_ms, times=StatisticsTimes(), interval_seconds=interval_seconds)


async def _read(topics: TopicApi, name: str) -> Reading | None:
    try:
        return read_topic(await topics.stats(name, precise_backlog=False))
    except TopicMissing:
        return None
