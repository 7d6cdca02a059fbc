"""promtool, which checks and tries rules of Prometheus: from the PATH, else out of Debian's package."""

import platform
from pathlib import Path

from dev import debian_package, prerequisites
from dev.cache import content_key, ensure
from dev.console import say
from dev.errors import DevError

PACKAGE = "prometheus"


def promtool() -> Path:
    """Return the program. Raises DevError where it can be had neither way."""
    found = prerequisites.on_path("promtool")
    if found is not None:
        return found
    release = debian_package.release()
    if release is None:
        raise DevError(f"promtool is needed to try the chart's alerts: install it (Debian: apt-get install {PACKAGE})")
    return ensure("promtool", content_key([], PACKAGE, release, platform.machine()), _extract) / "promtool"


def _extract(into: Path) -> None:
    say("fetching promtool (once a machine; a few seconds)")
    debian_package.extract(PACKAGE, {"usr/bin/promtool": "promtool"}, into)
