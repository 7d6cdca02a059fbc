"""The console's files are served as they are, under a policy by which nothing else is run, shown or asked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scalable_topics_operator.gateway import console_handlers
from tests.unit.gateway.rest_world import rest_world

FOLDER = Path(console_handlers.__file__).parent / "console_page"
FILES = sorted(one.name for one in FOLDER.iterdir())
MODULES = [name for name in FILES if name.endswith(".mjs")]


async def test_the_page_needs_no_token_and_may_load_nothing_from_elsewhere() -> None:
    async with rest_world() as world:
        answer = await world.ask("GET", "/console/", token=None)
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        policy = dict(part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("name", FILES)
async def test_each_file_is_served_with_its_type_and_not_again_to_whom_has_it(name: str) -> None:
    types = {"html": "text/html", "mjs": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    async with rest_world() as world:
        answer = await world.ask("GET", f"/console/{name}", token=None)
        assert answer.status == 200
        assert answer.headers["Content-Type"] == f"{types[name.rpartition('.')[2]]}; charset=utf-8"
        known = {"If-None-Match": answer.headers["ETag"]}
        assert (await world.ask("GET", f"/console/{name}", token=None, headers=known)).status == 304


@pytest.mark.parametrize("name", ["nothing.mjs", "..%2Fapp.py", "%2e%2e%2frest.py", ".."])
async def test_nothing_else_is_served(name: str) -> None:
    async with rest_world() as world:
        assert (await world.ask("GET", f"/console/{name}", token=None)).status == 404


async def test_the_console_can_be_switched_off() -> None:
    async with rest_world(console=False) as world:
        for path in ("/console", "/console/", "/console/main.mjs"):
            answer = await world.ask("GET", path, token=None)
            assert answer.status == 404
            assert "--console=false" in answer.reason


async def test_who_forgets_the_slash_is_led_to_the_page() -> None:
    async with rest_world() as world:
        assert (await world.ask("GET", "/console", token=None)).headers["Content-Type"].startswith("text/html")


def test_the_page_has_neither_inline_scripts_nor_styles_nor_handlers() -> None:
    page = (FOLDER / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=", page) == []
    assert re.findall(r"https?://|\bsrc=\"//", page) == []


@pytest.mark.parametrize("name", MODULES)
def test_modules_make_no_markup_of_texts_and_keep_nothing_for_other_tabs(name: str) -> None:
    text = (FOLDER / name).read_text()
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text) == []
    if name != "theme.mjs":
        assert re.findall(r"localStorage|document\.cookie|indexedDB", text) == []
    for imported in re.findall(r"from \"([^\"]+)\"", text):
        assert imported.removeprefix("./") in FILES
