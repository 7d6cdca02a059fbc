"""`make bench`: run all benchmarks and print one Markdown report."""

import argparse
import asyncio
import os
import platform
import sys

from bench import bucketing, deciding, kernel, producing, rebalancing, segment_load, topics, watching


def main() -> int:
    """Run what is asked for and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--topics", type=int, default=40, help="topics created in each round (default: %(default)s)")
    parser.add_argument("--messages", type=int, default=100_000, help="sent in each round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, whose median counts (default: %(default)s)")
    parser.add_argument("--segments", type=int, default=100_000, help="of the pipeline's fleet (default: %(default)s)")
    parser.add_argument("--sessions", type=int, default=10_000, help="watch sessions (default: %(default)s)")
    parser.add_argument(
        "--only",
        choices=("kernel", "deciding", "rebalancing", "topics", "producing", "bucketing", "watching", "pipeline"),
        help="one benchmark instead of all; pipeline takes minutes and runs only so",
    )
    arguments = parser.parse_args()
    print(f"# Benchmarks\n\n{os.cpu_count()} cores, Python {platform.python_version()}, {platform.machine()}\n")
    if arguments.only in (None, "kernel"):
        print(kernel.report(arguments.rounds))
    if arguments.only in (None, "deciding"):
        print(deciding.report(arguments.rounds))
    if arguments.only in (None, "rebalancing"):
        print(rebalancing.report())
    if arguments.only in (None, "topics"):
        print(asyncio.run(topics.report(arguments.topics, arguments.rounds)))
    if arguments.only in (None, "producing"):
        print(asyncio.run(producing.report(arguments.messages, arguments.rounds)))
    if arguments.only in (None, "bucketing"):
        print(asyncio.run(bucketing.report(arguments.messages, arguments.rounds)))
    if arguments.only in (None, "watching"):
        print(asyncio.run(watching.report(arguments.sessions)))
    if arguments.only == "pipeline":
        print(asyncio.run(segment_load.report(arguments.segments)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
