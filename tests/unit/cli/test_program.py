"""The program as it is installed: names, completion, help, and the page about it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dev import cli_reference
from scalable_topics_operator.cli import entry
from scalable_topics_operator.cli.backtest_command import BacktestOptions, arguments, written_policy
from scalable_topics_operator.cli.kubernetes import TopicRef, parse_topic
from scalable_topics_operator.cli.main import app

SCRIPTS = Path(sys.executable).parent
ROOT = Path(__file__).parents[3]
COMMANDS = [path for path, _ in cli_reference.commands() if path != "stopics"]


def _run(script: str, *words: str) -> str:
    return subprocess.run([SCRIPTS / script, *words], capture_output=True, text=True, check=True, timeout=60).stdout


def test_kubectl_finds_it_as_a_plugin_and_completes_it() -> None:
    assert _run("kubectl-stopics", "layout", "--help").startswith("Usage: kubectl stopics layout ")
    assert _run("kubectl_complete-stopics", "re") == "rebucket\nreport\n:4\n"


def test_where_its_needs_are_not_installed_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in the operator's image."""
    monkeypatch.delitem(sys.modules, "scalable_topics_operator.cli.main")
    monkeypatch.delattr("scalable_topics_operator.cli.main")
    monkeypatch.setitem(sys.modules, "typer", None)
    for name in [name for name in sys.modules if name.startswith("scalable_topics_operator.cli.")]:
        if name.endswith(("_commands", ".app", ".options", ".printing")):
            monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit, match="2"):
        entry.run()
    assert capsys.readouterr().err == "stopics: typer is not installed: pip install 'scalable-topics[cli]'\n"


def test_it_says_its_version() -> None:
    assert _run("stopics", "--version") == f"{version('scalable-topics')}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_is_in_the_guide(command: str) -> None:
    result = CliRunner().invoke(app, [*command.split()[1:], "--help"])
    assert result.exit_code == 0
    assert f"`{command}" in (ROOT / "docs" / "cli.md").read_text()


def test_the_issues_commands_are_there() -> None:
    shown = "get describe layout watch explain route subscriptions drain"
    done = "split merge rebucket migrate backtest doctor report"
    assert {f"stopics {one}" for one in f"{shown} {done}".split()} | {"stopics policy resolve"} == set(COMMANDS)


def test_a_backtest_is_of_the_topic_against_what_is_in_force() -> None:
    options = BacktestOptions(
        "orders",
        None,
        (Path("gold.yaml"), Path("more.yaml")),
        (),
        None,
        Path("out"),
        {"--from": "2026-01-01", "--to": None},
    )
    ref = TopicRef(parse_topic("acme/shop/orders"))
    assert arguments(options, ref, "s3a://load", [Path("in-force.yaml")]) == [
        *("backtest", "--history-path", "s3a://load", "--out", "out", "--topic", "topic://acme/shop/orders"),
        *("--policy", "gold.yaml", "--policy", "more.yaml", "--present-policy", "in-force.yaml"),
        *("--from", "2026-01-01"),
    ]
    knobs = [
        {"knob": "enabled", "value": True, "origin": "spec.autoScale"},
        {"knob": "split.msgRateIn", "value": 5000, "origin": "SegmentAutoScalePolicy a/b"},
        {"knob": "split.cooldown", "value": 60, "origin": "default"},
    ]
    assert written_policy({"knobs": knobs}) == {"enabled": True, "split": {"msgRateIn": 5000}}


def test_without_spark_a_backtest_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pyspark" else object())
    result = CliRunner().invoke(app, ["backtest", "--policy", "gold.yaml", "--out", "x", "--history-path", "y"])
    assert result.exit_code == 2
    assert "pyspark is not installed here: pip install 'scalable-topics[cli,spark]'" in result.stderr
