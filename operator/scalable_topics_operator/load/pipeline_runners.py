"""All ways to run a pipeline, by the names of `spec.load.runner` (R34)."""

from __future__ import annotations

from collections.abc import Mapping

from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.load.embedded_runner import EmbeddedRunner
from scalable_topics_operator.load.pipeline_runner import PipelineRunner
from scalable_topics_operator.load.spark_application_runner import SparkApplicationRunner


def make_runners(kube: KubeClient, folder: str) -> Mapping[str, PipelineRunner]:
    """One of each.

    Args:
        kube: the API server.
        folder: shared with the supervisor beside this replica; empty where there is none.
    """
    return {"Embedded": EmbeddedRunner(folder), "SparkApplication": SparkApplicationRunner(kube)}
