"""Links of pages to files of the repository that are no pages: each becomes a page that shows the file."""

import os
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from mkdocs.exceptions import PluginError

FOLDER = "files"
_LINK = re.compile(r"(?<=\]\()(\.\.?/[^)#\s]+)(?=[)#])")
_LANGUAGES = {".yaml": "yaml", ".py": "python", ".toml": "toml", ".json": "json", ".go": "go"}


def linked_files(page: str, text: str, repository: Path) -> list[PurePosixPath]:
    """Return the files beside the documentation that a page links to, from the root of the repository.

    Args:
        page: path of the page within the documentation.
        text: of the page.
        repository: its root; the documentation is in `docs`.

    Raises:
        PluginError: a link leads to something that is no file of the repository.
    """
    found = []
    for target in _LINK.findall(text):
        path = _from_root(page, target)
        if path.parts[0] == "docs":
            continue
        if path.parts[0] == ".." or not (repository / path).is_file():
            raise PluginError(f"{page} links to {target}, which is no file of the repository")
        found.append(path)
    return found


def with_links_to_pages(page: str, text: str) -> str:
    """Return a page whose links to such files lead to the pages that show them."""
    return _LINK.sub(lambda link: _page_link(page, link[1]), text)


def page_of(file: PurePosixPath) -> str:
    """Return the path, within the documentation, of the page that shows a file."""
    return f"{FOLDER}/{file}.md"


def render(file: PurePosixPath, read: Callable[[PurePosixPath], str]) -> str:
    """Return the page that shows a file."""
    content = read(file)
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", content)), 3)
    language = _LANGUAGES.get(file.suffix, "dockerfile" if file.name == "Dockerfile" else "text")
    return f"# {file}\n\n{fence}{language}\n{content.rstrip()}\n{fence}\n"


def _page_link(page: str, target: str) -> str:
    path = _from_root(page, target)
    if path.parts[0] == "docs":
        return target
    return os.path.relpath(page_of(path), PurePosixPath(page).parent)


def _from_root(page: str, target: str) -> PurePosixPath:
    return PurePosixPath(os.path.normpath(PurePosixPath("docs", page).parent / target))
