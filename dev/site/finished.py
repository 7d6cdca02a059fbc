"""What a finished page of the site must be: complete by itself, and understood by mkdocs as by GitHub."""

import re
from html.parser import HTMLParser

_LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
_ELSEWHERE = re.compile(r"(https?:)?//")
_NOT_UNDERSTOOD = re.compile(r"^\s*([-*+] |\d+\. |\||```|#+ )")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []
        self._in_text = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        source = known.get(_LOADING.get(tag, "")) or ""
        if _ELSEWHERE.match(source) and known.get("rel") != "canonical":
            self.problems.append(f"loads {source} from elsewhere")
        self._in_text = tag == "p" or (self._in_text and tag in ("a", "br", "em", "strong"))

    def handle_endtag(self, tag: str) -> None:
        if tag == "p":
            self._in_text = False

    def handle_data(self, data: str) -> None:
        if self._in_text:
            for line in data.splitlines():
                if _NOT_UNDERSTOOD.match(line):
                    self.problems.append(f"shows Markdown as it is written: {line.strip()[:60]!r}")


def problems(html: str) -> list[str]:
    """Return what is wrong with a page: it loads something from elsewhere, or shows Markdown instead of its meaning."""
    page = _Page()
    page.feed(html)
    page.close()
    return page.problems
