"""The console of a real operator, with real topics, tokens and rights, in a real Chromium."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest_asyncio
from playwright.async_api import expect
from pulsar import AuthenticationToken

from dev.access import PulsarAccess
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS
from tests.integration.operator.conftest import MakeOperator
from tests.support import manifests
from tests.support.browser import Tab, browser_tab
from tests.support.callers import OUR_KINDS, make_caller
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import FAST_FLAGS
from tests.support.world import World
from tests.support.world_making import make_world

_FLAGS = (*FAST_FLAGS, "--auto-scale-enabled=true", "--auto-scale-interval-seconds=5")
# Nothing is to be split or merged but by hand.
_KNOBS = {"minSegments": 2, "maxSegments": 2}
_SEEING = ("get", "list", "lookup")


@dataclass(frozen=True, slots=True)
class Served:
    """A topic `orders` of two segments, and who may see it, or change it.

    Args:
        world: where it is.
        address: of the gateway.
        reader: token of one who may see everything and change nothing.
        editor: token of one who may do everything.
    """

    world: World
    address: str
    reader: str
    editor: str

    @property
    def topic(self) -> str:
        return f"topic://{self.world.pulsar_namespace}/orders"


@pytest_asyncio.fixture
async def served(
    own_operator: MakeOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess
) -> AsyncIterator[Served]:
    operator = await own_operator(_FLAGS)
    world = await make_world(kube, view, pulsar, operator.namespace, load={"intervalSeconds": 1})
    await asyncio.to_thread(operator.start)
    await world.apply(
        manifests.topic(
            "orders", f"{world.pulsar_namespace}/orders", initial=2, subscriptions=["audit"], autoScale=_KNOBS
        )
    )
    await world.until_ready("orders")
    reader = await make_caller(kube, operator.namespace, "reader", _SEEING, resources=OUR_KINDS)
    editor = await make_caller(kube, operator.namespace, "editor", ["*"], resources=OUR_KINDS)
    yield Served(world, operator.gateway_address, reader, editor)
    await asyncio.to_thread(operator.stop)


async def test_who_may_only_read_sees_everything_of_a_topic(served: Served, pulsar: PulsarAccess) -> None:
    async with (
        Client(pulsar.service_url, AuthenticationToken(pulsar.superuser_token)) as client,
        browser_tab() as tab,
    ):
        producer = await client.producer(f"{served.world.pulsar_namespace}/orders")
        for number in range(20):
            await producer.send(b"hello", key=f"key-{number}")
        await _open_topic(tab, served, served.reader)
        page = tab.page
        await expect(page.locator("svg.ring [role=option]")).to_have_count(2)
        await expect(page.get_by_role("button", name="Allow changes")).to_be_hidden()
        await page.locator("#segment-0").click()
        cursors = page.get_by_role("table", name="Cursors, as its broker shows them now")
        await expect(cursors.get_by_role("row", name="audit")).to_be_visible()
        # What its leader has sampled, and nothing is unknown of.
        await expect(page.locator("#segment-0.level-0")).to_be_attached()
        await page.get_by_role("tab", name="Subscriptions").click()
        await expect(page.get_by_role("row", name="audit").first).to_contain_text("spec")
        await page.get_by_role("tab", name="Decisions").click()
        await expect(page.get_by_role("table", name="What each rule found")).to_contain_text("load-split")
        await expect(page.get_by_role("table", name="Conditions")).to_contain_text("Ready")
        await expect(page.get_by_role("table", name="The last operations")).to_contain_text("Create")
        await page.get_by_role("tab", name="Policy").click()
        knob = page.get_by_role("table", name="The effective policy").get_by_role("row", name="maxSegments")
        await expect(knob).to_contain_text(f"ScalableTopic {served.world.namespace}/orders")
        assert await tab.axe() == []
        assert tab.troubles == []
        await producer.close()


async def test_a_split_asked_for_in_the_console_is_done_and_seen(served: Served) -> None:
    async with browser_tab() as tab:
        page = tab.page
        await _open_topic(tab, served, served.editor)
        await page.get_by_role("button", name="Allow changes").click()
        await page.locator("#segment-0").click()
        await page.get_by_role("button", name="Split…").click()
        await page.get_by_role("button", name="Dry run").click()
        await expect(page.locator("dialog pre")).to_contain_text("children")
        assert set((await served.world.layout("orders")).segments) == {0, 1}
        await page.get_by_role("button", name="Split now").click()
        await expect(page.locator("dialog")).to_contain_text("Done.", timeout=40_000)
        await page.keyboard.press("Escape")
        await expect(page.locator("#segment-3")).to_be_attached()
        layout = await served.world.layout("orders")
        assert sorted(one.segment_id for one in layout.active) == [1, 2, 3]
        operations = await served.world.kube.list_all(SEGMENT_OPERATIONS, served.world.namespace)
        assert sorted(bool(one["spec"].get("dryRun")) for one in operations) == [False, True]
        await page.get_by_role("tab", name="Decisions").click()
        await expect(page.get_by_role("table", name="The last operations")).to_contain_text("0 → 2, 3")
        assert tab.troubles == []


async def _open_topic(tab: Tab, served: Served, token: str) -> None:
    await tab.open(served.address, token)
    await tab.page.get_by_role("link", name=served.topic).click()
    await expect(tab.page.locator("#segment-0")).to_be_attached()
