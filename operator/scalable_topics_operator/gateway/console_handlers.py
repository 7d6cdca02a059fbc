"""The console's files, as they are in the package: nothing is built, and nothing is fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files

from aiohttp import web

from scalable_topics_operator.gateway import console_routes as routes
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import route_def

_FOLDER, _PAGE = "console_page", "index.html"
_MEDIA = {".html": "text/html", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    # No text ever becomes markup or a script, whoever has written it into a topic's name.
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "; ".join(_POLICY),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    # Another release has other files under the same names.
    "Cache-Control": "no-cache",
}


class ConsoleHandlers:
    """Handles the console's files.

    Args:
        enabled: whether there is a console.
    """

    def __init__(self, *, enabled: bool) -> None:
        self._files = _read_files() if enabled else {}

    def routes(self) -> Iterable[web.RouteDef]:
        """What it answers."""
        yield route_def(routes.CONSOLE, self._lead)
        yield route_def(routes.CONSOLE_PAGE, self._show_page)
        yield route_def(routes.CONSOLE_FILE, self._show_file)

    async def _lead(self, _: web.Request) -> web.StreamResponse:
        self._require_enabled()
        # Relative, for there may be a proxy that has a path of its own before it.
        return web.Response(status=308, headers={"Location": f"{routes.CONSOLE_PATH.removeprefix('/')}/"})

    async def _show_page(self, _: web.Request) -> web.StreamResponse:
        self._require_enabled()
        return self._shown(_PAGE)

    async def _show_file(self, request: web.Request) -> web.StreamResponse:
        self._require_enabled()
        return self._shown(request.match_info[routes.FILE.name])

    def _require_enabled(self) -> None:
        if not self._files:
            raise Refusal(404, "the console is switched off here (--console=false)")

    def _shown(self, name: str) -> web.Response:
        if name not in self._files:
            raise Refusal(404, "the console has no such file; it is at /console/")
        content, media = self._files[name]
        return web.Response(body=content, content_type=media, charset="utf-8", headers=SECURITY_HEADERS)


def _read_files() -> dict[str, tuple[bytes, str]]:
    """Content and media type of each file, by its name: nothing else can be asked for."""
    folder = files(__package__) / _FOLDER
    return {one.name: (one.read_bytes(), _MEDIA[f".{one.name.rpartition('.')[2]}"]) for one in folder.iterdir()}
