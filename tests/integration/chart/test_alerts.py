"""The chart's alerts fire when they are to and not else, by promtool; each has a page that says what to do."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.chart_values import REPOSITORY
from tests.integration.chart.alert_cases import CASES, AlertCase
from tests.integration.chart.rendering import documents, of_kind, rendered
from tests.support.chart_expressions import panel_expressions
from tests.support.promtool import run_promtool

_RUNBOOKS = REPOSITORY / "docs" / "runbooks"
_PREFIX = "ScalableTopics"
_SECTIONS = ("## What it means", "## What it does to traffic", "## Find out", "## Put it right")


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of rules that Prometheus gets of the chart."""
    file = tmp_path_factory.mktemp("alerts") / "rules.yaml"
    file.write_text(yaml.safe_dump(_groups("full")))
    return file


def test_promtool_takes_the_rules(rules: Path) -> None:
    done = run_promtool("check", "rules", str(rules))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"SUCCESS: {len(_alerts())} rules found" in done.stdout


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}: {case.what}")
def test_it_fires_when_it_is_to(case: AlertCase, rules: Path, tmp_path: Path) -> None:
    """With labels and annotations as people will read them."""
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump(_unit_test(case, rules)))
    done = run_promtool("test", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_seen_to_fire_and_not_to() -> None:
    names = {name.removeprefix(_PREFIX) for name in _alerts()}
    assert {case.alert for case in CASES if case.labels is not None} == names
    assert {case.alert for case in CASES if case.labels is None} == names


def test_alerts_say_what_is_wrong_and_where_to_look() -> None:
    for alert in _alerts().values():
        annotations = alert["annotations"]
        assert set(annotations) == {"summary", "description", "runbook_url"}
        assert alert["labels"]["severity"] in {"critical", "warning"}
        assert "{{ $value" in annotations["description"] or "{{ $labels" in annotations["description"]


def test_every_alert_has_a_runbook_and_no_other_thing_has() -> None:
    """In the tree by default, and wherever the chart is told that the pages are served."""
    pages = {file.stem: file.read_text() for file in _RUNBOOKS.glob(f"{_PREFIX}*.md")}
    assert pages.keys() == _alerts().keys()
    overview = (_RUNBOOKS / "README.md").read_text()
    for name, text in pages.items():
        assert text.startswith(f"# {name}\n")
        assert [line for line in text.splitlines() if line.startswith("## ")] == list(_SECTIONS), name
        assert f"({name}.md)" in overview
        assert _alerts()[name]["annotations"]["runbook_url"] == f"docs/runbooks/{name}.md"
        elsewhere = _alerts("namespaced")[name]["annotations"]["runbook_url"]
        assert elsewhere == f"https://docs.example.com/runbooks/{name}/"


def test_the_patience_with_consumers_can_be_set() -> None:
    assert _alerts("namespaced")[f"{_PREFIX}SegmentUndrained"]["expr"].endswith(f"> {6 * 3600}")


def test_promtool_takes_every_expression_of_the_dashboards(tmp_path: Path) -> None:
    found = []
    for name, asked in panel_expressions():
        expression = re.sub(r"\$__rate_interval", "5m", asked)
        assert "$__" not in expression, expression
        found.append({"record": name, "expr": expression})
    rules = tmp_path / "dashboards.yaml"
    rules.write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": found}]}))
    done = run_promtool("check", "rules", str(rules))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"SUCCESS: {len(found)} rules found" in done.stdout


def _unit_test(case: AlertCase, rules: Path) -> dict[str, Any]:
    name = f"{_PREFIX}{case.alert}"
    expected = [] if case.labels is None else [_firing(_alerts()[name], case.labels, case.value)]
    return {
        "rule_files": [str(rules)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "name": case.what,
                "interval": "1m",
                "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
                "alert_rule_test": [
                    {"eval_time": f"{case.minute}m", "alertname": name, "exp_alerts": expected},
                ],
            }
        ],
    }


def _firing(alert: dict[str, Any], labels: dict[str, str] | Any, value: str) -> dict[str, Any]:
    def filled(text: str) -> str:
        text = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: str(labels[found[1]]), text)
        return re.sub(r"\{\{ \$value[^}]*\}\}", value, text)

    annotations = {key: filled(text) for key, text in alert["annotations"].items()}
    return {"exp_labels": {**alert["labels"], **labels}, "exp_annotations": annotations}


@cache
def _alerts(values: str = "full") -> dict[str, Any]:
    return {rule["alert"]: rule for group in _groups(values)["groups"] for rule in group["rules"]}


def _groups(values: str) -> dict[str, Any]:
    (rule,) = of_kind(documents(rendered(values)), "PrometheusRule")
    groups: dict[str, Any] = rule["spec"]
    return groups
