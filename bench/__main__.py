"""`make bench`: measure all sections, or some, each with servers of its own, and keep them in the report."""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.page import FOLDER
from bench.section import Section, Servers
from bench.sections import BY_KEY, SECTIONS
from dev.console import say
from dev.instance import Shape
from dev.run import run_with_cluster

_ROUNDS, _SMALL_ROUNDS = 5, 2
# Out of the tree's way: what was made in tiny sizes is looked at and thrown away.
_SMALL_FOLDER = FOLDER.parent / "build" / "bench"
_SHAPES = {Servers.CLASSIC: Shape(), Servers.BOTH: Shape(native=True)}


def main() -> int:
    """Run what is asked for and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", type=chosen, default=SECTIONS, help=f"some of {','.join(BY_KEY)}")
    parser.add_argument(
        "--rounds", type=int, help=f"whose median counts (default: {_ROUNDS}; {_SMALL_ROUNDS} in small)"
    )
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that it works, into build/bench")
    parser.add_argument("--profile-to", type=Path, help="profile into this folder, and keep no report")
    arguments = parser.parse_args()
    if arguments.profile_to is not None and (others := [one.key for one in arguments.only if not one.is_profiled]):
        parser.error(f"nothing is profiled in {', '.join(others)}, of which no report would be kept either: see --only")
    options = ["--rounds", str(arguments.rounds or (_SMALL_ROUNDS if arguments.small else _ROUNDS))]
    if arguments.small:
        options.append("--small")
    if arguments.profile_to is not None:
        options += ["--profile-to", str(arguments.profile_to.resolve())]
    else:
        options += ["--folder", str(_SMALL_FOLDER if arguments.small else FOLDER)]
    # Counts of calls shall not depend on the order that sets of strings happen to have.
    os.environ["PYTHONHASHSEED"] = "0"
    failed = [section.key for section in arguments.only if _measured(section, options) != 0]
    if failed:
        say(f"failed: {', '.join(failed)}; the report has what it had of these")
    return 1 if failed else 0


def chosen(names: str) -> Sequence[Section]:
    """Sections by their keys, which commas separate, in the order of the page. Raises ArgumentTypeError."""
    keys = {name.strip() for name in names.split(",")}
    if unknown := sorted(keys - set(BY_KEY)):
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: there are {', '.join(BY_KEY)}")
    return tuple(section for section in SECTIONS if section.key in keys)


def _measured(section: Section, options: Sequence[str]) -> int:
    say(f"measuring {section.key}: {section.title}")
    command = [sys.executable, "-m", "bench.measure", section.key, *options]
    command += ["--load-before", f"{os.getloadavg()[0]:.2f}"]
    shape = _SHAPES.get(section.servers)
    if shape is None:
        return subprocess.run(command, check=False).returncode
    return run_with_cluster(command, shape)


if __name__ == "__main__":
    sys.exit(main())
