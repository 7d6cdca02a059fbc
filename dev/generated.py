"""Commands that write files of this tree from what they tell of, or with `--check` only compare them."""

import argparse
from pathlib import Path

from scalable_topics_operator.generated_files import Target, bring


def run(description: str, target: Target) -> int:
    """Run such a command; answers 1 when `--check` finds a difference.

    Args:
        description: of the command, for its help.
        target: what is to be where.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if something would change")
    return bring([target], check=parser.parse_args().check)


def write_page(description: str, page: Path, text: str) -> int:
    """The same for one page among others."""
    return run(description, Target(page.parent, {page.name: text}, {other.name for other in page.parent.iterdir()}))
