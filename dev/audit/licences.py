"""`python -m dev.audit.licences [--check]`: the table of licences of what is shipped, in docs/licences.md."""

import importlib.metadata
import re
import sys

from dev.audit.inventory import ROOT, locked_packages, shipped_names
from dev.generated import write_page

PAGE = ROOT / "docs" / "licences.md"
_INTRODUCTION = """\
# Licences

Of the Python packages that come with what people install (extras `client`, `operator`, `spark` and `cli` of `uv.lock`),
as they say themselves. The project's own licence is Apache-2.0. This page is generated; what is in an image, with
Debian's packages and Spark's jars, is in its [bill of materials](images.md).

| package | version | licence |
|---|---|---|
"""
# What packages say in so many words, by the identifier of SPDX.
_BY_WORDS = (
    (re.compile(r"apache", re.IGNORECASE), "Apache-2.0"),
    (re.compile(r"\bMIT\b", re.IGNORECASE), "MIT"),
    (re.compile(r"BSD[- ]3|3-clause|new bsd", re.IGNORECASE), "BSD-3-Clause"),
    (re.compile(r"BSD[- ]2|2-clause", re.IGNORECASE), "BSD-2-Clause"),
    (re.compile(r"\bBSD\b", re.IGNORECASE), "BSD"),
    (re.compile(r"mozilla|MPL", re.IGNORECASE), "MPL-2.0"),
    (re.compile(r"\bISC\b"), "ISC"),
    (re.compile(r"python software foundation|PSF", re.IGNORECASE), "PSF-2.0"),
)


def licences_page() -> str:
    """The page; the same for the same lock."""
    packages = locked_packages()
    shipped = shipped_names(packages)
    rows = sorted(
        f"| {one['name']} | {one['version']} | {licence_of(one['name'])} |"
        for one in packages
        if one["name"] in shipped and _is_installed(one["name"], one["version"])
    )
    return _INTRODUCTION + "\n".join(rows) + "\n"


def licence_of(name: str) -> str:
    """The licence that an installed package names, by SPDX where it can be told; `?` where it names none."""
    metadata = importlib.metadata.metadata(name)
    if expression := metadata.get_all("License-Expression"):
        return str(expression[0])
    classifiers = [one.rpartition(" :: ")[2] for one in metadata.get_all("Classifier") or () if "License ::" in one]
    for words in (*classifiers, *(str(one)[:200] for one in metadata.get_all("License") or ())):
        for pattern, identifier in _BY_WORDS:
            if pattern.search(words):
                return identifier
    return "?"


def _is_installed(name: str, version: str) -> bool:
    """Whether it is what is installed here; the lock has others for other machines."""
    try:
        return importlib.metadata.version(name) == version
    except importlib.metadata.PackageNotFoundError:
        return False


if __name__ == "__main__":
    sys.exit(write_page(__doc__ or "", PAGE, licences_page()))
