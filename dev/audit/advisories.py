"""What is known to be wrong with the parts, as OSV (osv.dev) has collected it."""

import json
import os
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, quote

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
    address = os.environ.get(ADDRESS, OSV)
    request = urllib.request.Request(
        address.rstrip("/") + path,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            found = json.loads(answer.read(_MOST_BYTES))
    except (OSError, ValueError) as error:
        raise Unreachable(f"the advisories of {address} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise Unreachable(f"{address} answered something else than advisories")
    return found


def findings(parts: Sequence[Part], ask: Ask = ask_osv) -> list[Finding]:
    """Parts of which something is known. Raises Unreachable."""
    ids: dict[Part, set[str]] = {part: set() for part in parts}
    waiting: list[tuple[Part, dict[str, Any]]] = [(part, {"package": {"purl": _asked(part.purl)}}) for part in parts]
    while waiting:
        some, waiting = waiting[:_AT_ONCE], waiting[_AT_ONCE:]
        results = ask("/v1/querybatch", {"queries": [query for _, query in some]}).get("results")
        if not isinstance(results, list) or len(results) != len(some):
            raise Unreachable("OSV has not answered for every part")
        for (part, query), result in zip(some, results, strict=True):
            found = result or {}
            ids[part].update(one["id"] for one in found.get("vulns") or ())
            # Of much there is more on a next page, and the first may hold nothing.
            if token := found.get("next_page_token"):
                waiting.append((part, {**query, "page_token": token}))
    return [Finding(part, tuple(sorted(known))) for part, known in ids.items() if known]


def _asked(purl: str) -> str:
    """As OSV knows it: without qualifiers, and of Debian, whose advisories are about sources, the source package."""
    name, _, qualifiers = purl.partition("?")
    for upstream in parse_qs(qualifiers).get("upstream", ()):
        source, _, version = upstream.partition("@")
        package, _, own_version = name.rpartition("@")
        version = quote(version, safe=":") if version else own_version
        return f"{package.rpartition('/')[0]}/{quote(source)}@{version}"
    return name
