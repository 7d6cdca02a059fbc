"""Progress lines. They go to standard error, so that standard output stays usable in pipes."""

import sys


def say(message: str) -> None:
    """Print one line of progress."""
    print(message, file=sys.stderr, flush=True)
