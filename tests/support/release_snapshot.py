"""What a release leaves in clusters, kept when it is made so that later ones can be tried on it.

`python -m tests.support.release_snapshot` writes `tests/releases/VERSION` for the version of this tree: the
definitions, an object of each kind with every field and status that it had then, and the chart.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

from dev.chart_tools import helm
from dev.chart_values import CHART
from dev.images.project import project_version
from scalable_topics_operator.api.crd import KINDS, crd
from tests.unit.api.manifests import SPECS, STATUSES, manifest

ROOT = Path(__file__).parents[2]
RELEASES = ROOT / "tests" / "releases"
DEFINITIONS, OBJECTS = "crds.yaml", "objects.yaml"
PACKAGE_TIMEOUT_SECONDS = 60


def write_snapshot(directory: Path) -> None:
    """Write what this tree would leave into a folder that is not there yet. Raises FileExistsError."""
    directory.mkdir(parents=True)
    definitions = [crd(kind) for kind in KINDS]
    objects = [
        manifest(kind.__name__, spec, STATUSES[kind.__name__], f"{kind.definition.short_name}-{number}")
        for kind in KINDS
        for number, spec in enumerate(SPECS[kind.__name__])
    ]
    for name, documents in ((DEFINITIONS, definitions), (OBJECTS, objects)):
        (directory / name).write_text(yaml.safe_dump_all(documents, sort_keys=False), encoding="utf-8")
    command = [str(helm()), "package", str(CHART), "--destination", str(directory)]
    subprocess.run(command, check=True, capture_output=True, timeout=PACKAGE_TIMEOUT_SECONDS)


def releases() -> list[Path]:
    """The folders of earlier releases."""
    return sorted(RELEASES.iterdir())


def chart_of(release: Path) -> Path:
    """The chart of a release."""
    (chart,) = release.glob("*.tgz")
    return chart


if __name__ == "__main__":
    try:
        write_snapshot(RELEASES / project_version())
    except FileExistsError:
        sys.exit(f"{RELEASES / project_version()} is there: what was released does not change")
