"""`stopics`, also installed as `kubectl-stopics`, which is how kubectl finds its plugins."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path

from scalable_topics_operator.cli import look_commands, operation_commands, upkeep_commands
from scalable_topics_operator.cli.app import app

__all__ = ["COMMANDS", "app", "complete_for_kubectl", "run"]

COMMANDS = (look_commands, operation_commands, upkeep_commands)
"""They add themselves to `app`."""

_PLUGIN = "kubectl-stopics"
_COMPLETION = "_STOPICS_COMPLETE"
# As cobra, which completes for kubectl, writes it.
_NO_FILES = ":4"


def run() -> None:
    """The console scripts."""
    if Path(sys.argv[0]).name == _PLUGIN:
        app(prog_name="kubectl stopics")
    app(prog_name="stopics")


def complete_for_kubectl() -> None:
    """The console script by which kubectl completes `kubectl stopics`: names, a line each, and that no files follow."""
    words = ["stopics", *sys.argv[1:]]
    os.environ |= {
        _COMPLETION: "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    offered = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(offered):
        app(prog_name="stopics")
    for name in offered.getvalue().split():
        print(name)
    print(_NO_FILES)
