"""The console for those who use a keyboard or a screen reader, in dark and in light, and with much to show."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.support.browser import browser_tab
from tests.support.console_fleet import console_fleet
from tests.unit.gateway.model_kubernetes import ALICE

ORDERS_PLACE = "#/topic/acme/shop/orders"
_TABS = ("Segments", "Subscriptions", "Decisions", "Policy")
# Of the main thread's processor time, so that a busy machine changes nothing; a person notices some 0.1 s.
_FLUID_SECONDS = 0.5


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_axe_has_nothing_against_any_page(dark: bool) -> None:
    async with console_fleet(topics=120) as world, browser_tab(dark=dark) as tab:
        page, address = tab.page, world.replica.gateway.address
        await page.goto(f"http://{address}/console/")
        await expect(page.get_by_label("Kubernetes token")).to_be_visible()
        assert await tab.axe() == []
        await tab.open(address, ALICE)
        await expect(page.locator(".count")).to_have_text("120 of 120 topics")
        assert await tab.axe() == []
        await page.get_by_role("link", name="topic://acme/shop/orders").click()
        await expect(page.locator("#segment-0")).to_be_attached()
        await page.locator("svg.ring").focus()
        await expect(page.get_by_text("Entries left")).to_be_visible()
        for name in _TABS:
            await page.get_by_role("tab", name=name).click()
            await expect(page.get_by_role("tabpanel", name=name).get_by_role("table").first).to_be_visible()
            assert await tab.axe() == [], name
            assert "[object" not in await page.locator("main").inner_text()
        await page.get_by_role("tab", name="Segments").click()
        await page.get_by_role("button", name="Allow changes").click()
        await page.get_by_role("button", name="Split…").click()
        assert await tab.axe() == []
        assert tab.troubles == []


async def test_everything_is_reached_by_keys_and_said() -> None:
    async with console_fleet() as world, browser_tab() as tab:
        page, keys = tab.page, tab.page.keyboard
        await tab.open(world.replica.gateway.address, ALICE, ORDERS_PLACE)
        await expect(page.get_by_role("heading", name="topic://acme/shop/orders")).to_be_focused()
        ring = page.get_by_role("listbox", name="Segments over time")
        await expect(ring.get_by_role("option").first).to_be_attached()
        for _ in range(12):
            await keys.press("Tab")
            if await ring.evaluate("element => element === document.activeElement"):
                break
        await expect(ring).to_be_focused()
        await keys.press("Home")
        await expect(ring).to_have_attribute("aria-activedescendant", "segment-0")
        await expect(page.get_by_role("status").filter(has_text="Segment 0, 0000-3fff, sealed")).to_be_attached()
        await keys.press("ArrowRight")
        child = await ring.get_attribute("aria-activedescendant")
        assert child not in (None, "segment-0")
        await expect(page.locator(f"#{child}")).to_have_attribute("aria-selected", "true")
        await keys.press("ArrowLeft")
        await expect(page.get_by_role("heading", name="Segment 0")).to_be_visible()
        await page.get_by_role("tab", name="Segments").focus()
        await keys.press("ArrowLeft")
        await expect(page.get_by_role("tab", name="Policy")).to_be_focused()
        await expect(page.get_by_role("tabpanel", name="Policy")).to_contain_text("split.msgRateIn")


async def test_the_table_beside_the_picture_tells_the_same() -> None:
    async with console_fleet() as world, browser_tab() as tab:
        page = tab.page
        await tab.open(world.replica.gateway.address, ALICE, ORDERS_PLACE)
        options = page.locator("svg.ring [role=option]")
        await expect(options.first).to_be_attached()
        drawn = {await one.get_attribute("id") for one in await options.all()}
        row_ids: set[str] = set()
        while True:
            for cell in await page.locator("tbody th[scope=row] button.link").all():
                row_ids.add(f"segment-{await cell.inner_text()}")
            forth = page.get_by_role("navigation", name="Pages of: Segments").get_by_role("button", name="Next")
            if not await forth.is_visible() or await forth.is_disabled():
                break
            await forth.click()
        assert row_ids == drawn
        assert len(drawn) >= 40


async def test_dark_or_light_is_chosen_and_kept() -> None:
    async with console_fleet() as world, browser_tab(dark=True) as tab:
        page = tab.page
        await page.goto(f"http://{world.replica.gateway.address}/console/")
        ground = "getComputedStyle(document.body).backgroundColor"
        dark = await page.evaluate(ground)
        await page.get_by_role("button", name="Theme: as the system").click()
        light = await page.evaluate(ground)
        assert dark != light == "rgb(255, 255, 255)"
        await page.reload()
        await expect(page.get_by_role("button", name="Theme: light")).to_be_visible()
        assert await page.evaluate(ground) == light


async def test_a_thousand_topics_are_filtered_sorted_and_paged_at_once() -> None:
    async with console_fleet(topics=1000) as world, browser_tab() as tab:
        page = tab.page
        await tab.open(world.replica.gateway.address, ALICE)
        await expect(page.locator(".count")).to_have_text("1000 of 1000 topics")
        assert await page.locator("tbody tr").count() == 50

        async def narrow() -> None:
            await page.get_by_label("State").select_option("Stalled")
            await expect(page.locator(".count")).to_have_text("19 of 1000 topics")
            await page.get_by_label("Contains").fill("team-3")
            await expect(page.locator(".count")).to_have_text("3 of 1000 topics")

        assert await tab.busy_seconds(narrow) < _FLUID_SECONDS
        await page.get_by_label("State").select_option("")
        await page.get_by_label("Contains").fill("")
        await expect(page.locator(".count")).to_have_text("1000 of 1000 topics")

        async def turn() -> None:
            await page.get_by_role("button", name="Sealed").click()
            await expect(page.locator("tbody tr").first).to_contain_text("orders")
            await page.get_by_role("button", name="Next").click()
            await expect(page.get_by_text("Page 2 of 20")).to_be_visible()

        assert await tab.busy_seconds(turn) < _FLUID_SECONDS
        assert tab.troubles == []


async def test_a_topic_with_five_hundred_segments_is_drawn_and_walked_through_at_once() -> None:
    async with console_fleet(records=500) as world, browser_tab() as tab:
        page = tab.page
        await tab.open(world.replica.gateway.address, ALICE, ORDERS_PLACE)
        options = page.locator("svg.ring [role=option]")
        await expect(options.first).to_be_attached()
        assert await options.count() >= 500

        async def draw() -> None:
            await page.get_by_label("all in view").check()
            await page.get_by_label("true to the clock").check()
            await page.get_by_label("a column for each change").check()
            await page.get_by_label("every range of the same height").check()

        assert await tab.busy_seconds(draw) < 4 * _FLUID_SECONDS
        await page.locator("svg.ring").focus()

        async def walk() -> None:
            for _ in range(10):
                await page.keyboard.press("ArrowLeft")

        assert await tab.busy_seconds(walk) < 2 * _FLUID_SECONDS
        assert tab.troubles == []
