"""The values: known to the schema, each with a word of what it does, and mistakes named."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from dev.chart_values import CHART, PAGE, page, values
from scalable_topics_operator.settings import FLAGS
from tests.integration.chart.rendering import SETS, run_helm, template, values_of

_SCHEMA = json.loads((CHART / "values.schema.json").read_text())
_DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
# What a chart gives that has this one as a part, and flags that nobody has to set.
_NOT_SHOWN = {"global", "operator.flags"}


def _keys(schema: dict[str, Any], path: str = "") -> set[str]:
    found = set()
    for name, below in schema["properties"].items():
        key = f"{path}{name}"
        deeper = "properties" in below and key not in _NOT_SHOWN
        found |= _keys(below, f"{key}.") if deeper else {key}
    return found


def test_schema_and_values_have_the_same_keys() -> None:
    assert {one.key for one in values()} == _keys(_SCHEMA) - {"global"}


def test_every_value_says_what_it_does() -> None:
    assert [one.key for one in values() if not one.meaning.endswith(".")] == []


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page()


def test_no_mapping_takes_keys_that_nobody_knows() -> None:
    def open_ones(schema: dict[str, Any], path: str) -> list[str]:
        below = [key for name, one in schema.get("properties", {}).items() for key in open_ones(one, f"{path}.{name}")]
        return below + ([path] if "properties" in schema and schema.get("additionalProperties") is not False else [])

    assert open_ones(_SCHEMA, "") == []


def test_every_flag_can_be_set() -> None:
    """Those with a value of their own are in the Deployment; `operator.flags` takes the others."""
    everything = ("--set", "gateway.tls.enabled=true,gateway.tls.existingSecret=a,watchNamespaces={a}")
    rendered = template(*everything, "--set", "loadPipeline.runner=Embedded")
    set_here = set(re.findall(r"- --([a-z-]+)=", rendered))
    others = set(_SCHEMA["properties"]["operator"]["properties"]["flags"]["properties"])
    # Where its gateway is, a replica knows by what it listens at; the supervisor is a container of its own.
    assert {flag.name for flag in FLAGS} - set_here - others == {"gateway-address", "pipeline-command"}
    assert not others & set_here


@pytest.mark.parametrize("name", SETS)
def test_helm_lints_every_set(name: str) -> None:
    done = run_helm("lint", "--strict", str(CHART), *values_of(name))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("replica=3", "additional properties 'replica' not allowed"),
        ("replicas=-1", "at '/replicas': minimum: got -1, want 0"),
        ("operator.shards=513", "at '/operator/shards': maximum: got 513, want 512"),
        ("operator.leaseSeconds=601", "at '/operator/leaseSeconds': maximum: got 601, want 600"),
        ("operator.autoScaleIntervalSeconds=4", "at '/operator/autoScaleIntervalSeconds': minimum: got 4, want 5"),
        ("operator.logLevel=info", "at '/operator/logLevel': value must be one of"),
        ("operator.flags.workers=3", "at '/operator/flags': additional properties 'workers' not allowed"),
        ("loadPipeline.runner=SparkApplication", "at '/loadPipeline/runner': value must be one of 'Off', 'Embedded'"),
        ("metrics.podMonitor.enabled=maybe", "at '/metrics/podMonitor/enabled': got string, want boolean"),
        (
            "metrics.podMonitor.enabled=true,metrics.serviceMonitor.enabled=true",
            "metrics.serviceMonitor and metrics.podMonitor are both enabled",
        ),
        (
            "metrics.prometheusRule.runbookUrl=https://a/b",
            "at '/metrics/prometheusRule/runbookUrl': 'https://a/b' does",
        ),
        ("metrics.prometheusRule.undrainedHours=0", "at '/metrics/prometheusRule/undrainedHours': minimum: got 0"),
        ("watchNamespaces=shop", "at '/watchNamespaces': got string, want array"),
        ("watchNamespaces={Shop}", "at '/watchNamespaces/0': 'Shop' does not match pattern"),
        ("image.digest=abc", "at '/image/digest': 'abc' does not match pattern"),
        ("uninstall.check=refuse", "at '/uninstall/check': value must be one of 'Warn', 'Refuse', 'Off'"),
        ("gateway.tls.enabled=true", "gateway.tls.certManager.issuerRef.name is needed, or gateway.tls.existingSecret"),
        ("serviceAccount.create=false", "serviceAccount.name is needed where serviceAccount.create is false"),
    ],
)
def test_a_mistake_is_refused_by_name(mistake: str, words: str) -> None:
    done = run_helm("template", "demo", str(CHART), "--set", mistake)
    assert done.returncode != 0
    assert words in done.stderr


def test_choices_of_nothing_need_no_quotes() -> None:
    assert "uninstall_check" not in template(*values_of("bare"))
    assert "uninstall_check" in template()
