"""Links to files of the repository that are no pages: each becomes a page, Markdown as it reads, all else as code.

Paths are from the root of the repository; the documentation is in its folder `docs`.
"""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from mkdocs.exceptions import PluginError

FOLDER = "files"
_DOCUMENTATION = PurePosixPath("docs")
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:)([^)#\s]+)(?=[)#])")
_LANGUAGES = {".yaml": "yaml", ".py": "python", ".toml": "toml", ".json": "json", ".go": "go"}


def linked_files(text: str, origin: PurePosixPath, repository: Path) -> list[PurePosixPath]:
    """Return the files beside the documentation that a text links to.

    Args:
        text: Markdown.
        origin: the file it is in.
        repository: its root.

    Raises:
        PluginError: a link leads to something that is no file of the repository.
    """
    found = []
    for target in _LINK.findall(text):
        path = _target(origin, target)
        if _is_documentation(path):
            continue
        if path.parts[0] == ".." or not (repository / path).is_file():
            raise PluginError(f"{origin} links to {target}, which is no file of the repository")
        found.append(path)
    return found


def all_linked_files(
    texts: Iterable[tuple[str, PurePosixPath]], repository: Path, read: Callable[[PurePosixPath], str]
) -> list[PurePosixPath]:
    """Return these files for all texts, with those to which linked Markdown links in turn, by name."""
    left, found = list(texts), set[PurePosixPath]()
    while left:
        text, origin = left.pop()
        for file in linked_files(text, origin, repository):
            if file not in found:
                found.add(file)
                left += [(read(file), file)] if file.suffix == ".md" else []
    return sorted(found)


def with_links_to_pages(text: str, origin: PurePosixPath, page: str) -> str:
    """Return a text with links as they must be on its page.

    Args:
        text: Markdown.
        origin: the file it is in.
        page: path of its page within the documentation.
    """
    return _LINK.sub(lambda link: _page_link(origin, page, link[1]), text)


def page_of(file: PurePosixPath) -> str:
    """Return the path, within the documentation, of the page that shows a file."""
    return f"{FOLDER}/{file}" if file.suffix == ".md" else f"{FOLDER}/{file}.md"


def render(file: PurePosixPath, content: str) -> str:
    """Return the page that shows a file."""
    if file.suffix == ".md":
        return with_links_to_pages(content, file, page_of(file))
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", content)), 3)
    language = _LANGUAGES.get(file.suffix, "dockerfile" if file.name == "Dockerfile" else "text")
    return f"# {file}\n\n{fence}{language}\n{content.rstrip()}\n{fence}\n"


def _page_link(origin: PurePosixPath, page: str, target: str) -> str:
    path = _target(origin, target)
    inside = str(path.relative_to(_DOCUMENTATION)) if _is_documentation(path) else page_of(path)
    return os.path.relpath(inside, PurePosixPath(page).parent)


def _is_documentation(path: PurePosixPath) -> bool:
    return path.parts[0] == _DOCUMENTATION.name


def _target(origin: PurePosixPath, target: str) -> PurePosixPath:
    return PurePosixPath(os.path.normpath(origin.parent / target))
