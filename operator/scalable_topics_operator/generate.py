"""Write what is generated from the program: the custom resource definitions and the reference.

`python -m scalable_topics_operator.generate [--check] [--reference DIR] [DIR ...]`
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from scalable_topics_operator.api.generate import crd_files, field_reference_files
from scalable_topics_operator.gateway.openapi import OPENAPI_FILE, REST_PAGE, openapi_text, rest_page
from scalable_topics_operator.generated_files import Target, bring
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
    targets = [Target(folder, crd_files()) for folder in options.folders]
    if options.reference:
        targets.append(Target(options.reference, reference_files(), {CHART_VALUES_PAGE, CLI_PAGE}))
    return bring(targets, check=options.check)


if __name__ == "__main__":
    sys.exit(main())
