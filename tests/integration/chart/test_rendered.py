"""What is rendered: as it was looked at last, the definitions unchanged, small enough, about metrics that there are."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

import pytest

from dev.chart_values import CHART
from scalable_topics_operator.telemetry.metrics import Metrics
from tests.integration.chart.rendering import GOLDEN, SETS, documents, golden_text, of_kind, rendered
from tests.support.chart_expressions import alert_expressions, dashboard_expressions
from tests.support.crds import our_crds

_ANNOTATION_BYTES = 262_144
# Of a Secret, in which helm keeps the release.
_SECRET_BYTES = 1_048_576
_DASHBOARDS = sorted((CHART / "files" / "dashboards").glob("*.json"))
_FUNCTIONS = {"by", "count", "histogram_quantile", "increase", "label_values", "le", "max", "min", "or", "rate", "sum"}
_FUNCTIONS |= {"time", "topk"}
_OF_PROMETHEUS = {"namespace", "pod", "le"}


@pytest.mark.parametrize("name", SETS)
def test_it_is_as_it_was_looked_at_last(name: str) -> None:
    """After a change: `python -m tests.integration.chart.update_golden`, and look at the difference."""
    assert golden_text(name) == (GOLDEN / f"{name}.yaml").read_text()


def test_there_is_no_golden_file_of_nothing() -> None:
    assert sorted(file.stem for file in GOLDEN.iterdir()) == SETS


def test_definitions_are_those_of_the_tree_and_are_kept() -> None:
    """Hazard C68."""
    found = of_kind(documents(rendered("default")), "CustomResourceDefinition")
    for definition in found:
        assert definition["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
        assert definition["metadata"].pop("labels")["app.kubernetes.io/managed-by"] == "Helm"
    assert sorted(found, key=_name) == sorted(our_crds(), key=_name)


@pytest.mark.parametrize("name", SETS)
def test_every_object_fits_into_the_annotation_of_client_side_apply(name: str) -> None:
    assert [_name(one) for one in documents(rendered(name)) if len(json.dumps(one)) >= _ANNOTATION_BYTES] == []


def test_a_release_with_everything_fits_into_helms_secret_twice_over() -> None:
    """Helm keeps the rendered text and all files of the chart, base64 of gzip of JSON with base64."""
    files = [base64.b64encode(file.read_bytes()) for file in CHART.rglob("*") if file.is_file()]
    kept = base64.b64encode(gzip.compress(b"".join([rendered("full").encode(), *files])))
    assert len(kept) < _SECRET_BYTES / 2


def test_alerts_and_dashboards_are_about_metrics_that_there_are() -> None:
    samples, labels = _known()
    asked: set[str] = set()
    for expression in (*dashboard_expressions(), *alert_expressions(documents(rendered("full")))):
        bare = re.sub(r'"[^"]*"|\[[^]]*\]|\$\w+', "", expression)
        words = set(re.findall(r"[a-z_]\w*", bare)) - _FUNCTIONS - {"vector"}
        assert words <= samples | labels | _OF_PROMETHEUS, expression
        asked |= words & samples
    assert len(asked) > 30


def test_dashboards_are_whole_in_their_config_map() -> None:
    (config_map,) = (one for one in of_kind(documents(rendered("full")), "ConfigMap") if "dashboards" in _name(one))
    assert config_map["data"] == {file.name: file.read_text() for file in _DASHBOARDS}
    for text in config_map["data"].values():
        panels = json.loads(text)["panels"]
        ids = [panel["id"] for panel in panels]
        assert len(ids) == len(set(ids))
        covered = [
            (x, y)
            for place in (panel["gridPos"] for panel in panels)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]
        assert len(covered) == len(set(covered))
        assert max(x for x, _ in covered) < 24


def _name(document: dict[str, Any]) -> str:
    return str(document["metadata"]["name"])


def _known() -> tuple[set[str], set[str]]:
    """Names of all samples, and all labels, that the operator's registry can have."""
    registry = Metrics(per_topic=True, per_segment=True).registry
    samples, labels = set(), set()
    for collector, names in registry._collector_to_names.items():
        samples |= set(names)
        families = getattr(collector, "describe", collector.collect)()
        labels |= {label for one in (collector, *families) for label in getattr(one, "_labelnames", ())}
    return samples, labels
