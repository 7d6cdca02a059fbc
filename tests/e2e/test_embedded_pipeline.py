"""Topics follow their load by a pipeline on Spark that runs in a container beside each replica."""

from __future__ import annotations

import pytest

from dev.e2e import Images
from tests.e2e.kubectl import apply, kubectl, until
from tests.e2e.release import NAMESPACE, SELECTOR, Release, Values
from tests.e2e.world import APPLICATIONS, Toolbox, active, await_pipeline, await_ready, connection, topic

pytestmark = [pytest.mark.whole, pytest.mark.timeout(1500)]

TOPIC = "growing"
# Two producers send 200 messages a second in all.
POLICY = {
    "maxSegments": 4,
    "split": {"msgRateIn": 60, "cooldown": "5s"},
    "merge": {"msgRateIn": 1, "cooldown": "1h"},
}
PIPELINE_SECONDS = 300
GROWTH_SECONDS = 240


@pytest.fixture(scope="module")
def values(images: Images) -> Values:
    assert images.spark, "the whole run has the image of the pipeline"
    return {
        "loadPipeline": {"runner": "Embedded", "master": "local[1]"},
        "operator": {"autoScaleIntervalSeconds": 10},
    }


def test_a_topic_is_split_by_the_load_that_the_pipeline_tells(release: Release, toolbox: Toolbox) -> None:
    load = {"source": "Pipeline", "runner": "Embedded", "intervalSeconds": 5}
    apply(connection(load=load), topic(TOPIC, segments={"initial": 1}, autoScale=POLICY), namespace=APPLICATIONS)
    await_ready("scalabletopic", TOPIC)
    with toolbox.traffic(TOPIC):
        await_pipeline(PIPELINE_SECONDS)
        until(
            lambda: active(TOPIC),
            lambda found: len(found) >= 3,
            what="the topic has grown",
            within_seconds=GROWTH_SECONDS,
        )
    # One replica leads the connection, and its container alone runs Spark.
    running = kubectl("get", "pods", "--namespace", NAMESPACE, "--selector", SELECTOR, "--output=name").split()
    found = [
        pod
        for pod in running
        if "stream" in kubectl("exec", "--namespace", NAMESPACE, pod, "--container=pipelines", "--", *PROCESSES)
    ]
    assert len(found) == 1, running


PROCESSES = (
    "python3",
    "-c",
    "import glob; print([open(f).read() for f in glob.glob('/proc/[0-9]*/cmdline')])",
)
