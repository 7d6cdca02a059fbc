"""Write what is generated from the program: the custom resource definitions and the reference.

`python -m scalable_topics_operator.generate [--check] [--reference DIR] [DIR ...]`
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from scalable_topics_operator.api.generate import crd_files, field_reference_files, outdated, write
from scalable_topics_operator.gateway.openapi import OPENAPI_FILE, REST_PAGE, openapi_text, rest_page
from scalable_topics_operator.settings_reference import SETTINGS_PAGE, settings_page
from scalable_topics_operator.telemetry.reference import METRICS_PAGE, metrics_page

CHART_VALUES_PAGE = "chart-values.md"
"""A page of the reference that is written from the chart, by `dev.chart_values`."""
CLI_PAGE = "cli.md"
"""A page that is written from the command line, which needs an extra that this does not, by `dev.cli_reference`."""


def reference_files() -> dict[str, str]:
    """File name to text of the reference: a page of each kind, of settings, metrics and REST."""
    return {
        **field_reference_files(),
        SETTINGS_PAGE: settings_page(),
        REST_PAGE: rest_page(),
        OPENAPI_FILE: openapi_text(version("scalable-topics")),
        METRICS_PAGE: metrics_page(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; answers 1 when `--check` finds a difference."""
    parser = argparse.ArgumentParser(description="Write the custom resource definitions and the reference.")
    parser.add_argument("--check", action="store_true", help="change nothing, fail if something would change")
    parser.add_argument("--reference", type=Path, metavar="DIR", help="also write the reference here")
    parser.add_argument("folders", nargs="*", type=Path, default=[Path("crds")], metavar="DIR", help="default: crds")
    options = parser.parse_args(arguments)
    targets = [(folder, crd_files()) for folder in options.folders]
    if options.reference:
        targets.append((options.reference, reference_files()))
    bring = outdated if options.check else write
    changed = [path for folder, files in targets for path in bring(folder, files, others={CHART_VALUES_PAGE, CLI_PAGE})]
    for path in changed:
        print(f"{path}: {'is not up to date' if options.check else 'written'}")
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
