"""Measure one section with the servers that the environment names, and put it into the report.

`python -m bench` runs this for each section, in a process of its own.
"""

import argparse
import asyncio
import sys
import time
from pathlib import Path

from bench.machine import this_machine, versions
from bench.page import JSON_NAME, PAGE_NAME, render
from bench.report import Occasion, Report, from_json, to_json
from bench.section import Run
from bench.sections import BY_KEY, SECTIONS
from tests.support.evidence import commit


def main() -> int:
    """Measure it; answers the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.measure", description=__doc__)
    parser.add_argument("key", choices=BY_KEY)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--small", action="store_true", help="in tiny sizes")
    parser.add_argument("--load-before", type=float, required=True, help="load average before the servers started")
    parser.add_argument("--folder", type=Path, help="of the report; without one there is none")
    parser.add_argument("--profile-to", type=Path, help="folder for a profile")
    arguments = parser.parse_args()
    section = BY_KEY[arguments.key]
    run = Run(arguments.rounds, arguments.small, arguments.profile_to)
    date, tree, started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), commit(), time.monotonic()
    measured = asyncio.run(section.measure(run))
    occasion = Occasion(
        machine=this_machine(),
        servers=versions(section.servers),
        commit=tree,
        date=date,
        load_before=arguments.load_before,
        duration_seconds=round(time.monotonic() - started, 1),
        rounds=run.rounds,
        is_small=run.is_small,
    )
    alone = Report().with_result(section.key, occasion, measured)
    print(render(alone, [section]), flush=True)
    if arguments.folder is not None:
        write(arguments.folder, read(arguments.folder).with_result(section.key, occasion, measured))
    return 0


def read(folder: Path) -> Report:
    """The report of a folder; an empty one if it has none."""
    file = folder / JSON_NAME
    return from_json(file.read_text()) if file.exists() else Report()


def write(folder: Path, report: Report) -> None:
    """Keep a report in a folder, and its page."""
    folder.mkdir(parents=True, exist_ok=True)
    page = render(report, SECTIONS)
    (folder / JSON_NAME).write_text(to_json(report))
    (folder / PAGE_NAME).write_text(page)


if __name__ == "__main__":
    sys.exit(main())
