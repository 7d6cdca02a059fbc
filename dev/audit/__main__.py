"""`python -m dev.audit`: what is known to be wrong with what the project depends on.

Answers 1 for an advisory on what is shipped that `accepted.toml` does not take, and 2 with `--online` where the
advisories cannot be read.
"""

import argparse
import datetime
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dev.audit.advisories import Ask, Finding, Unreachable, ask_osv, findings
from dev.audit.inventory import Part, parts
from dev.console import say

ACCEPTED = Path(__file__).with_name("accepted.toml")


def main(arguments: list[str] | None = None, *, ask: Ask = ask_osv, found: list[Part] | None = None) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--online", action="store_true", help="fail where the advisories cannot be read")
    options = parser.parse_args(arguments)
    everything = parts() if found is None else found
    images = {part.where for part in everything if part.where.endswith(".cdx.json")}
    say(f"{len(everything)} parts; {len(images)} bills of images" + ("" if images else " (make image writes them)"))
    try:
        known = sorted(findings(everything, ask))
    except Unreachable as error:
        say(f"not audited: {error}")
        return 2 if options.online else 0
    accepted = tomllib.loads(ACCEPTED.read_text(encoding="utf-8"))
    left = list(_left(known, accepted, datetime.date.today()))
    for finding in left:
        use = "shipped" if finding.part.shipped else "for work on it only"
        say(f"{finding.part.purl} ({finding.part.where}, {use}): {', '.join(finding.ids)}")
    shipped = [finding for finding in left if finding.part.shipped]
    say(f"{len(left)} parts with advisories that nobody has accepted, {len(shipped)} of them shipped")
    return 1 if shipped else 0


def _left(known: Iterable[Finding], accepted: Mapping[str, Any], today: datetime.date) -> Iterable[Finding]:
    for finding in known:
        ids = tuple(one for one in finding.ids if one not in accepted or accepted[one]["until"] < today)
        if ids:
            yield Finding(finding.part, ids)


if __name__ == "__main__":
    sys.exit(main())
