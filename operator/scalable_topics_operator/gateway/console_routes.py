"""Routes of the console, a page for people (docs/console.md). Pure."""

from __future__ import annotations

from scalable_topics_operator.gateway.parameters import text
from scalable_topics_operator.gateway.route import Payload, Route, Tag, Who

CONSOLE_PATH = "/console"

FILE = text("file", "name of the file", longest=64)

_OFF = "the console is switched off"
_ANYTHING = {"type": "string"}

CONSOLE = Route(
    name="console",
    method="GET",
    path=CONSOLE_PATH,
    summary="Leads to the console",
    tag=Tag.OTHER,
    answer=Payload("the page, for whoever follows", _ANYTHING, media="text/html"),
    answers={308: "it is at `/console/`", 404: _OFF},
    who=Who.ANYBODY,
)
CONSOLE_PAGE = Route(
    name="console-page",
    method="GET",
    path=f"{CONSOLE_PATH}/",
    summary="The console, a page for people",
    tag=Tag.OTHER,
    answer=Payload("the page", _ANYTHING, media="text/html"),
    answers={404: _OFF},
    details="It holds nothing of topics: what it shows it asks for with the token that its reader gives it.",
    who=Who.ANYBODY,
)
CONSOLE_FILE = Route(
    name="console-file",
    method="GET",
    path=f"{CONSOLE_PATH}/{{file}}",
    summary="What the console's page is made of: modules, style and picture",
    tag=Tag.OTHER,
    parameters=(FILE,),
    answer=Payload("the file", _ANYTHING, media="*/*"),
    answers={404: f"there is no such file, or {_OFF}"},
    who=Who.ANYBODY,
)

CONSOLE_ROUTES = (CONSOLE, CONSOLE_PAGE, CONSOLE_FILE)
