"""A real Chromium for tests of what people see, and what it noticed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, async_playwright, expect

from dev import prerequisites

# Nothing is looked for on the network but the gateway, by whatever name it is called.
_FLAGS = (
    "--host-resolver-rules=MAP * 127.0.0.1",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_REFUSED = "Failed to load resource: the server responded"
WIDTH, HEIGHT = 1360, 860
# Machines that run the tests are busy with other things, too.
expect.set_options(timeout=20_000)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What axe says of a page: by the rules of WCAG 2, levels A and AA, and those that are good practice.

    Args:
        violations: what is wrong, a line each.
        passed: how many rules hold.
        undecided: rules that it cannot decide on some element.
    """

    violations: list[str]
    passed: int
    undecided: list[str]


@dataclass
class Tab:
    """A page in the browser.

    Args:
        page: to be driven.
        troubles: what the browser complained of: scripts that failed, and what the page's policy forbade.
        requests: URLs that were asked for.
    """

    page: Page
    troubles: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def note(self, kind: str, text: str) -> None:
        """Take note of what the browser says; that a gateway knows nothing yet (503) is the page's to show."""
        if kind == "error" and not text.startswith(_REFUSED):
            self.troubles.append(text)

    async def open(self, address: str, token: str, place: str = "#/") -> None:
        """Open the console and sign in."""
        await self.page.goto(f"http://{address}/console/{place}")
        await self.page.get_by_label("Kubernetes token").fill(token)
        await self.page.get_by_role("button", name="Show the topics").click()

    async def axe(self) -> list[str]:
        """What axe has against the page as it is, a line a violation."""
        return (await self.judge()).violations

    async def judge(self) -> Verdict:
        """What axe says of the page as it is."""
        found: dict[str, Any] = (await Axe().run(self.page)).response
        violations = [
            f"{one['id']}: {one['help']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
            for one in found["violations"]
            for node in one["nodes"]
        ]
        return Verdict(violations, len(found["passes"]), [one["id"] for one in found["incomplete"]])

    async def busy_seconds(self, do: Callable[[], Awaitable[None]]) -> float:
        """Processor time that the page's main thread takes for something, so that a busy machine changes nothing."""
        session = await self.page.context.new_cdp_session(self.page)
        await session.send("Performance.enable", {"timeDomain": "threadTicks"})

        async def spent() -> float:
            found = (await session.send("Performance.getMetrics"))["metrics"]
            return float(next(one["value"] for one in found if one["name"] == "TaskDuration"))

        before = await spent()
        await do()
        return await spent() - before


@asynccontextmanager
async def browser_tab(*, dark: bool = False, width: int = WIDTH, height: int = HEIGHT) -> AsyncIterator[Tab]:
    """Start a Chromium with an empty profile, and an empty page in it.

    Args:
        dark: whether the system is said to be dark.
        width: of the page, in pixels.
        height: of it, in pixels.
    """
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=prerequisites.chromium(), args=_FLAGS)
        try:
            page = await browser.new_page(
                viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
            )
            tab = Tab(page)
            page.on("pageerror", lambda error: tab.troubles.append(str(error)))
            page.on("console", lambda said: tab.note(said.type, said.text))
            page.on("request", lambda request: tab.requests.append(request.url))
            yield tab
        finally:
            await browser.close()
