"""kstatus, the rules by which GitOps tools and helm tell whether an object is current, as a program."""

import platform
from pathlib import Path

from dev.artifacts import BUILD_FLAGS
from dev.cache import content_key, ensure
from dev.console import say
from dev.go_modules import go_build

SOURCES = Path(__file__).parent / "kstatus"


def kstatus() -> Path:
    """Return the program, which prints the status of the object on its standard input."""
    inputs = [SOURCES / name for name in ("go.mod", "go.sum", "main.go")]
    flags = [*BUILD_FLAGS, "-ldflags", "-s -w"]
    key = content_key(inputs, *flags, platform.machine())
    return ensure("kstatus", key, lambda into: _build(into, flags)) / "kstatus"


def _build(into: Path, flags: list[str]) -> None:
    say("building kstatus (once a machine; half a minute)")
    go_build("kstatus-build", SOURCES, into / "kstatus", flags)
