"""What is known to be wrong with the parts, as OSV (osv.dev) has collected it."""

import json
import os
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dev.audit.inventory import Part

OSV = "https://api.osv.dev"
ADDRESS = "OSV_ADDRESS"
_AT_ONCE = 500
_SECONDS = 30.0
_MOST_BYTES = 64 * 1024 * 1024

Ask = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""Sends a body to a path of OSV and answers what it says."""


class Unreachable(Exception):
    """Nobody can say what is known."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A part and what is known of it.

    Args:
        part: which one.
        ids: of the advisories, such as GHSA-… or PYSEC-….
    """

    part: Part
    ids: tuple[str, ...]


def ask_osv(path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Ask OSV, or whoever OSV_ADDRESS names in its place. Raises Unreachable."""
    request = urllib.request.Request(
        os.environ.get(ADDRESS, OSV).rstrip("/") + path,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            found = json.loads(answer.read(_MOST_BYTES))
    except (OSError, ValueError) as error:
        raise Unreachable(f"the advisories of {os.environ.get(ADDRESS, OSV)} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise Unreachable(f"{os.environ.get(ADDRESS, OSV)} answered something else than advisories")
    return found


def findings(parts: Sequence[Part], ask: Ask = ask_osv) -> Iterator[Finding]:
    """Parts of which something is known. Raises Unreachable."""
    for first in range(0, len(parts), _AT_ONCE):
        some = parts[first : first + _AT_ONCE]
        queries = [{"package": {"purl": part.purl.partition("?")[0]}} for part in some]
        results = ask("/v1/querybatch", {"queries": queries}).get("results")
        if not isinstance(results, list) or len(results) != len(some):
            raise Unreachable("OSV has not answered for every part")
        for part, result in zip(some, results, strict=True):
            ids = tuple(sorted(one["id"] for one in (result or {}).get("vulns") or ()))
            if ids:
                yield Finding(part, ids)
