"""kstatus, the rules by which GitOps tools and helm tell whether an object is current, as a program."""

from pathlib import Path

from dev.artifacts import BUILD_FLAGS
from dev.go_modules import own_program

SOURCES = Path(__file__).parent / "kstatus"


def kstatus() -> Path:
    """Return the program, which prints the status of the object on its standard input."""
    flags = [*BUILD_FLAGS, "-ldflags", "-s -w"]
    return own_program("kstatus", SOURCES, ["main.go"], flags, "building kstatus (once a machine; half a minute)")
