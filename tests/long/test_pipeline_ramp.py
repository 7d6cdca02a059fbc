"""Topics that follow a load by a pipeline on Spark: `make show-pipeline`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from tests.integration.operator.conftest import MakeOperator
from tests.support.embedded_pipeline import piped_world
from tests.support.evidence import Evidence, table
from tests.support.load_ramp import HEADER, ramp
from tests.support.metrics import read_metric
from tests.support.pulsar_view import PulsarView

_INTERVAL_SECONDS, _STATISTICS_SECONDS, _SAMPLE_SECONDS = 5, 5, 5
_FLAGS = ("--auto-scale-enabled=true", f"--auto-scale-interval-seconds={_INTERVAL_SECONDS}")
_PART = "A load of sixteen segments, and none again"


@pytest.mark.timeout(1500)
async def test_a_ramp_of_sixteen_is_followed_up_and_down(
    own_operator: MakeOperator,
    kube: KubeClient,
    view: PulsarView,
    pulsar: PulsarAccess,
    tmp_path: Path,
) -> None:
    page = Evidence("pipeline-ramp.md", "Topics that follow a pipeline on Spark", "make show-pipeline", (_PART,))
    operator, world = await piped_world(
        *(own_operator, kube, view, pulsar, tmp_path / "pipelines", *_FLAGS), intervalSeconds=_SAMPLE_SECONDS
    )
    rows = [await ramp(operator, world, pulsar, fanout) for fanout in (2, 8)]
    assert await read_metric(operator, 'scalable_topics_pipeline_followed{name="pulsar"') == 1
    await asyncio.to_thread(operator.stop)
    page.show(
        _PART,
        "Runner `Embedded`, `local[1]`. Messages of 512 keys at 13 times `split.msgRateIn`, from one moment to the",
        f"next; after a while none. Brokers renew their statistics every {_STATISTICS_SECONDS} s, there is a batch",
        f"every {_SAMPLE_SECONDS} s, decisions are made every {_INTERVAL_SECONDS} s, cool-downs are 1 s, and segments",
        "are cold after 10 s. Direct sampling beside it: [auto-scale.md](auto-scale.md).",
        "",
        *table(HEADER, rows),
    )
    assert page.write()
