"""Pictures of the console: a topic during a ramp, a thousand topics, five hundred segments: `make show-console`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect
from pulsar import AuthenticationToken

from dev.access import PulsarAccess
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.resources import TOPICS
from tests.integration.operator.conftest import MakeOperator
from tests.support import manifests
from tests.support.browser import Tab, browser_tab
from tests.support.callers import OUR_KINDS, make_caller
from tests.support.console_fleet import console_fleet
from tests.support.evidence import Evidence, table
from tests.support.load_ramp import ALWAYS_COLD, OUT_OF_REACH
from tests.support.paced_traffic import PacedTraffic
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import FAST_FLAGS
from tests.support.stopics import stopics
from tests.support.world import World
from tests.support.world_making import make_world
from tests.unit.gateway.model_kubernetes import ALICE

_FOLDER = Path(__file__).parents[2] / "docs" / "evidence"
_FLAGS = (*FAST_FLAGS, "--auto-scale-enabled=true", "--auto-scale-interval-seconds=5")
_RAMP, _FLEET, _HISTORY = "A topic during a ramp", "A thousand topics", "Five hundred segments"
_WIDTH, _HEIGHT = 1200, 780
_SPLIT_RATE, _MOST_SEGMENTS, _SETTLED_SEGMENTS = 100.0, 8, 4
_PATIENCE_SECONDS = 400.0
_DRAWN = "new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))"
_SCORES = ("picture of", "axe: violations", "rules that hold", "rules it leaves to people")


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    page = Evidence("console.md", "The console", "make show-console", (_RAMP, _FLEET, _HISTORY))
    yield page
    page.write()


class Album:
    """Pictures of a tab, and what axe says of each."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab
        self._rows: list[tuple[object, ...]] = []
        self._shown: list[str] = []

    async def take(self, name: str, of: str) -> None:
        """Take a picture, and have axe judge what is on it."""
        # Nothing is in the midst of being drawn.
        await self._tab.page.evaluate(_DRAWN)
        await self._tab.page.screenshot(path=_FOLDER / f"console-{name}.png")
        verdict = await self._tab.judge()
        assert verdict.violations == []
        self._rows.append((of, len(verdict.violations), verdict.passed, ", ".join(verdict.undecided) or "-"))
        self._shown += ["", f"![{of}](console-{name}.png)"]

    def write(self, of: str, text: str) -> None:
        """Add what a terminal shows at this moment."""
        self._shown += ["", f"{of}:", "", "```", *text.splitlines(), "```"]

    @property
    def lines(self) -> list[str]:
        return [*table(_SCORES, self._rows), *self._shown]


@pytest_asyncio.fixture
async def ramped(
    own_operator: MakeOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess
) -> AsyncIterator[tuple[World, str]]:
    """A world with a topic that scales, and host and port of the gateway."""
    operator = await own_operator(_FLAGS)
    world = await make_world(kube, view, pulsar, operator.namespace, load={"intervalSeconds": 1})
    await asyncio.to_thread(operator.start)
    knobs = {
        "maxSegments": _MOST_SEGMENTS,
        "split": {**OUT_OF_REACH, "cooldown": "1s", "msgRateIn": int(_SPLIT_RATE)},
        "merge": {**ALWAYS_COLD, "cooldown": "1s", "window": "10s", "msgRateIn": 5},
    }
    name = f"{world.pulsar_namespace}/ramp"
    await world.apply(manifests.topic("ramp", name, autoScale=knobs, subscriptions=["billing"]))
    await world.until_ready("ramp")
    yield world, operator.gateway_address
    await asyncio.to_thread(operator.stop)


