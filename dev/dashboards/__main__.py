"""Write the chart's dashboards: `python -m dev.dashboards [--check]`."""

import argparse
import json
import sys

from dev.chart_values import CHART
from dev.dashboards.process import OPERATOR, PIPELINE
from dev.dashboards.topics import FLEET, TOPIC

FOLDER = CHART / "files" / "dashboards"
DASHBOARDS = (FLEET, TOPIC, OPERATOR, PIPELINE)


def main() -> int:
    """Run the command; answers 1 when `--check` finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if something would change")
    is_check = parser.parse_args().check
    wanted = {FOLDER / f"{one.uid}.json": json.dumps(one.to_json(), indent=1) + "\n" for one in DASHBOARDS}
    changed = [file for file, text in wanted.items() if not file.exists() or file.read_text() != text]
    left = sorted(set(FOLDER.glob("*.json")) - wanted.keys())
    for files, done in ((changed, "written"), (left, "removed")):
        for file in files:
            print(f"{file}: {'is not up to date' if is_check else done}")
    if not is_check:
        for file in changed:
            file.write_text(wanted[file])
        for file in left:
            file.unlink()
    return 1 if is_check and (changed or left) else 0


if __name__ == "__main__":
    sys.exit(main())
