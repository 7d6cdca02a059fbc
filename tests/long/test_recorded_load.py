"""An hour of load on real brokers, recorded by a pipeline, and what reports make of it: `make show-recorded-load`."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulsar import AuthenticationToken

from dev.access import PulsarAccess
from scalable_topics.sdk import Client
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import TOPICS
from tests.integration.operator.conftest import MakeOperator
from tests.support import manifests
from tests.support.embedded_pipeline import piped_world
from tests.support.evidence import Evidence, table
from tests.support.load_ramp import OUT_OF_REACH
from tests.support.paced_traffic import PacedTraffic
from tests.support.pulsar_view import PulsarView

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / "docs" / "evidence" / "recorded-load"
_CANDIDATE = _ROOT / "examples" / "policy-candidate.yaml"
_SECONDS = float(os.environ.get("RECORD_SECONDS", "3600"))
_SAMPLE_SECONDS, _STATISTICS_SECONDS = 10, 5
_TIDE_SECONDS = 1200.0
_PART = "What was recorded"
# What every topic of the demo has; split and merge at rates that one machine can make.
_PRESENT: dict[str, Any] = {
    "maxSegments": 8,
    "split": {**OUT_OF_REACH, "cooldown": "10s", "msgRateIn": 100},
    "merge": {
        "cooldown": "30s",
        "window": "60s",
        "msgRateIn": 20,
        "bytesRateIn": "100M",
        "msgRateOut": "100k",
        "bytesRateOut": "100M",
    },
}


def _tide(seconds: float) -> float:
    """Up and down every twenty minutes, between next to nothing and three segments' worth."""
    return 160 - 150 * math.cos(2 * math.pi * seconds / _TIDE_SECONDS)


def _bursts(seconds: float) -> float:
    """A minute of much in every ten."""
    return 250.0 if seconds % 600 > 540 else 15.0


_LOADS: dict[str, Callable[[float], float]] = {
    "orders": _tide,
    "clicks": _bursts,
    "payments": lambda _: 60.0,
    "audit": lambda _: 1.0,
}


@pytest.mark.timeout(_SECONDS + 1800)
async def test_an_hour_of_load_is_reported_on_and_tried_under_another_policy(
    own_operator: MakeOperator, kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, tmp_path: Path
) -> None:
    page = Evidence(
        "recorded-load.md", "An hour of load, recorded and reported on", "make show-recorded-load", (_PART,)
    )
    history = tmp_path / "history"
    flags = ("--settle-window-seconds=60", "--auto-scale-enabled=true", "--auto-scale-interval-seconds=10")
    operator, world = await piped_world(
        *(own_operator, kube, view, pulsar, tmp_path / "pipelines", *flags),
        intervalSeconds=_SAMPLE_SECONDS,
        history={"path": str(history)},
    )
    for name in _LOADS:
        await world.apply(manifests.topic(name, f"{world.pulsar_namespace}/{name}", autoScale=_PRESENT))
    for name in _LOADS:
        await world.until_ready(name)
    began = time.monotonic()
    most = dict.fromkeys(_LOADS, 1)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            Client(pulsar.service_url, AuthenticationToken(pulsar.superuser_token))
        )
        for name, rate in _LOADS.items():
            producer = await client.producer(f"{world.pulsar_namespace}/{name}")
            await stack.enter_async_context(PacedTraffic(producer, rate, size_bytes=200))
        while time.monotonic() - began < _SECONDS:
            await asyncio.sleep(10)
            for name in _LOADS:
                active = (await world.get(TOPICS, name))["status"]["segments"]["active"]
                most[name] = max(most[name], int(active))
    await asyncio.to_thread(operator.stop)
    assert most["orders"] > 1, "the tide has been followed"

    present = tmp_path / "present.yaml"
    present.write_text(yaml.safe_dump(_PRESENT))
    shutil.rmtree(_FOLDER, ignore_errors=True)
    thresholds = next((tmp_path / "pipelines").glob("*/thresholds.json"))
    report = await _job("capacity-report", history, _FOLDER, "--thresholds-file", str(thresholds))
    backtest = await _job(
        "backtest", history, _FOLDER, "--policy", str(_CANDIDATE.relative_to(_ROOT)), "--present-policy", str(present)
    )
    for file in ("capacity.html", "topics.csv", "backtest.html", "backtest.csv"):
        assert (_FOLDER / file).stat().st_size > 200, file
    files = [one for one in history.rglob("*") if one.is_file()]
    page.show(
        _PART,
        f"Four topics for {_SECONDS:.0f} s on one broker: `orders` goes up and down every",
        f"{_TIDE_SECONDS / 60:.0f} min, `clicks` comes in bursts, `payments` is steady, `audit` next to idle. A",
        f"pipeline beside the operator asks the broker every {_SAMPLE_SECONDS} s (statistics are renewed every",
        f"{_STATISTICS_SECONDS} s), topics follow its records, and the history holds {len(files)} files,",
        f"{sum(one.stat().st_size for one in files) // 1024} KiB.",
        "",
        *table(("topic", "most segments it had"), list(most.items())),
        "",
        "- [capacity.html](recorded-load/capacity.html) by `capacity-report`, with its CSV files beside it",
        "- [backtest.html](recorded-load/backtest.html) by `backtest` of",
        "  [policy-candidate.yaml](../../examples/policy-candidate.yaml) beside the policy the topics had",
        "",
        "```",
        *(report + backtest).replace(f"{_ROOT}/", "").strip().splitlines(),
        "```",
    )
    assert page.write()


async def _job(name: str, history: Path, out: Path, *more: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "segment_load", name, "--master", "local[2]"),
        *("--history-path", str(history), "--out", str(out), *more),
        stdout=asyncio.subprocess.PIPE,
        cwd=_ROOT,
    )
    out_bytes, _ = await process.communicate()
    assert process.returncode == 0
    return out_bytes.decode()
