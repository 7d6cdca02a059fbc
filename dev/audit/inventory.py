"""What the tree and its images are made of, by package URL: the lock, Go modules, the images' bills of materials."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OURS = "scalable-topics"
SHIPPED_EXTRAS = ("client", "operator", "spark", "cli")
"""What people install; `dev` and `docs` are for those who work on it."""

_GO_REQUIRE = re.compile(r"^\t?(?:require )?(\S+\.\S+/\S+) (v\S+)", re.MULTILINE)
_GO_REPLACE = re.compile(r"^\t?(?:replace )?(\S+)(?: v\S+)? => (\S+) (v\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """Something that the project depends on.

    Args:
        purl: package URL with a version.
        where: the file that says so, from the root of the tree.
        shipped: whether it reaches those who use the project, not only those who work on it.
    """

    purl: str
    where: str
    shipped: bool


def parts(root: Path = ROOT) -> list[Part]:
    """Everything, sorted. Bills of materials count where `make image` has written them."""
    return sorted({*python_parts(root), *go_parts(root), *image_parts(root)})


def python_parts(root: Path = ROOT) -> Iterable[Part]:
    """What uv.lock pins."""
    packages = locked_packages(root)
    shipped = shipped_names(packages)
    for one in packages:
        if one["name"] != OURS:
            yield Part(f"pkg:pypi/{one['name']}@{one['version']}", "uv.lock", one["name"] in shipped)


def locked_packages(root: Path = ROOT) -> list[dict[str, Any]]:
    """What uv.lock says of packages, our own among them."""
    found: list[dict[str, Any]] = tomllib.loads((root / "uv.lock").read_text(encoding="utf-8"))["package"]
    return found


def shipped_names(packages: Iterable[Mapping[str, Any]]) -> set[str]:
    """Names of all packages that come with what is shipped, however far down."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for one in packages:
        by_name.setdefault(one["name"], []).append(one)
    (ours,) = by_name[OURS]
    waiting = [*ours.get("dependencies", ())]
    for extra in SHIPPED_EXTRAS:
        waiting += ours["optional-dependencies"][extra]
    found: set[str] = set()
    while waiting:
        wanted = waiting.pop()
        if wanted["name"] in found or wanted["name"] == OURS:
            continue
        found.add(wanted["name"])
        for one in by_name[wanted["name"]]:
            waiting += one.get("dependencies", ())
            for extra in wanted.get("extra", ()):
                waiting += one.get("optional-dependencies", {}).get(extra, ())
    return found


def go_parts(root: Path = ROOT) -> Iterable[Part]:
    """What the modules of `dev/` require: they are built for tests and clusters here, and shipped to nobody."""
    for file in sorted((root / "dev").rglob("go.mod")):
        where, text = str(file.relative_to(root)), file.read_text(encoding="utf-8")
        # What is required of Kubernetes' own modules is v0.0.0: what is built stands in the replacement.
        built = {module: f"{other}@{version}" for module, other, version in _GO_REPLACE.findall(text)}
        for module, version in _GO_REQUIRE.findall(text):
            yield Part(f"pkg:golang/{built.get(module, f'{module}@{version}')}", where, shipped=False)


def image_parts(root: Path = ROOT) -> Iterable[Part]:
    """What is in the images that were made here: packages of Debian and Python, and jars."""
    for file in sorted((root / "dist").glob("*.cdx.json")):
        where = str(file.relative_to(root))
        for one in json.loads(file.read_text(encoding="utf-8"))["components"]:
            yield Part(one["purl"], where, shipped=True)