@pytest.mark.timeout(1200)
async def test_a_ramp_is_watched_in_the_console(
    ramped: tuple[World, str], pulsar: PulsarAccess, evidence: Evidence
) -> None:
    world, address = ramped
    token = await make_caller(world.kube, world.namespace, "watcher", ["*"], resources=OUR_KINDS)
    async with (
        Client(pulsar.service_url, AuthenticationToken(pulsar.superuser_token)) as client,
        browser_tab(width=_WIDTH, height=_HEIGHT) as tab,
    ):
        page, album = tab.page, Album(tab)
        await tab.open(address, token)
        await page.get_by_role("link", name=f"topic://{world.pulsar_namespace}/ramp").click()
        producer = await client.producer(f"{world.pulsar_namespace}/ramp")
        async with PacedTraffic(producer, lambda _: 8 * _SPLIT_RATE):
            await expect(page.locator(".block.level-5").first).to_be_attached(timeout=60_000)
            await album.take("ramp-begins", "one segment with eight times the load of a split")
            await _until_active(world, 4)
            await page.locator("svg.ring").focus()
            await expect(page.get_by_text("Entries left")).to_be_visible()
            await album.take("ramp-splits", "its segments are being split")
            album.write("`stopics layout ramp` meanwhile", await _layout_in_a_terminal(world))
            await _until_active(world, _MOST_SEGMENTS)
            await expect(
                page.locator(".block:not(.level-sealed):not(.level-draining):not(.level-unknown)")
            ).to_have_count(_MOST_SEGMENTS, timeout=60_000)
            await album.take("ramp-peak", "as many as the policy allows")
            album.write("`stopics layout ramp` meanwhile", await _layout_in_a_terminal(world))
            await page.get_by_role("tab", name="Decisions").click()
            await expect(page.get_by_role("table", name="What each rule found")).to_be_visible()
            await album.take("ramp-decisions", "why nothing more is done")
        await page.get_by_role("tab", name="Segments").click()
        await _until_active(world, _SETTLED_SEGMENTS, at_most=True)
        await page.get_by_label("true to the clock").check()
        await album.take("ramp-merges", "the load is gone and segments are merged, true to the clock")
        assert tab.troubles == []
    evidence.show(
        _RAMP,
        "A real operator, API server and broker. Messages of 512 keys at eight times `split.msgRateIn`, at most "
        f"{_MOST_SEGMENTS} segments; then none. The page is never loaded again.",
        "",
        *album.lines,
    )


@pytest.mark.timeout(300)
async def test_a_large_fleet_and_a_long_history_are_pictured(evidence: Evidence) -> None:
    async with (
        console_fleet(topics=1000, records=500) as world,
        browser_tab(dark=True, width=_WIDTH, height=_HEIGHT) as tab,
    ):
        page, album = tab.page, Album(tab)
        await tab.open(world.replica.gateway.address, ALICE)
        count = page.locator(".count")
        await expect(count).to_have_text("1000 of 1000 topics")
        await album.take("fleet", "the fleet, in dark")

        async def narrow() -> None:
            await page.get_by_label("State").select_option("Stalled")
            await expect(count).to_have_text("19 of 1000 topics")

        seconds = await tab.busy_seconds(narrow)
        await album.take("fleet-filtered", "those that are stalled")
        evidence.show(
            _FLEET,
            f"A gateway over objects in memory. A filter takes {seconds * 1000:.0f} ms of processor time in the page.",
            "",
            *album.lines,
        )
        await page.get_by_label("State").select_option("")
        await page.get_by_role("link", name="topic://acme/shop/orders").click()
        album = Album(tab)
        await expect(page.locator("#segment-0")).to_be_attached()
        await page.locator("svg.ring").focus()
        await expect(page.get_by_text("Entries left")).to_be_visible()
        await album.take("history", "the end of a layout of 500 segments, in dark")

        async def draw() -> None:
            await page.get_by_label("all in view").check()
            await page.evaluate(_DRAWN)

        seconds = await tab.busy_seconds(draw)
        await album.take("history-whole", "all of it")
        evidence.show(
            _HISTORY,
            f"The same. To draw all of it anew takes {seconds * 1000:.0f} ms of processor time in the page.",
            "",
            *album.lines,
        )
        assert tab.troubles == []


async def _layout_in_a_terminal(world: World) -> str:
    """The same by the command line, which finds the gateway by the operator's Leases."""
    where, account = world.namespace, f"{world.namespace}/watcher"
    options = ("-n", where, f"--operator-namespace={where}", f"--service-account={account}")
    return (await stopics("layout", "ramp", *options, COLUMNS="118", NO_COLOR="1")).done().output


async def _until_active(world: World, count: int, *, at_most: bool = False) -> Body:
    def holds(topic: Body) -> bool:
        active = topic["status"]["segments"]["active"]
        return bool(active <= count if at_most else active >= count)

    return await world.until(TOPICS, "ramp", holds, what=f"has {count} segments", within_seconds=_PATIENCE_SECONDS)
