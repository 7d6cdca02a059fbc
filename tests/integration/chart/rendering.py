"""The chart as helm renders it, for sets of values."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from dev.cache import cache_root
from dev.chart_tools import helm
from dev.chart_values import CHART

FOLDER = Path(__file__).parent
VALUES, GOLDEN = FOLDER / "values", FOLDER / "golden"
SETS = sorted(file.stem for file in VALUES.glob("*.yaml"))
RELEASE, NAMESPACE = "demo", "chart-system"
WATCHED = ("chart-shop", "chart-billing")
HOME_VARIABLES = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
Document = dict[str, Any]

# Definitions and dashboards are compared with what they are made of.
_BULKY = re.compile(r"/(crds|dashboards)\.yaml$")
_TIMEOUT_SECONDS = 60


def run_helm(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run helm to its end, whatever that is."""
    # Somebody's plugins and settings are no matter of ours.
    apart = {name: str(cache_root() / "helm-home") for name in HOME_VARIABLES}
    return subprocess.run(
        [str(helm()), *arguments],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        env={**os.environ, **apart, **(environment or {})},
        check=False,
    )


def template(*arguments: str, namespace: str = NAMESPACE) -> str:
    """What the chart renders to. Raises AssertionError with helm's words."""
    done = run_helm("template", RELEASE, str(CHART), "--namespace", namespace, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def values_of(name: str) -> Sequence[str]:
    """Arguments of helm for a set of values."""
    return ("--values", str(VALUES / f"{name}.yaml"))


@cache
def rendered(name: str, namespace: str = NAMESPACE) -> str:
    """What a set of values renders to."""
    return template(*values_of(name), namespace=namespace)


def documents(text: str) -> list[Document]:
    """The objects in it."""
    return [found for found in yaml.load_all(text, yaml.CSafeLoader) if found is not None]


def of_kind(found: Sequence[Document], *kinds: str) -> list[Document]:
    """Those of some kinds."""
    return [one for one in found if one["kind"] in kinds]


def pods_of(found: Sequence[Document]) -> list[Document]:
    """A pod of every template, and those that are rendered as such."""
    made = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**owner["spec"]["template"]["metadata"], "name": f"from-{owner['kind'].lower()}"},
            "spec": owner["spec"]["template"]["spec"],
        }
        for owner in of_kind(found, "Deployment", "Job")
    ]
    return made + of_kind(found, "Pod")


def golden_text(name: str) -> str:
    """What is kept of a set in a golden file."""
    parts = re.split(r"(?m)^---\n# Source: (\S+)\n", rendered(name))[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return "".join(f"---\n# Source: {source}\n{text}" for source, text in pairs if not _BULKY.search(source))
