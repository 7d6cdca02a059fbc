"""What `helm test` makes of pages that answer late, or not as they should."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from scalable_topics_operator import release_check
from scalable_topics_operator.release_check import NotWorking, expect

REFUSED = 2


@asynccontextmanager
async def serving(refused: int) -> AsyncIterator[str]:
    """A page that closes some connections before it answers 200; yields its URL."""
    refusals = iter(range(refused))

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if next(refusals, None) is None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/readyz"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_check, "_FIRST_PAUSE_SECONDS", 0.001)


async def test_a_page_that_is_not_reached_at_once_is_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    async with serving(REFUSED) as url, aiohttp.ClientSession() as session:
        await expect(session, url, 200)
    assert capsys.readouterr().out == f"{url}: 200, as it should be\n"


async def test_a_page_that_is_never_reached_is_told_by_its_address() -> None:
    async with serving(1000) as url, aiohttp.ClientSession() as session:
        with pytest.raises(NotWorking, match=url):
            await expect(session, url, 200)


async def test_another_answer_is_no_reason_to_ask_again() -> None:
    async with serving(0) as url, aiohttp.ClientSession() as session:
        with pytest.raises(NotWorking, match="answers 200, not 401"):
            await expect(session, url, 401)
