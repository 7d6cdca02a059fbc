"""The navigation of the site: an entry that names a folder stands for all pages in it."""

from collections.abc import Iterable
from typing import Any


def expanded(navigation: list[Any], pages: Iterable[str]) -> list[Any]:
    """Return a navigation with each `folder/` replaced by its pages, by name; one without pages is left out.

    Args:
        navigation: as mkdocs.yml has it.
        pages: paths of all pages within the documentation.
    """
    ordered = sorted(pages)
    return [made for entry in navigation if (made := _expanded(entry, ordered)) is not None]


def _expanded(entry: Any, pages: list[str]) -> Any:
    if not isinstance(entry, dict):
        return entry
    ((title, content),) = entry.items()
    if isinstance(content, list):
        return {title: expanded(content, pages)}
    if not content.endswith("/"):
        return entry
    found = [page for page in pages if page.startswith(content) and "/" not in page.removeprefix(content)]
    return {title: found} if found else None
