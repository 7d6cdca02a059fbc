"""What `stopics layout` shows of a topic while it follows a load up and down: `make show-layout`."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from pulsar import AuthenticationToken
from rich.console import Console
from rich.text import Text

from dev.access import PulsarAccess
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.resources import TOPICS
from tests.integration.operator.conftest import MakeOperator
from tests.support import manifests
from tests.support.callers import make_caller
from tests.support.evidence import Evidence
from tests.support.load_ramp import ALWAYS_COLD, OUT_OF_REACH
from tests.support.paced_traffic import PacedTraffic
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import FAST_FLAGS
from tests.support.stopics import stopics
from tests.support.world import World
from tests.support.world_making import make_world

_FLAGS = (*FAST_FLAGS, "--auto-scale-enabled=true", "--auto-scale-interval-seconds=5", "--settle-window-seconds=600")
_UP, _DOWN = "At the top of a load of eight segments", "When the load is gone"
_PICTURE = Path(__file__).parents[2] / "docs" / "evidence" / "layout-ramp.svg"
_MOST, _SPLIT_RATE = 8, 100.0
_COLUMNS = 128
_PATIENCE_SECONDS = 300.0


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    page = Evidence("layout.md", "A ramp, as stopics layout shows it", "make show-layout", (_UP, _DOWN))
    yield page
    page.write()


@pytest_asyncio.fixture
async def scaled(
    own_operator: MakeOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess
) -> AsyncIterator[World]:
    operator = await own_operator(_FLAGS)
    world = await make_world(kube, view, pulsar, operator.namespace, load={"intervalSeconds": 1})
    await make_caller(kube, operator.namespace, "viewer", ["get"])
    await asyncio.to_thread(operator.start)
    yield world
    await asyncio.to_thread(operator.stop)


@pytest.mark.timeout(900)
async def test_a_ramp_is_seen_in_the_picture(scaled: World, pulsar: PulsarAccess, evidence: Evidence) -> None:
    knobs = {
        "maxSegments": _MOST,
        "split": {**OUT_OF_REACH, "cooldown": "1s", "msgRateIn": int(_SPLIT_RATE)},
        "merge": {**ALWAYS_COLD, "cooldown": "1s", "window": "10s", "msgRateIn": 5},
    }
    topic = f"{scaled.pulsar_namespace}/ramp"
    await scaled.apply(manifests.topic("ramp", topic, subscriptions=["billing"], autoScale=knobs))
    await scaled.until_ready("ramp")
    async with Client(pulsar.service_url, AuthenticationToken(pulsar.superuser_token)) as client:
        producer = await client.producer(topic)
        async with PacedTraffic(producer, lambda _: 6 * _SPLIT_RATE):
            await _until_active(scaled, _MOST)
            # The load of the last children is known once brokers have measured it for a whole period.
            await _until_loaded(scaled)
            await asyncio.to_thread(_PICTURE.write_text, _drawn(await _layout(scaled, FORCE_COLOR="1")))
            above = await _layout(scaled)
        await _until_active(scaled, 2)
        below = await _layout(scaled)
    # A line an epoch, and each split is one.
    assert sum("│" in line for line in above.splitlines()) == _MOST
    evidence.show(
        _UP,
        f"Messages of 512 keys at six times `split.msgRateIn`; at most {_MOST} segments. `stopics layout ramp`:",
        "",
        "```text",
        *above.rstrip().splitlines(),
        "```",
        "",
        f"The same on a terminal with colours: ![the ring over the epochs of a ramp]({_PICTURE.name})",
    )
    evidence.show(_DOWN, "```text", *below.rstrip().splitlines(), "```")


async def _layout(world: World, **environment: str) -> str:
    access = (f"--operator-namespace={world.namespace}", f"--service-account={world.namespace}/viewer")
    said = await stopics(
        "layout", "ramp", "--epochs", "0", "-n", world.namespace, *access, COLUMNS=str(_COLUMNS), **environment
    )
    return said.done().output.replace(world.pulsar_namespace, "acme/shop")


async def _until_loaded(world: World) -> None:
    deadline = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
    while asyncio.get_running_loop().time() < deadline:
        shown = await stopics(
            *("layout", "ramp", "-n", world.namespace, "-o", "json", f"--operator-namespace={world.namespace}"),
            f"--service-account={world.namespace}/viewer",
        )
        active = [one for one in shown.done().json["segments"] if one["state"] == "Active"]
        if all(one["loadRatio"] for one in active):
            return
        await asyncio.sleep(1)
    raise AssertionError("the load of some segment was never known")


async def _until_active(world: World, count: int) -> Body:
    return await world.until(
        TOPICS,
        "ramp",
        lambda body: bool(body["status"]["segments"]["active"] == count),
        what=f"has {count} segments",
        within_seconds=_PATIENCE_SECONDS,
    )


def _drawn(output: str) -> str:
    """A terminal's output as a drawing that loads nothing from anywhere."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(output))
    drawing = console.export_svg(title="stopics layout ramp")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawing, flags=re.DOTALL)
