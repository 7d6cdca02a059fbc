"""`python -m segment_load`: the pipeline's jobs."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from segment_load import backtest_report, capacity_report, stream_job, supervise


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a job until it ends or is told to; answers the exit code."""
    options = parse(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    # It tells of every batch that it hands over.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    code: int = options.run(options)
    return code


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What the arguments say; ends the program for those that say nothing."""
    parser = argparse.ArgumentParser(prog="segment_load", description="The load pipeline of scalable topics.")
    jobs = parser.add_subparsers(required=True)
    for job in (stream_job, supervise, capacity_report, backtest_report):
        job.add_parser(jobs)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
