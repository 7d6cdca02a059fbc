"""How a command fails: one line, and an exit code that tells scripts what kind of failure it was."""

from __future__ import annotations


class CliError(Exception):
    """A command cannot do what was asked.

    Args:
        message: one line for the user, without secrets.
    """

    exit_code = 1


class Refused(CliError):
    """What was asked for does not exist, or the caller may not see it."""


class Absent(Refused):
    """What was asked for does not exist, or not any more."""


class Unrecognised(Refused):
    """Whoever was asked does not know the caller, or not any more."""


class BadUsage(CliError):
    """Options or files that cannot be used as they are."""

    exit_code = 2


class Unreachable(CliError):
    """No answer, or not yet: the same command may succeed later."""

    exit_code = 3
