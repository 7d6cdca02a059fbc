"""`stopics backtest`: what another policy would have done with recorded load, by the pipeline's own program."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from scalable_topics_operator.autoscale.policy import DEFAULT
from scalable_topics_operator.cli.faults import BadUsage, CliError, Refused
from scalable_topics_operator.cli.gateway_access import GatewayOptions, gateway, why
from scalable_topics_operator.cli.kubernetes import TopicRef, api_server, find_object, ref_of
from scalable_topics_operator.cli.printing import tell
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.object_key import connection_of
from scalable_topics_operator.cluster.resources import CONNECTIONS

_PROGRAM = "segment_load"
# What the pipeline is made with, and the extra has.
_NEEDED = (_PROGRAM, "pyspark", "pyarrow")


@dataclass(frozen=True, slots=True)
class BacktestOptions:
    """What is tried.

    Args:
        name: of the ScalableTopic, or its topic's; None for all topics of the history.
        namespace: of the object; None for the kubeconfig's.
        policies: files of the policy on trial, widest first.
        present: files of the policy in force; what is in force, or the defaults, if empty.
        history_path: where the history is; where the topic's connection says, if None.
        out: folder for the report.
        passed: further options of the program, as they are.
    """

    name: str | None
    namespace: str | None
    policies: tuple[Path, ...]
    present: tuple[Path, ...]
    history_path: str | None
    out: Path
    passed: Mapping[str, str | None] = field(default_factory=dict)


async def backtest(options: BacktestOptions, access: GatewayOptions) -> None:
    """Run the program and wait for it; it writes to the terminal itself. Raises CliError."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        extras = "pip install 'scalable-topics[cli,spark]'"
        raise BadUsage(f"backtests run on Spark, and {', '.join(missing)} is not installed here: {extras}")
    ref, history, present = None, options.history_path, list(options.present)
    with tempfile.TemporaryDirectory() as folder:
        if options.name is not None:
            async with api_server() as kube:
                body = await find_object(kube, options.name, options.namespace)
                ref = ref_of(body)
                history = history or await _history_of(kube, body)
            if not present:
                present = await _in_force(ref, access, Path(folder))
        if history is None:
            raise BadUsage("--history-path is needed unless a ScalableTopic is named whose connection keeps a history")
        code = await _run(arguments(options, ref, history, present))
    if code:
        raise Refused(f"the backtest ended with {code}")


def arguments(options: BacktestOptions, ref: TopicRef | None, history: str, present: Sequence[Path]) -> list[str]:
    """What the program is told. Pure."""
    found = ["backtest", "--history-path", history, "--out", str(options.out)]
    if ref is not None:
        found += ["--topic", str(ref.topic)]
    for flag, files in (("--policy", options.policies), ("--present-policy", present)):
        for file in files:
            found += [flag, str(file)]
    for flag, value in options.passed.items():
        if value is not None:
            found += [flag, value]
    return found


def written_policy(effective: Mapping[str, Any]) -> dict[str, Any]:
    """The knobs that some policy sets, as a policy is written. Pure.

    Args:
        effective: as the gateway tells it.
    """
    found: dict[str, Any] = {}
    for one in effective.get("knobs") or ():
        if one.get("origin") != DEFAULT:
            group, dot, knob = str(one["knob"]).partition(".")
            (found.setdefault(group, {}) if dot else found)[knob if dot else group] = one["value"]
    return found


async def _history_of(kube: KubeClient, body: Body) -> str | None:
    key = connection_of(body)
    connection = await kube.get(CONNECTIONS, key.namespace, key.name)
    path = ((connection["spec"].get("load") or {}).get("history") or {}).get("path")
    return str(path) if path else None


async def _in_force(ref: TopicRef, access: GatewayOptions, folder: Path) -> list[Path]:
    """A file with the policy in force; none, which means the defaults, where the gateway cannot be asked."""
    try:
        async with gateway(access) as asked:
            effective = await asked.ask(ref, "autoScalePolicy/effective")
    except CliError as error:
        tell(f"stopics: compared with the defaults, since the policy in force is not known: {why(error)}")
        return []
    file = folder / "in-force.yaml"
    file.write_text(yaml.safe_dump(written_policy(effective)))
    return [file]


async def _run(words: Sequence[str]) -> int:
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", _PROGRAM, *words)
    return await process.wait()
