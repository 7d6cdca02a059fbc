"""All that a pipeline on Spark may lose, and what topics that follow it do meanwhile: `make show-pipeline`."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pulsar import AuthenticationToken

from dev.instance import LocalCluster, Shape
from scalable_topics.sdk import Client
from scalable_topics_operator.backends.admin.credentials import Credentials, Token
from scalable_topics_operator.cluster.installation import CONFIG_MAP_NAME
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import CONFIG_MAPS, CONNECTIONS, TOPICS
from scalable_topics_operator.controllers.pipeline_keeper import records_topic
from scalable_topics_operator.load.record_follower import Followed, RecordFollower
from tests.integration.operator.conftest import MakeOperator
from tests.support import manifests
from tests.support.embedded_pipeline import piped_world, until_followed
from tests.support.evidence import Evidence, table
from tests.support.paced_traffic import PacedTraffic
from tests.support.processes import command_lines
from tests.support.pulsar_view import PulsarView
from tests.support.waiting import eventually
from tests.support.world import World

_INTERVAL_SECONDS, _SAMPLE_SECONDS = 5, 5
_FLAGS = ("--auto-scale-enabled=true", f"--auto-scale-interval-seconds={_INTERVAL_SECONDS}")
_PART = "What was lost"
_SEGMENTS, _RATE = 4, 120.0
_WATCHED_SECONDS = 30.0
_CLOCK_AHEAD_SECONDS = 300
# Ordinary load is thrice what is cold and a third of what is split; whoever takes silence for idleness merges at once.
_STEADY: dict[str, Any] = {
    "maxSegments": 8,
    "split": {"cooldown": "0s", "msgRateIn": 100, "bytesRateIn": "1G", "msgRateOut": "1M", "bytesRateOut": "1G"},
    "merge": {
        "cooldown": "0s",
        "window": "0s",
        "msgRateIn": 10,
        "bytesRateIn": "100M",
        "msgRateOut": "100k",
        "bytesRateOut": "100M",
    },
}


class Losses:
    """A topic with a steady load, and what is done to its pipeline.

    Args:
        world: where it all is.
        cluster: the brokers.
        follower: reads the records, as the operator does.
        folder: of the pipeline.
    """

    def __init__(self, world: World, cluster: LocalCluster, follower: RecordFollower, folder: Path) -> None:
        self._world = world
        self._cluster = cluster
        self._follower = follower
        self._folder = folder
        self.rows: list[tuple[str, str, str]] = []

    async def lose(self, what: str, how: Callable[[], Awaitable[None]]) -> None:
        """Do something, and see that nothing wrong is done and all comes back by itself."""
        began = time.monotonic()
        await how()
        followed = await eventually(
            self._followed,
            lambda found: found.came_at_seconds > began + 1 and _is_complete(found),
            what=f"after {what}: the pipeline tells of everything again",
            within_seconds=300,
            every_seconds=0.5,
        )
        seconds = followed.came_at_seconds - began
        await until_followed(self._world)
        # What has been mistaken for idleness would be merged by now.
        await asyncio.sleep(_WATCHED_SECONDS)
        topic = await self._world.get(TOPICS, "steady")
        assert topic["status"]["segments"]["active"] == _SEGMENTS, what
        assert not [one for one in topic["status"].get("actions", ()) if one["request"]["kind"] == "AutoScale"], what
        self.rows.append((what, "nothing", f"{seconds:.0f} s"))

    async def driver_killed(self) -> None:
        """kill -9 of the driver."""
        os.kill(self._driver(), signal.SIGKILL)

    async def checkpoint_deleted(self) -> None:
        """All that the pipeline remembers is gone, and so is its driver."""
        os.kill(self._driver(), signal.SIGKILL)
        await asyncio.to_thread(shutil.rmtree, next(self._folder.glob("*/work")))

    async def sink_emptied(self) -> None:
        """The topic of records is deleted."""
        await self._world.pulsar.delete_topic(self._follower.topic, force=True)

    async def broker_stopped(self) -> None:
        """One of two brokers is gone for a while."""
        await asyncio.to_thread(self._cluster.pulsar.stop_broker, 1)
        await asyncio.sleep(_WATCHED_SECONDS)
        await asyncio.to_thread(self._cluster.pulsar.start_broker, 1)

    async def clock_ahead(self) -> None:
        """One of two brokers comes back with another clock, and serves segments."""
        await asyncio.to_thread(self._cluster.pulsar.stop_broker, 1)
        await asyncio.to_thread(self._cluster.pulsar.start_broker, 1, clock_ahead_seconds=_CLOCK_AHEAD_SECONDS)
        for name in (await self._world.segment_names("steady", "steady")).values():
            await self._world.pulsar.unload_topic(name)

    def _driver(self) -> int:
        (driver,) = command_lines("segment_load stream", str(self._folder))
        return driver

    async def _followed(self) -> Followed:
        return self._follower.followed


def _is_complete(found: Followed) -> bool:
    sample = found.sample
    if sample is None or found.problem or sample.missing or not sample.settled:
        return False
    return sum("/steady-segment-" in name for name in sample.segments) == _SEGMENTS


@pytest.mark.timeout(2400)
async def test_whatever_is_lost_nothing_wrong_is_done_and_it_comes_back_by_itself(
    own_operator: MakeOperator,
    kube: KubeClient,
    local_cluster: Callable[[Shape], LocalCluster],
    tmp_path: Path,
) -> None:
    page = Evidence(
        "pipeline-losses.md", "What a pipeline may lose without a wrong action", "make show-pipeline", (_PART,)
    )
    cluster = await asyncio.to_thread(local_cluster, Shape(kubernetes=False, brokers=2))
    pulsar, folder = cluster.pulsar.access, tmp_path / "pipelines"
    async with PulsarView(pulsar.admin_url, pulsar.superuser_token) as view:
        operator, world = await piped_world(
            *(own_operator, kube, view, pulsar, folder, *_FLAGS), intervalSeconds=_SAMPLE_SECONDS
        )
        topic = f"{world.pulsar_namespace}/steady"
        await world.apply(manifests.topic("steady", topic, initial=_SEGMENTS, autoScale=_STEADY))
        await world.until_ready("steady")
        installation = await kube.get(CONFIG_MAPS, operator.namespace, CONFIG_MAP_NAME)
        connection = await world.get(CONNECTIONS, "pulsar")
        credentials = Credentials(Token(pulsar.superuser_token))
        records = records_topic(connection, installation["data"]["installationId"][:8])
        follower = RecordFollower(pulsar.service_url, records, lambda: credentials)
        follower.start()
        losses = Losses(world, cluster, follower, folder)
        try:
            async with Client(pulsar.service_url, AuthenticationToken(pulsar.superuser_token)) as client:
                producer = await client.producer(topic)
                rate = _RATE
                async with PacedTraffic(producer, lambda _: rate):
                    await losses.lose("nothing yet", _nothing)
                    await losses.lose("the driver: killed", losses.driver_killed)
                    await losses.lose("driver, checkpoint and state: deleted", losses.checkpoint_deleted)
                    await losses.lose("the topic of records: deleted", losses.sink_emptied)
                    await losses.lose(f"a broker: stopped for {_WATCHED_SECONDS:.0f} s", losses.broker_stopped)
                    ahead = f"a broker's clock: {_CLOCK_AHEAD_SECONDS} s ahead, all segments moved"
                    await losses.lose(ahead, losses.clock_ahead)
                    # And the load is still acted on.
                    rate = 5 * _RATE
                    began = time.monotonic()
                    await world.until(
                        TOPICS,
                        "steady",
                        lambda body: int(body["status"]["segments"]["active"]) > _SEGMENTS,
                        what="is split",
                        within_seconds=120,
                    )
                    split_seconds = time.monotonic() - began
        finally:
            follower.stop()
            await asyncio.to_thread(follower.join, 10)
            await asyncio.to_thread(operator.stop)
    page.show(
        _PART,
        f"Two brokers; a topic of {_SEGMENTS} segments with {_RATE:.0f} messages a second, each segment thrice above",
        "its merge threshold and far below its split threshold; a merge window and cool-downs of 0 s, so that",
        "whatever took silence for idleness would merge at the next decision. Nobody helps.",
        "",
        *table(("what was lost", "what was done", "until the pipeline told of everything again"), losses.rows),
        "",
        f"Five times the load afterwards: split {split_seconds:.0f} s later.",
    )
    assert page.write()


async def _nothing() -> None:
    """What it is like when nothing is lost."""
