"""The console in a real Chromium, over a gateway with objects in memory: who sees what, and who may do what."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Error, expect

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS
from scalable_topics_operator.operations.topic_state import read_state
from tests.support.browser import Tab, browser_tab
from tests.support.console_fleet import console_fleet
from tests.support.waiting import eventually
from tests.unit.gateway.model_kubernetes import ALICE, STRANGER
from tests.unit.gateway.rest_world import READY, RestWorld
from tests.unit.gateway.topics import split, topic_body

ORDERS = "topic://acme/shop/orders"
ORDERS_PLACE = "#/topic/acme/shop/orders"
_MARKUP = "<img src=x onerror='window.hacked = true'>"


def _address(world: RestWorld) -> str:
    return world.replica.gateway.address


async def _open_topic(tab: Tab, world: RestWorld) -> None:
    await tab.open(_address(world), ALICE, ORDERS_PLACE)
    await expect(tab.page.locator("#segment-0")).to_be_attached()


def _first_active(world: RestWorld) -> int:
    layout = read_state(world.topic["status"]).layout
    assert layout is not None
    return min(one.segment_id for one in layout.active)


async def test_a_token_stays_in_memory_and_is_in_no_address() -> None:
    async with console_fleet() as world, browser_tab() as tab:
        page = tab.page
        await tab.open(_address(world), STRANGER)
        await expect(page.locator("#wrong")).to_contain_text("not valid for audience scalable-topics")
        await tab.open(_address(world), ALICE)
        await page.get_by_role("link", name=ORDERS).click()
        await expect(page.locator("#segment-0")).to_be_attached()
        kept = "[JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie, location.href].join()"
        assert ALICE not in await page.evaluate(kept)
        await page.reload()
        await expect(page.get_by_label("Kubernetes token")).to_be_focused()
        assert not [url for url in tab.requests if ALICE in url or STRANGER in url]
        assert {url.split("/")[2] for url in tab.requests} == {_address(world)}, "nobody else was asked for anything"


async def test_who_would_send_a_token_over_an_open_network_is_warned() -> None:
    async with console_fleet() as world, browser_tab() as tab:
        await tab.page.goto(f"http://{_address(world)}/console/")
        await expect(tab.page.get_by_label("Kubernetes token")).to_be_visible()
        await expect(tab.page.get_by_text("not loaded by TLS")).to_have_count(0)
        port = _address(world).rpartition(":")[2]
        await tab.page.goto(f"http://gateway.example:{port}/console/")
        await expect(tab.page.get_by_text("not loaded by TLS")).to_be_visible()


async def test_a_token_may_stay_in_its_tab_until_it_is_forgotten() -> None:
    async with console_fleet() as world, browser_tab() as tab:
        page = tab.page
        await page.goto(f"http://{_address(world)}/console")
        await page.get_by_label("Kubernetes token").fill(ALICE)
        await page.get_by_label("Keep it until this tab is closed").check()
        await page.get_by_role("button", name="Show the topics").click()
        await expect(page.get_by_role("link", name=ORDERS)).to_be_visible()
        await page.reload()
        await expect(page.get_by_role("link", name=ORDERS)).to_be_visible()
        await page.get_by_role("button", name="Forget the token").click()
        await expect(page.get_by_label("Kubernetes token")).to_be_visible()
        assert await page.evaluate("sessionStorage.length") == 0


async def test_what_others_have_written_never_becomes_markup() -> None:
    async with console_fleet() as world, browser_tab() as tab:
        body = world.topic
        stalled = [
            {"type": kind, "status": status, "reason": _MARKUP, "message": _MARKUP}
            for kind, status in (("Ready", "False"), ("Stalled", "True"))
        ]
        action = {
            "id": "1",
            "kind": _MARKUP,
            "at": _MARKUP,
            "epoch": 1,
            "result": _MARKUP,
            "request": {"kind": _MARKUP},
        }
        reports = [{"reason": _MARKUP, "message": _MARKUP}]
        status = {**body["status"], "conditions": stalled, "actions": [action], "reports": reports}
        world.kubernetes.set_status(body, {**status, "lastAction": _MARKUP})
        await tab.open(_address(world), ALICE)
        await expect(tab.page.get_by_text(_MARKUP).first).to_be_visible()
        await tab.page.get_by_role("link", name=ORDERS).click()
        await tab.page.get_by_role("tab", name="Decisions").click()
        await expect(tab.page.get_by_text(_MARKUP).first).to_be_visible()
        assert await tab.page.evaluate("[window.hacked ?? null, document.images.length]") == [None, 0]
        assert tab.troubles == []
        # Even a script that somebody got into the page would not be run.
        with pytest.raises(Error, match="TrustedHTML"):
            await tab.page.evaluate("document.body.innerHTML = '<b></b>'")


async def test_changes_take_a_right_and_the_readers_leave() -> None:
    async with console_fleet() as world, browser_tab() as tab:
        page = tab.page
        world.kubernetes.becomes = _succeeded
        segment = _first_active(world)
        await _open_topic(tab, world)
        await page.locator(f"#segment-{segment}").click()
        await expect(page.get_by_role("heading", name=f"Segment {segment}")).to_be_visible()
        assert await page.get_by_role("button", name="Split…").count() == 0
        await page.get_by_role("button", name="Allow changes").click()
        await page.get_by_role("button", name="Split…").click()
        await page.get_by_label("Into how many equal parts").fill("3")
        await page.get_by_role("button", name="Dry run").click()
        await expect(page.locator("dialog")).to_contain_text("would split")
        await page.get_by_role("button", name="Split now").click()
        await expect(page.locator("dialog")).to_contain_text("Done.")
        asked = [body["spec"] for body in world.kubernetes.all_of(SEGMENT_OPERATIONS)]
        wanted = {"scalableTopic": "orders", "type": "Split", "split": {"segment": segment, "into": 3}}
        assert asked == [{**wanted, "dryRun": True}, wanted]
        assert ("alice", "create", "segmentoperations") in world.kubernetes.acted
        await page.keyboard.press("Escape")
        await expect(page.locator("dialog")).to_have_count(0)


async def test_a_refused_change_says_why() -> None:
    async with console_fleet() as world, browser_tab() as tab:
        page = tab.page
        world.kubernetes.becomes = lambda body: {"phase": "Failed", "reason": "Refused", "message": "it is too narrow"}
        await _open_topic(tab, world)
        await page.locator(f"#segment-{_first_active(world)}").click()
        await page.get_by_role("button", name="Allow changes").click()
        await page.get_by_role("button", name="Rebucket…").click()
        await page.get_by_role("button", name="Rebucket now").click()
        await expect(page.locator("dialog .wrong")).to_contain_text("it is too narrow")


@pytest.mark.parametrize("writes", [True, False], ids=["no right", "writes off"])
async def test_whoever_may_change_nothing_is_offered_nothing(writes: bool) -> None:
    async with console_fleet(writes=writes) as world, browser_tab() as tab:
        if writes:
            world.kubernetes.denied = {("create", "segmentoperations")}
        await _open_topic(tab, world)
        await expect(tab.page.locator("#who")).to_have_text("alice")
        await expect(tab.page.get_by_role("button", name="Allow changes")).to_be_hidden()


async def test_what_the_caller_may_not_see_says_which_right_is_lacking() -> None:
    async with console_fleet() as world, browser_tab() as tab:
        world.kubernetes.denied = {("list", "scalabletopics"), ("list", "scalabletopicsubscriptions")}
        await tab.open(_address(world), ALICE)
        await expect(tab.page.get_by_role("alert")).to_contain_text("lacks the right to list scalabletopics")
        await tab.page.get_by_label("A topic by its name").fill("acme/shop/orders")
        await tab.page.get_by_role("button", name="Open").click()
        await tab.page.get_by_role("tab", name="Subscriptions").click()
        await expect(tab.page.get_by_role("tabpanel")).to_contain_text("right to list scalabletopicsubscriptions")


async def test_who_reads_what_is_told_of_ordered_subscriptions() -> None:
    async with console_fleet() as world, browser_tab() as tab:
        page = tab.page
        await _open_topic(tab, world)
        await page.get_by_role("tab", name="Subscriptions").click()
        layout = read_state(world.topic["status"]).layout
        assert layout is not None
        readers = page.get_by_role("table", name="Consumers of billing")
        for number in range(3):
            read = ", ".join(str(one.segment_id) for one in layout.active[number::3])
            await expect(readers.get_by_role("row", name=f"billing-{number} {read}")).to_be_visible()
        shared = page.get_by_role("table", name="Subscriptions", exact=True).get_by_role("row", name="audit")
        await expect(shared).to_contain_text("queue")


async def test_a_change_is_seen_without_loading_the_page_again_and_what_is_known_is_not_sent_again() -> None:
    async with console_fleet() as world, browser_tab() as tab:
        await _open_topic(tab, world)
        state = read_state(world.topic["status"])
        after = split(state, _first_active(world))
        assert after.layout is not None
        made = max(after.layout.segments)
        assert await tab.page.locator(f"#segment-{made}").count() == 0
        status = {**topic_body(after)["status"], "conditions": READY, "backend": "Classic"}
        world.kubernetes.set_status(world.topic, {**world.topic["status"], **status})
        await expect(tab.page.locator(f"#segment-{made}")).to_be_attached(timeout=15_000)
        labels = {"route": "get-topic", "code": "304"}
        await eventually(
            lambda: _count(world, "scalable_topics_gateway_requests_total", labels), bool, what="nothing is sent twice"
        )
        assert tab.troubles == []


async def _count(world: RestWorld, name: str, labels: dict[str, str]) -> float:
    return world.replica.count(name, **labels)


def _succeeded(body: Body) -> dict[str, Any] | None:
    if body["kind"] != SEGMENT_OPERATIONS.kind:
        return None
    return {"phase": "Succeeded", "message": "would split it into 3", "plan": {"children": [101, 102, 103]}}
