"""Write the chart's dashboards: `python -m dev.dashboards [--check]`."""

import json
import sys

from dev.chart_values import CHART
from dev.dashboards.process import OPERATOR, PIPELINE
from dev.dashboards.topics import FLEET, TOPIC
from dev.generated import run
from scalable_topics_operator.generated_files import Target

FOLDER = CHART / "files" / "dashboards"
DASHBOARDS = (FLEET, TOPIC, OPERATOR, PIPELINE)


def main() -> int:
    """Run the command; answers 1 when `--check` finds a difference."""
    files = {f"{one.uid}.json": json.dumps(one.to_json(), indent=1) + "\n" for one in DASHBOARDS}
    return run("Write the chart's dashboards.", Target(FOLDER, files))


if __name__ == "__main__":
    sys.exit(main())
